"""Control: which queries and streams there are, what a micro-batch changes of them, and which queries are left out."""
