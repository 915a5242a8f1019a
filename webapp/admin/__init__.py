"""The admin: spaces, streams, layers, base maps, queries, events, incidents, filters, alarms, users and API tokens."""

from django.contrib import admin
from django.contrib.auth import admin as accounts  # noqa: F401

from webapp.admin import (  # noqa: F401  (they register themselves)
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
    tokens,
)

admin.site.site_header = "Lookout"
admin.site.site_title = "Lookout"
admin.site.index_title = "Administration"
