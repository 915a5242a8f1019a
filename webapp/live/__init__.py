"""All processes of Lookout under one supervisor (``manage.py live``)."""
