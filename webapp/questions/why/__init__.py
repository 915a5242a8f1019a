"""Why an object is in the answer of a query, or is not; and why there was an event, or an incident."""
