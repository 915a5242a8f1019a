"""The web application of Lookout: pages, admin, websocket, tasks."""

from webapp.celery import app as celery_app

__all__ = ["celery_app"]
