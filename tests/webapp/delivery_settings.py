"""The project with quick deliveries, for workers that tests start and kill."""

from webapp.delivery.pace import DeliveryPace
from webapp.settings import *  # noqa: F403

DELIVERY_PACE = DeliveryPace(
    attempt_s=1.0, lease_s=2.0, first_retry_s=0.1, longest_retry_s=0.5, attempts=1_000, run_s=2.0
)
CELERY_BEAT_SCHEDULE = {"deliver": {"task": "webapp.delivery.tasks.deliver", "schedule": 0.25}}
# A task whose worker was killed comes back after this time; beat sends others meanwhile.
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 5}
