"""API tokens in the admin; a token is shown only once, when it is made."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext

from webapp.models import ApiToken


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
    """Tokens with which programs act as users."""

    list_display = ("name", "user", "created", "last_used")
    list_filter = ("user",)
    search_fields = ("name", "user__username")
    fields = ("user", "name", "created", "last_used")
    readonly_fields = ("created", "last_used")
    autocomplete_fields = ("user",)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Suggest the present user."""
        return {"user": request.user.pk}

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """Save a token; make and show the secret of a new one."""
        secret = None if change else obj.draw()
        super().save_model(request, obj, form, change)
        if secret is not None:
            text = format_html(
                "{} <code id='new-token'>{}</code>", gettext("Copy the token now, it is not shown again:"), secret
            )
            self.message_user(request, text, messages.WARNING)
