"""Texts: how plans and stored texts are told to people, and what a text from outside must be.

Nothing here reads the database. `refusals` has the one error that refuses a request, with its rule and value; `text`
checks what comes from outside. Begin with `plans`, which tells the plan of a query in words.
"""
