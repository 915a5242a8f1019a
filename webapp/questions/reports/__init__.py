"""Reports over stored elements, for users and programs: over HTTP, as JSON and as CSV."""
