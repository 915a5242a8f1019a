"""Layers in the admin: imports, their state, and the stored versions."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html_join
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.language import thousands
from streaming.layers import ImportOptions
from webapp.layers.imports import Label, begin_upload, cancel_import, check_label
from webapp.layers.versions import share_layer
from webapp.models import Layer, RefusedImport, Space
from webapp.models.layers import layer_store
from webapp.models.spaces import EARTH
from webapp.rights.signed_in import SignedInRequest, signed_in
from webapp.words.refusals import Refused
from webapp.words.stored_words import retold

OPTIONS = tuple(field.name for field in fields(ImportOptions))
WHERE_TOLD = _("its page says why, or for a new layer the list of refused imports")


class LayerForm(forms.ModelForm):
    """A layer's form. A file starts an import; without a file only the title changes."""

    space = forms.ModelChoiceField(
        Space.objects.all(), required=False, initial=EARTH, help_text=_("Fixed once saved; earth where none is chosen.")
    )
    file = forms.FileField(required=False, help_text=_("GeoJSON, GeoPackage, zipped Shapefile, KML, FlatGeobuf, ..."))
    crs = forms.CharField(
        label=_("CRS"),
        required=False,
        max_length=200,
        help_text=_("Such as EPSG:3067, where it is not the file's own."),
    )
    key = forms.CharField(required=False, max_length=200, help_text=_("The property that names a feature."))
    table = forms.CharField(
        required=False, max_length=200, help_text=_("Which of the file's tables, if several; * for all of them.")
    )
    encoding = forms.CharField(
        required=False,
        max_length=40,
        help_text=_("Of its texts, such as cp1251, where the file names none or a wrong one."),
    )
    edges = forms.ChoiceField(
        required=False,
        choices=[("", _("the shorter way, over the antimeridian")), ("keep", _("as they are"))],
        help_text=_("Edges that go more than 180 degrees of longitude."),
    )

    class Meta:
        model = Layer
        fields = ("name", "title", "space", "team", "look")

    def clean(self) -> dict[str, Any]:
        """Require a file for a new layer, and check its name, title and space."""
        super().clean()
        cleaned = self.cleaned_data
        if self.instance.pk is not None:
            return cleaned
        if not cleaned.get("file"):
            self.add_error("file", _("a new layer needs a file"))
        if {"name", "title"} <= cleaned.keys():
            self._check(label_of(cleaned))
        return cleaned

    def _check(self, label: Label) -> None:
        try:
            check_label(label)
        except Refused as refused:
            self.add_error(refused.code if refused.code in self.fields else None, refused.message)


def label_of(cleaned: Mapping[str, Any]) -> Label:
    """Return the name, title and space from a new layer's form."""
    return Label(cleaned["name"], cleaned["title"], cleaned["space"].pk if cleaned.get("space") else "", _team(cleaned))


def _team(cleaned: Mapping[str, Any]) -> int | None:
    return cleaned["team"].pk if cleaned.get("team") else None


@admin.register(Layer)
class LayerAdmin(admin.ModelAdmin):
    """Layers; imports use the same functions as the site."""

    form = LayerForm
    list_display = (
        "name",
        "title",
        "status",
        "percent",
        "version",
        "features",
        "problem_count",
        "owner",
        "team",
        "updated",
    )
    list_filter = ("status", "space", "team", ("owner", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("owner", "team")
    search_fields = ("name", "title", "error")
    actions = ("cancel",)
    readonly_fields = (
        "owner",
        "status",
        "percent",
        "error",
        "version",
        "features",
        "geometry_types",
        "bounds",
        "versions",
        "problem_list",
        "created",
        "updated",
    )
    fieldsets = (
        (None, {"fields": ("name", "title", "space", "team")}),
        (_("Import"), {"fields": ("file", *OPTIONS)}),
        (_("State"), {"fields": readonly_fields}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Layer | None = None) -> tuple[str, ...]:
        """Make name and space read-only once they are saved."""
        return (*self.readonly_fields, "name", "space") if obj else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: Layer, form: Any, change: bool) -> None:
        """Begin the import of a file; without a file, save the title."""
        upload = form.cleaned_data.get("file")
        if change and "team" in form.changed_data:
            share_layer(signed_in(request), obj.name, _team(form.cleaned_data))
        if not upload:
            obj.save(update_fields=["title"])
            return
        wanted = ImportOptions(**{field: form.cleaned_data[field].strip() for field in OPTIONS})
        try:
            label = Label(obj.name, obj.title) if change else label_of(form.cleaned_data)
            made = begin_upload(signed_in(request), upload, label, wanted)
        except Refused as refused:
            self.message_user(request, refused.message, messages.ERROR)
        else:
            obj.__dict__.update(made.__dict__)
            self.message_user(
                request,
                gettext("The import of %(name)s has begun. Should it be refused, %(where_told)s.")
                % {"name": made.name, "where_told": WHERE_TOLD},
            )

    def log_addition(self, request: HttpRequest, obj: Layer, message: Any) -> LogEntry | None:  # type: ignore[override]  # nobody reads what it returns
        """Log the addition, unless the import was refused and nothing was added."""
        return super().log_addition(request, obj, message) if obj.pk else None

    def response_add(self, request: HttpRequest, obj: Layer, post_url_continue: str | None = None) -> HttpResponse:
        """Continue to the layer, or to the list if no layer was added."""
        if obj.pk is None:
            return self.response_post_save_add(request, obj)
        return super().response_add(request, obj, post_url_continue)

    @admin.action(description=_("Cancel the imports of selected layers"))
    def cancel(self, request: SignedInRequest, queryset: QuerySet[Layer]) -> None:
        """Cancel the imports of the selected layers."""
        for layer in queryset:
            cancel_import(request.user, layer.name)
        self.message_user(
            request, gettext("imports of %(count)s layers cancelled") % {"count": len(queryset)}, messages.SUCCESS
        )

    @admin.display(description=_("progress"))
    def percent(self, layer: Layer) -> str:
        """The progress of the import in percent."""
        return f"{layer.progress:.0%}"

    @admin.display(description=_("stored versions"))
    def versions(self, layer: Layer) -> str:
        """The stored versions, with their features and parts."""
        store = layer_store()
        manifests = [store.manifest(layer.name, number) for number in reversed(store.versions(layer.name))]
        text = gettext("%(features)s features in %(parts)s parts")
        rows = [(m.version, text % {"features": thousands(m.features), "parts": len(m.parts)}) for m in manifests]
        return format_html_join("", "<p>{}: {}</p>", rows) or gettext("none")

    @admin.display(description=_("problems"))
    def problem_list(self, layer: Layer) -> str:
        """The first features that were left out, repaired or cut, with the reasons."""
        rows = [(problem["row"] or gettext("the file"), retold(problem["reason"])) for problem in layer.problems]
        if (more := layer.problem_count - len(layer.rows_told())) > 0:
            rows.append((gettext("%(more)s more") % {"more": thousands(more)}, gettext("not listed")))
        return format_html_join("", "<p>{}: {}</p>", rows) or gettext("none")


@admin.register(RefusedImport)
class RefusedImportAdmin(admin.ModelAdmin):
    """First imports that were refused, with the reason; they left no layer."""

    list_display = ("name", "title", "owner", "reason", "refused")
    list_filter = (("owner", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("owner",)
    search_fields = ("name", "title", "reason")
    readonly_fields = ("name", "title", "space", "owner", "reason", "refused")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds refusals here: imports record them."""
        return False
