"""Queries in the admin: their status, and the actions pause, resume and cancel."""

from collections.abc import Callable
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.alarms.incidents import close_of
from webapp.models import Layer, Query
from webapp.queries import queries
from webapp.queries.estimating import weigh
from webapp.queries.query_warnings import left_out_words, warning_words
from webapp.rights.access import rights_of
from webapp.rights.signed_in import SignedInRequest, signed_in
from webapp.words.plans import plan_in_words


class QueryForm(forms.ModelForm):
    """A query's form; it shows an error in the plan at the field `plan`."""

    confirmed = forms.BooleanField(
        label=_("confirmed"), required=False, help_text=_("The query is wanted although there may be no room for it.")
    )
    # Those that whoever fills in the form may see.
    layers: Any = Layer.objects.none()

    class Meta:
        model = Query
        fields = ("name", "plan", "shared", "team", "paused", "severity", "look")

    def clean(self) -> dict[str, Any]:
        """Refuse a severity where there are no events, and a plan for which there is no room."""
        super().clean()
        values = self.cleaned_data
        if values.get("severity") and (values.get("plan") or {}).get("kind") == "sketch":
            self.add_error(
                "severity",
                gettext("a query of a sketch opens no incidents; got %(values)s") % {"values": values["severity"]},
            )
        if "plan" in values and values["plan"] != self.initial.get("plan"):
            try:
                weigh(values["plan"], self.layers, values["confirmed"])
            except queries.Refused as refused:
                self.add_error("plan", refused.message)
        return values

    def clean_plan(self) -> dict[str, Any]:
        """Check the plan as the websocket does."""
        try:
            return queries.checked_plan(self.cleaned_data["plan"])
        except queries.Refused as refused:
            raise forms.ValidationError(refused.message) from None


@admin.register(Query)
class QueryAdmin(admin.ModelAdmin):
    """Queries; all changes use the same functions as the websocket (`webapp.queries.queries`)."""

    form = QueryForm
    list_display = (
        *("id", "name", "owner", "stream", "asks", "status", "error", "warns", "lacks", "shared", "team", "severity"),
        *("space", "updated"),
    )
    list_display_links = ("id", "name")
    list_filter = ("status", "space", "stream", "shared", "team", "severity", "owner")
    list_select_related = ("owner", "space", "team")
    search_fields = ("name", "owner__username", "error", "warning")
    actions = ("pause", "resume", "cancel")
    readonly_fields = (
        "asks",
        "owner",
        "stream",
        "space",
        "status",
        "error",
        "warns",
        "lacks",
        "revision",
        "acknowledged",
        "epoch",
        "created",
        "updated",
    )
    fields = ("name", "plan", "shared", "team", "paused", "severity", "look", *readonly_fields)

    @admin.display(description=_("asks for"))
    def asks(self, query: Query) -> str:
        """Say in words what a query asks for."""
        return plan_in_words(query.plan, " m" if query.space.parsed.geographic else "") if query.plan else ""

    @admin.display(description=_("warning"))
    def warns(self, query: Query) -> str:
        """Say what does not work, how often it happened, and when last."""
        return warning_words(query)

    @admin.display(description=_("left out"))
    def lacks(self, query: Query) -> str:
        """Say why the engine leaves a query out now."""
        return left_out_words(query)

    def changeform_view(self, request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        """Show the form again with what the rights of whoever saves refuse."""
        try:
            return super().changeform_view(request, *arguments, **named)
        except queries.Refused as refused:
            self.message_user(request, refused.message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def save_model(self, request: HttpRequest, obj: Query, form: Any, change: bool) -> None:
        """Register a new query, or edit one by its changed fields."""
        values = {field: form.cleaned_data[field] for field in form.changed_data}
        if "team" in values:
            values["team"] = values["team"] and values["team"].pk
        if change:
            queries.edit(signed_in(request), obj.pk, **values)
            return
        paused = values.pop("paused", False)
        made = queries.register(signed_in(request), **values)
        obj.__dict__.update(made.__dict__)
        if paused:
            queries.edit(signed_in(request), obj.pk, paused=True)

    def delete_model(self, request: HttpRequest, obj: Query) -> None:
        """Close the incidents of a query, and delete it with them."""
        close_of([obj], f"{request.user.get_username()} deleted the query")
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Query]) -> None:
        """Close the incidents of queries, and delete them with these."""
        close_of(queryset, f"{request.user.get_username()} deleted the query")
        super().delete_queryset(request, queryset)

    def get_readonly_fields(self, request: HttpRequest, obj: Query | None = None) -> tuple[str, ...]:
        """Make all fields of a cancelled query read-only."""
        ended = obj is not None and obj.status == Query.CANCELLED
        return self.fields if ended else self.readonly_fields

    def get_form(
        self, request: HttpRequest, obj: Query | None = None, change: bool = False, **kwargs: Any
    ) -> type[forms.ModelForm]:
        """Return the query's form; a plain form for a cancelled query, which has no fields to edit."""
        ended = obj is not None and obj.status == Query.CANCELLED
        if ended:
            return super().get_form(request, obj, change, **kwargs | {"form": forms.ModelForm})
        form = cast("type[QueryForm]", super().get_form(request, obj, change, **kwargs))
        form.layers = rights_of(signed_in(request)).layers()
        return form

    def get_fields(self, request: HttpRequest, obj: Query | None = None) -> tuple[str, ...]:
        """Let whoever adds or edits a query confirm it; a cancelled one has nothing to confirm."""
        ended = obj is not None and obj.status == Query.CANCELLED
        name, plan, *rest = self.fields
        return self.fields if ended else (name, plan, "confirmed", *rest)

    @admin.action(description=_("Pause selected queries"))
    def pause(self, request: SignedInRequest, queryset: QuerySet[Query]) -> None:
        """Stop evaluating queries, but keep them."""
        self._each(
            request,
            queryset,
            lambda query: queries.edit(request.user, query.pk, paused=True),
            gettext("%(count)s queries paused"),
        )

    @admin.action(description=_("Resume selected queries"))
    def resume(self, request: SignedInRequest, queryset: QuerySet[Query]) -> None:
        """Evaluate paused queries again."""
        self._each(
            request,
            queryset,
            lambda query: queries.edit(request.user, query.pk, paused=False),
            gettext("%(count)s queries resumed"),
        )

    @admin.action(description=_("End selected queries for good"))
    def cancel(self, request: SignedInRequest, queryset: QuerySet[Query]) -> None:
        """End queries for good."""
        self._each(
            request,
            queryset,
            lambda query: queries.cancel(request.user, query.pk),
            gettext("%(count)s queries cancelled"),
        )

    def _each(
        self, request: HttpRequest, queryset: QuerySet[Query], action: Callable[[Query], object], done: str
    ) -> None:
        count = 0
        for query in queryset:
            try:
                action(query)
                count += 1
            except queries.Refused as refused:
                self.message_user(request, refused.message, messages.ERROR)
        self.message_user(request, done % {"count": count}, messages.SUCCESS)
