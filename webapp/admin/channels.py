"""Channels in the admin: a form with a field for each option of a kind, and *Send a test*."""

import re
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.decoders.options import OptionDescription
from streaming.errors import InvalidOptions
from webapp.admin.options import field_of, help_of
from webapp.delivery.channels import channel_class, channel_kinds, secrets_of
from webapp.delivery.channels.base import NotDelivered
from webapp.delivery.messages import message_of, trial_document
from webapp.models import Channel, Delivery
from webapp.models.delivery import new_key
from webapp.words.summaries import first_line

if TYPE_CHECKING:
    from django.contrib.admin.options import _FieldsetSpec

_KEPT = _("Saved, and never shown. Leave it empty to keep it.")
# Where a channel sends to: whoever changes that must know the secrets, since they would be sent there.
_TARGETS = ("url", "host", "port", "security", "tls")
_WIDTH = 60
_TRIALS = threading.BoundedSemaphore(2)
# Errors in these fields do not affect a test.
_UNCHECKED = {"name", "owner", "team", "enabled"}


class ChannelKindSelect(forms.Select):
    """A choice among the kinds of channels; a chosen kind that is not installed any more is shown."""

    def __init__(self) -> None:
        super().__init__(attrs={"data-options-of": "channel"})

    def optgroups(self, name: str, value: list[str], attrs: dict[str, Any] | None = None) -> list[Any]:
        """Return the choices: the available kinds and the chosen one."""
        kinds = dict.fromkeys([*channel_kinds(), *filter(None, value)])
        self.choices = [("", "---------"), *((kind, _title(kind)) for kind in kinds)]
        return super().optgroups(name, value, attrs)


def _title(kind: str) -> str:
    try:
        return f"{kind} – {gettext(first_line(channel_class(kind)))}"
    except InvalidOptions:
        return gettext("%(kind)s – not installed any more") % {"kind": kind}


def field_name(kind: str, option: str) -> str:
    """Return the name of the form field of an option or a secret."""
    return f"channel__{kind}__{option}"


@cache
def option_fields() -> dict[str, forms.Field]:
    """Return the form fields for all options and secrets of all kinds, in order, by field name."""
    return {
        field_name(kind, option.name): _secret_field(option) if option.name in secrets_of(kind) else _field(option)
        for kind in channel_kinds()
        for option in channel_class(kind).options_class.describe()
    }


def _field(option: OptionDescription) -> forms.Field:
    field = field_of(option, gaps=False)  # no option of a channel is a list with gaps
    if isinstance(field.widget, forms.TextInput) and not isinstance(field, forms.IntegerField):
        field.widget.attrs["size"] = _WIDTH
    return field


def _secret_field(option: OptionDescription) -> forms.CharField:
    widget = forms.PasswordInput(attrs={"autocomplete": "new-password", "size": _WIDTH})
    return forms.CharField(label=option.name, required=False, help_text=help_of(option, ""), widget=widget)


