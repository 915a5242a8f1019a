"""The Celery application: the tasks of `webapp.tasks`, `webapp.layers` and `webapp.delivery`, and their schedule."""

import contextlib
import gc
import logging
import os
import sys
import time
from typing import Any

from celery import Celery
from celery.signals import (
    after_setup_logger,
    after_setup_task_logger,
    after_task_publish,
    beat_init,
    task_received,
    task_revoked,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.conf import settings

from streaming.keys import BEAT_KEY
from streaming.log_format import JsonFormatter
from webapp.machine.logs import program_of

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("lookout")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["webapp", "webapp.delivery"])


@after_setup_logger.connect
@after_setup_task_logger.connect
def write_json(logger: logging.Logger, **_: object) -> None:
    """Give Celery's handlers, which it sets up by itself, the format of all other logs, if that is JSON."""
    if settings.LOG_FORMAT == "json":
        for handler in logger.handlers:
            handler.setFormatter(JsonFormatter(program_of(sys.argv)))


@worker_ready.connect
def keep_what_is_loaded(**_: object) -> None:
    """Look for garbage no more among what is loaded, as in `webapp.asgi`."""
    gc.collect()
    gc.freeze()


@worker_ready.connect
def settle_acknowledgements(**_: object) -> None:
    """Settle what the engines acknowledge, as long as the worker runs."""
    from webapp.recording.settling import Settler  # imported late: the models are loaded after this module

    settler = Settler()
    settler.start()
    worker_shutdown.connect(lambda **_: settler.stop(), weak=False)


@worker_ready.connect
def watch_worker(sender: Any, **_: object) -> None:
    """Say that the worker lives, and end it if it takes no more tasks."""
    from webapp.operations.worker_watch import WorkerWatch  # imported late, like the settler

    watch = WorkerWatch(sender.app.conf.task_default_queue, sender.pool.num_processes)
    for taken in (task_received, task_revoked):  # a task that has waited for too long is revoked when it is taken
        taken.connect(watch.note_taken, weak=False)
    for ending in (worker_shutting_down, worker_shutdown):
        ending.connect(watch.stop, weak=False)
    watch.start()


@beat_init.connect
def tell_of_beat(**_: object) -> None:
    """Report each time at which beat has sent a task."""
    after_task_publish.connect(_tell_sent, weak=False)


def _tell_sent(**_: object) -> None:
    from streaming.logs import write_report  # imported late: only beat needs it
    from webapp.bus.redis import NOT_NOW, client

    with contextlib.suppress(*NOT_NOW):  # the next task says the same
        write_report(client(), BEAT_KEY, {"at_us": time.time_ns() // 1000})


@worker_ready.connect
def reconcile_at_start(sender: Any, **_: object) -> None:
    """Start a reconciliation as soon as a worker is ready, so that all queries run that should."""
    sender.app.send_task("webapp.tasks.reconcile")
