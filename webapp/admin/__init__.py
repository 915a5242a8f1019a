"""The admin: spaces, streams, layers, base maps, queries, events, incidents, filters, users and API tokens."""

from django.contrib import admin
from django.contrib.auth import admin as accounts  # noqa: F401

from webapp.admin import events, filters, incidents, layers, maps, queries, spaces, streams, tokens  # noqa: F401  (they register themselves)

admin.site.site_header = "Lookout"
admin.site.site_title = "Lookout"
admin.site.index_title = "Administration"
