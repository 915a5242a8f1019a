"""The audit log of all changes that people make: who, when, what and from where.

`registry` says which models and fields are recorded. `recording` writes a row in the transaction of each change,
whether it comes by a save, by a statement for many rows, or by a deletion that another one brings. `origin` knows who
acts. `values` bounds what a row keeps of a value, and `joining` how many rows of edits a user makes in an hour.
"""
