"""The configuration of the Django app."""

from django.apps import AppConfig


class WebappConfig(AppConfig):
    """The only app of the project."""

    name = "webapp"
    verbose_name = "Lookout"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Hide secrets in logs, translate `streaming`, and register the admin, the audit log and signals."""
        from webapp import admin, layers  # noqa: F401
        from webapp.audit.recording import watch
        from webapp.bus import definitions, deletion  # noqa: F401
        from webapp.machine.logs import hide_secrets
        from webapp.pages.languages import speak
        from webapp.teams import links, members  # noqa: F401

        hide_secrets()
        speak()
        watch()
