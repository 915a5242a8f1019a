"""``manage.py bundle_modules``: make one file of the page's modules, after a change of theirs."""

from django.core.management.base import BaseCommand

from webapp.static import bundle


class Command(BaseCommand):
    """Bundle the modules in ``static/js`` by esbuild."""

    help = "Make static/bundle of the modules in static/js, by esbuild, which npm fetches."
    requires_system_checks = ()

    def handle(self, *_, **__):
        """Bundle."""
        bundle()
