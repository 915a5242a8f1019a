"""The admin: streams, layers, queries, incidents, alarms, teams, the audit log, users, and what belongs to them."""

from django.contrib import admin
from django.contrib.auth import admin as accounts  # noqa: F401
from django.utils.translation import gettext_lazy as _

from webapp.admin import (  # noqa: F401  (they register themselves)
    audit,
    channels,
    deliveries,
    events,
    filters,
    incidents,
    layers,
    maps,
    queries,
    spaces,
    streams,
    subscriptions,
    teams,
    tokens,
)

admin.site.site_header = "Lookout"
admin.site.site_title = "Lookout"
admin.site.index_title = _("Administration")
