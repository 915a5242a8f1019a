"""Saved queries: the actions on them, and all that is checked before and told after each.

Begin with `queries`, which has a function for each action. The websocket and the admin call the same ones, and no other
module saves a plan (tests/house/test_doors_of_queries.py). `estimating` weighs a plan, `waiting` keeps queries that
name what is not there yet, and `query_warnings` saves what fails while a query runs.
"""
