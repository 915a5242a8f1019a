"""The requests of people who have logged in, as types."""

from typing import cast

from django.contrib.auth.models import User
from django.http import HttpRequest


class SignedInRequest(HttpRequest):
    """A request for a page that only users get. An annotation only: Django makes plain requests."""

    user: User


def signed_in(request: HttpRequest) -> User:
    """Return who asks for a page that only users get, where Django's own methods fix the type of the request."""
    return cast("User", request.user)
