"""Control: the registered queries and streams, their changes in a micro-batch, and the queries that are left out."""
