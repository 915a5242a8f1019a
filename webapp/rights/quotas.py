"""Count, then create under a limit: for one request of a user at a time, so that two together cannot pass a limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from webapp.models.spaces import EARTH, Space


@contextmanager
def counted_alone(user: User | None, everyone: bool = False) -> Iterator[None]:
    """Run a transaction in which nobody else creates what is counted for a user: count and create within it.

    The database keeps the others waiting at the row of the user. SQLite has one writer at a time anyhow.

    Parameters
    ----------
    user : User or None
        None for a command on the server, which has no limits.
    everyone : bool
        Whether something is counted for all users together.
    """
    with transaction.atomic():
        # The row of a space that is always there stands for all users.
        rows: list[QuerySet[Any]] = [Space.objects.filter(pk=EARTH)] if everyone else []
        rows += [] if user is None else [User.objects.filter(pk=user.pk)]
        for row in rows:
            # Without the key: what refers to the row may be written meanwhile.
            list(row.select_for_update(no_key=True).values_list("pk"))
        yield
