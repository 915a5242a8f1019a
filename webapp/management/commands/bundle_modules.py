"""``manage.py bundle_modules``: bundle the page's JavaScript modules into one file, after they have changed."""

from django.core.management.base import BaseCommand

from webapp.pages.static import bundle


class Command(BaseCommand):
    """Bundle the modules in ``static/js`` with esbuild."""

    help = "Make static/bundle of the modules in static/js, by esbuild, which npm fetches."
    requires_system_checks = ()

    def handle(self, *_: object, **__: object) -> None:
        """Bundle."""
        bundle()
