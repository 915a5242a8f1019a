"""All of Lookout's processes under one supervisor (``manage.py live``)."""
