"""Base maps in the admin."""

from django.contrib import admin

from webapp.models import BaseMap


@admin.register(BaseMap)
class BaseMapAdmin(admin.ModelAdmin):
    """Base maps that users may choose besides the built-in map."""

    list_display = ("name", "kind", "address", "min_zoom", "max_zoom", "default")
    list_filter = ("kind",)
    search_fields = ("name", "address")
