"""The page in a real browser, before the whole of Lookout."""
