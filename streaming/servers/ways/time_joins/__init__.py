"""Joins over event time: pairs of reports of two streams by place and time.

Home servers send reports to the regions that may need them (`reports.py`), and each region compares them as event time
advances. Begin with `region.py`.
"""
