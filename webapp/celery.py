"""The Celery application: tasks that register queries, and the beat that keeps them registered."""

import os

from celery import Celery
from celery.signals import worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("lookout")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["webapp"])


@worker_ready.connect
def reconcile_at_start(sender, **_):
    """Ask for what should run as soon as a worker can see to it."""
    sender.app.send_task("webapp.tasks.reconcile")
