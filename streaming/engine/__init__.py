"""The engine: the servers run by Spark, over the logs and versioned state files."""