class ChannelForm(forms.ModelForm):
    """Shows the options of the chosen kind. Secrets go in, but never out."""

    forget = forms.BooleanField(
        label=_("forget saved secrets"), required=False, help_text=_("Those that are not entered here are deleted.")
    )

    class Meta:
        model = Channel
        fields = ("name", "kind", "owner", "team", "enabled")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        saved = self.instance
        for option, value in (saved.options or {}).items():
            if (name := field_name(saved.kind, option)) in self.fields:
                self.initial[name] = value
        for secret in saved.secrets or {}:
            if (name := field_name(saved.kind, secret)) in self.fields:
                self.fields[name].help_text = f"{self.fields[name].help_text} {_KEPT}"
        if self.is_bound:
            chosen = self.data.get(self.add_prefix("kind"), "")
            for name in option_fields():
                self.fields[name].disabled = not name.startswith(f"channel__{chosen}__")

    def clean(self) -> dict[str, Any]:
        """Collect options and secrets of the chosen kind into the fields of the model."""
        super().clean()
        cleaned = self.cleaned_data
        kind = cleaned.get("kind")
        if kind not in channel_kinds():
            return cleaned
        before, was_kind = self.instance.options, self.instance.kind or kind
        kept = {} if cleaned.get("forget") or kind != self.initial.get("kind") else dict(self.instance.secrets)
        options, entered = self._given(kind)
        moved = [name for name in _TARGETS if kind == was_kind and options.get(name) != before.get(name)]
        if self.instance.pk and moved and (unknown := [name for name in kept if name not in entered]):
            rule = gettext("%(moved)s has changed, so enter %(unknown)s again, which would be sent there") % {
                "moved": moved[0],
                "unknown": unknown[0],
            }
            self.add_error(field_name(kind, unknown[0]), rule)
        self.instance.options, self.instance.secrets = options, kept | entered
        return cleaned

    def _given(self, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the options and the secrets that differ from the defaults."""
        found: dict[str, Any] = {}
        for option in channel_class(kind).options_class.describe():
            value = self.cleaned_data.get(field_name(kind, option.name))
            if value not in (None, "", option.default) or (value is False and option.default):
                found[option.name] = value
        secrets = secrets_of(kind)
        return (
            {name: value for name, value in found.items() if name not in secrets},
            {name: value for name, value in found.items() if name in secrets},
        )

    def add_error(self, field: str | None, error: Any) -> None:
        """Show an error of the options at the field of the option that it names."""
        told = getattr(error, "error_dict", {})
        if "options" not in told:
            return super().add_error(field, error)
        placed: dict[str, list] = {name: errors for name, errors in told.items() if name != "options"}
        for wrong in told["options"]:
            placed.setdefault(self._place(wrong), []).append(wrong)
        return super().add_error(None, ValidationError(placed))

    def _place(self, error: ValidationError) -> str:
        kind = self.data.get(self.add_prefix("kind"), "")
        words = (*re.findall(r"\w+", error.message.split(";")[0]), *_TARGETS)
        names = [field_name(kind, word) for word in words]
        return next((name for name in names if name in self.fields), "kind")


@cache
def channel_form() -> type[ChannelForm]:
    """Return the form with a field for every option."""
    return type("ChannelForm", (ChannelForm,), dict(option_fields()))


@admin.register(Channel)
class ChannelAdmin(admin.ModelAdmin):
    """Channels: how somebody is reached."""

    list_display = ("name", "kind", "where", "owner", "team", "enabled", "waiting", "dead")
    list_filter = ("kind", "enabled", "owner", "team")
    list_select_related = ("owner", "team")
    search_fields = ("name", "owner__username", "team__name")
    autocomplete_fields = ("owner",)
    change_form_template = "admin/webapp/channel/change_form.html"

    def get_fieldsets(self, request: HttpRequest, obj: Channel | None = None) -> "_FieldsetSpec":
        """Return the parts of the form. It has the options of all kinds; a script hides those of kinds not chosen."""
        saved = ("forget",) if obj and obj.secrets else ()
        source = ("kind", *option_fields(), *saved)
        return (
            (None, {"fields": ("name", "enabled")}),
            (gettext("Where to"), {"fields": source, "classes": ("source",)}),
            (gettext("Who may use it"), {"fields": ("owner", "team")}),
        )

    def get_form(
        self, request: HttpRequest, obj: Channel | None = None, change: bool = False, **kwargs: Any
    ) -> type[forms.ModelForm]:
        """Return the form with a field for every option."""
        return super().get_form(request, obj, change, form=channel_form(), **kwargs)

    def formfield_for_dbfield(self, db_field: models.Field, request: HttpRequest, **kwargs: Any) -> forms.Field | None:
        """Offer the available kinds."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name == "kind":
            field.widget = ChannelKindSelect()
        return field

    def get_urls(self) -> list[URLPattern]:
        """Add the URL of the button *Send a test*."""
        test = self.admin_site.admin_view(lambda request: answer_trial(self, request))
        return [path("test/", test, name="webapp_channel_test"), *super().get_urls()]

    @admin.display(description=_("where to"))
    def where(self, channel: Channel) -> str:
        """The options of the channel, without its secrets."""
        told = ", ".join(map(str, channel.options.get("to", []))) or channel.options.get("url")
        return told or channel.options.get("host") or "(secret)"

    @admin.display(description=_("waiting"))
    def waiting(self, channel: Channel) -> int:
        """How many deliveries are not over."""
        return channel.deliveries.filter(state__in=Delivery.OPEN).count()

    @admin.display(description=_("dead"))
    def dead(self, channel: Channel) -> int:
        """How many deliveries have failed for good."""
        return channel.deliveries.filter(state=Delivery.DEAD).count()


def answer_trial(model_admin: ChannelAdmin, request: HttpRequest) -> HttpResponse:
    """Send a test by the channel that a form describes; respond with the outcome, or with the form's errors."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not (model_admin.has_add_permission(request) or model_admin.has_change_permission(request)):
        raise PermissionDenied
    number = request.POST.get("channel", "")
    saved = Channel.objects.filter(pk=number).first() if number.isdecimal() else None
    if saved and not model_admin.has_change_permission(request, saved):
        raise PermissionDenied
    form = model_admin.get_form(request, saved)(request.POST, instance=saved or Channel(name="test"))
    errors = {name: list(map(str, told)) for name, told in form.errors.items() if name not in _UNCHECKED}
    if errors:
        return JsonResponse({"errors": errors})
    from webapp.delivery.sending import send_now  # late: it loads a library that other pages do not need

    channel = form.instance
    if not _TRIALS.acquire(blocking=False):
        return JsonResponse({"error": gettext("two tests run already; try again in some seconds")})
    try:
        status, took_s = send_now(channel, message_of(new_key(), trial_document(channel.name)))
    except NotDelivered as error:
        return JsonResponse({"error": str(error)})
    finally:
        _TRIALS.release()
    took_ms = f"{took_s * 1000:.0f}"
    if status:
        text = gettext("The receiver accepted with status %(status)s after %(took)s ms.")
        return JsonResponse({"sent": text % {"status": status, "took": took_ms}})
    return JsonResponse({"sent": gettext("The receiver accepted it after %(took)s ms.") % {"took": took_ms}})
