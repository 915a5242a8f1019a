"""The engine: Spark runs the servers, which read the logs and keep versioned state files."""
