"""The Celery application, which runs the tasks of `webapp.tasks` and `webapp.layers` and their schedule."""

import os

from celery import Celery
from celery.signals import worker_ready, worker_shutdown

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("lookout")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["webapp"])


@worker_ready.connect
def settle_acknowledgements(**_):
    """Settle what the engines acknowledge, as long as the worker runs."""
    from webapp.settling import Settler  # imported late: the models are loaded after this module

    settler = Settler()
    settler.start()
    worker_shutdown.connect(lambda **_: settler.stop(), weak=False)


@worker_ready.connect
def reconcile_at_start(sender, **_):
    """Start a reconciliation as soon as a worker is ready, so that all queries run that should."""
    sender.app.send_task("webapp.tasks.reconcile")
