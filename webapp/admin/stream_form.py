"""The form of a stream, with a field for each option of its transport and decoder."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.admin.options import field_of
from webapp.admin.sketch_fields import given_sketch, initial_values, sketch_fields
from webapp.models import Stream
from webapp.models.streams import kinds_of, options_of, summary_of

PARTS = ("transport", "decoder")
_HELP = {"transport": _("How bytes arrive"), "decoder": _("How bytes are read")}
_TIMES = ("ttl_s", "max_ahead_s", "max_age_s")
_MODEL_FIELDS = ("name", "space", "title", "icon", "enabled", *_TIMES, "stored", "retention_s")


class KindSelect(forms.Select):
    """A choice among the kinds of transports or decoders; a chosen kind that is not installed any more is shown."""

    def __init__(self, part: str) -> None:
        super().__init__(attrs={"data-options-of": part})
        self.part = part

    def optgroups(self, name: str, value: list[str], attrs: dict[str, Any] | None = None) -> list[Any]:
        """Return the choices: the available kinds and the chosen one."""
        kinds = dict.fromkeys([*kinds_of(self.part), *filter(None, value)])
        self.choices = [("", "---------"), *((kind, _title(self.part, kind)) for kind in kinds)]
        return super().optgroups(name, value, attrs)


def _title(part: str, kind: str) -> str:
    summary = summary_of(part, kind) if kind in kinds_of(part) else gettext("not installed any more")
    return f"{kind} – {gettext(summary)}" if summary else kind


def field_name(part: str, kind: str, option: str) -> str:
    """Return the name of the form field of an option."""
    return f"{part}__{kind}__{option}"


@cache
def option_fields(part: str) -> dict[str, forms.Field]:
    """Return the form fields for all options of all kinds of transports or decoders, in order, by field name."""
    return {
        field_name(part, kind, option.name): field_of(option)
        for kind in kinds_of(part)
        for option in options_of(part, kind) or ()
    }


class StreamForm(forms.ModelForm):
    """Shows the options of the chosen kinds; options that a kind does not declare are one JSON object."""

    class Meta:
        model = Stream
        fields = (*_MODEL_FIELDS, "transport", "transport_options", "decoder", "decoder_options")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for part in PARTS:
            self._show(part)
        self.initial.update(initial_values(self.instance.sketch))

    def _show(self, part: str) -> None:
        """Fill in the saved options, and disable the fields of kinds that are not chosen."""
        saved = dict(getattr(self.instance, f"{part}_options") or {})
        kind = getattr(self.instance, part)
        for name in [name for name in saved if field_name(part, kind, name) in self.fields]:
            self.initial[field_name(part, kind, name)] = saved.pop(name)
        self.initial[f"{part}_options"] = saved
        if part in self.fields:
            self.fields[part].help_text = f"{_HELP[part]}: {', '.join(kinds_of(part))}."
        if self.is_bound:
            chosen = self.data.get(self.add_prefix(part), "")
            for name in option_fields(part):
                self.fields[name].disabled = not name.startswith(f"{part}__{chosen}__")

    def clean(self) -> dict[str, Any]:
        """Collect the options of the chosen kinds, and the settings of the sketch, into the fields of the model."""
        super().clean()
        cleaned = self.cleaned_data
        for part in PARTS:
            others = cleaned.get(f"{part}_options")
            others = {} if others is None and f"{part}_options" not in self.errors else others
            if isinstance(others, dict):
                cleaned[f"{part}_options"] = others | self._given(part, cleaned.get(part) or "")
        self.instance.sketch = given_sketch(cleaned, self.instance.sketch)
        return cleaned

    def _given(self, part: str, kind: str) -> dict[str, Any]:
        """Return the options of a kind whose values differ from the defaults."""
        declared = options_of(part, kind) or () if kind in kinds_of(part) else ()
        values = [(option, self.cleaned_data.get(field_name(part, kind, option.name))) for option in declared]
        return {
            option.name: value
            for option, value in values
            if value not in (None, "", option.default) or (value is False and option.default)
        }

    def add_error(self, field: str | None, error: Any) -> None:
        """Show an error of the options at the field of the option that it names."""
        told = getattr(error, "error_dict", None)
        if told is None:
            return super().add_error(field, error)
        return super().add_error(None, ValidationError(self._placed(told)))

    def _placed(self, told: Mapping[str, list[ValidationError]]) -> dict[str, list[ValidationError]]:
        placed: dict[str, list] = {}
        for field, errors in told.items():
            for error in errors:
                placed.setdefault(self._place(field, error), []).append(error)
        return placed

    def _place(self, field: str, error: ValidationError) -> str:
        if field == "sketch":
            return self._sketch_field(error)
        part = field.removesuffix("_options")
        if part not in PARTS or part == field:
            return field
        kind = self.data.get(self.add_prefix(part), "")
        for word in re.findall(r"\w+", error.message.split(";")[0]):
            if (name := field_name(part, kind, word)) in self.fields:
                return name
        return field

    def _sketch_field(self, error: ValidationError) -> str:
        """Return the field of the sketch that an error names, else the first one."""
        named = [field_name for field_name in sketch_fields() if field_name.removeprefix("sketch__") in error.message]
        return (named or list(sketch_fields()))[0]


@cache
def stream_form() -> type[StreamForm]:
    """Return the form with a field for every option. It is made late, because it loads the libraries of all formats."""
    return type(
        "StreamForm", (StreamForm,), {**option_fields("transport"), **option_fields("decoder"), **sketch_fields()}
    )


def source_fields() -> list[str]:
    """Return the names of the fields of transport and decoder, in order."""
    return [name for part in PARTS for name in (part, *option_fields(part), f"{part}_options")]
