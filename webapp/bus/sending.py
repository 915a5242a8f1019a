"""The Celery task that sends a query to the engine of its space."""

from celery import shared_task

from webapp.bus.control import tell_engine
from webapp.bus.redis import waiting_client
from webapp.models import Query


@shared_task(name="webapp.sending.send_query")  # a release that ran before may have sent it by this name
def send_query(number: int) -> None:
    """Send the engine the newest revision of a query, if it has not acknowledged that."""
    query = Query.objects.filter(pk=number).first()
    if query is not None and query.acknowledged < query.revision:
        tell_engine(waiting_client(), query.space_id, [query])
