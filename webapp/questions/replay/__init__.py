"""The replay of stored elements, of answers and of events over HTTP: the pages of which the map plays the past."""
