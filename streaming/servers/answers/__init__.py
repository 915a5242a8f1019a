"""Answers: their members, changes, reasons, recipients and result tuples."""
