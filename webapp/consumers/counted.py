"""The part of a connection that is counted among those of its user, its address or its link."""

import asyncio

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext

from webapp.consumers.connection import ClientConnection
from webapp.consumers.leases import LEASES, Limit, network_of
from webapp.rights.access import Guest

# The user, or the address, has as many connections as it may.
CROWDED = 4414


class Counted(ClientConnection):
    """Refuses a connection if there are as many as there may be; see `webapp.consumers.leases`."""

    limits: tuple[Limit, ...] = ()

    def account(self, user: User | Guest) -> str:
        """Return for whom a connection of a user counts."""
        return f"user:{user.pk}"

    @property
    def owner(self) -> str:
        """For whom the connection asks; see `hub.subscriptions.Subscriber`."""
        return self.account(self.user)

    def limits_of(self, user: User | Guest) -> list[Limit]:
        """Return how many connections a user, and the address of this connection, may have."""
        rule = gettext("a user may have at most %(most)s connections at once; got one more")
        return [*_limits(self.account(user), settings.USER_CONNECTIONS, rule), *self.limits_of_address()]

    def limits_of_address(self) -> list[Limit]:
        """Return how many connections the address of this one may have; nothing if it has no address."""
        network = network_of((self.scope.get("client") or ("",))[0])
        rule = gettext("an address may have at most %(most)s connections at once; got one more")
        return _limits(f"address:{network}", settings.ADDRESS_CONNECTIONS, rule) if network else []

    async def count(self, user: User | Guest) -> bool:
        """Count this connection; close it and return False if there are as many as there may be."""
        self.limits = tuple(self.limits_of(user))
        exceeded = await sync_to_async(LEASES.take, thread_sensitive=False)(self.channel_name, self.limits)
        if exceeded is not None:
            await self.accept()
            await self.close(exceeded.code, exceeded.rule)
        return exceeded is None

    async def uncount(self) -> None:
        """Count this connection no more, also if the server ends it meanwhile."""
        if self.limits:
            give_back = sync_to_async(LEASES.give_back, thread_sensitive=False)
            await asyncio.shield(give_back(self.channel_name, self.limits))


def _limits(of: str, most: int, rule: str) -> list[Limit]:
    return [Limit(of, most, CROWDED, rule % {"most": most})] if most > 0 else []
