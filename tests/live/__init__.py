"""The whole of Lookout as its users run it: supervisor, gateway, engine, web, Celery."""
