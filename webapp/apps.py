"""Django's entry to the app."""

from django.apps import AppConfig


class WebappConfig(AppConfig):
    """The one app of the project."""

    name = "webapp"
    verbose_name = "Lookout"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the admin, and connect the signals that tell gateway and engine of what it changes."""
        from webapp import admin, control, definitions, layers  # noqa: F401
