"""Plans whose fields declare their keys: read from JSON, written as JSON, and described by a JSON Schema.

A field is declared by its annotation, ``Annotated[type, value]``, its default, and its description in the numpydoc of
the class. Fields that plans of several kinds have, such as `where`, need no annotation (`fields.SHARED`).
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import lru_cache
from typing import Any, get_args, get_type_hints

from streaming.errors import InvalidPlan
from streaming.kinds.fields import SHARED
from streaming.kinds.parts import check_keys
from streaming.kinds.schema import Schema, descriptions, nullable, ref, summary
from streaming.kinds.values import Definitions, Derived, Reading, Value
from streaming.spaces import Space

# Others may need them: a key of an object has the stream of the plan unless it names one.
_FIRST = ("stream", "where", "filters", "emit")
_LAST = ("where", "emit", "filters", "area")


@lru_cache(maxsize=256)
def values_of(cls: type) -> Mapping[str, Value]:
    """Return the values that the fields of a dataclass declare, by field.

    Raises
    ------
    TypeError
        If a field has none.
    """
    types = get_type_hints(cls, include_extras=True)
    found: dict[str, Value] = {}
    for field in fields(cls):
        declared = [part for part in get_args(types[field.name])[1:] if isinstance(part, Value | Derived)]
        value = declared[0] if declared else SHARED.get(field.name)
        if value is None and field.name != "kind":
            raise TypeError(f"a field must be annotated with the value of its key; {cls.__name__}.{field.name} is not")
        if isinstance(value, Value):
            found[field.name] = value
    return found


@lru_cache(maxsize=256)
def keys_of(cls: type) -> tuple[str, ...]:
    """Return the keys that the documents of a dataclass may have."""
    kind = ["kind"] if any(field.name == "kind" for field in fields(cls)) else []
    names = [value.key or name for name, value in values_of(cls).items()]
    return tuple(dict.fromkeys([*names[:1], *kind, *names[1:]]))


def read(cls: type, document: Mapping[str, Any], space: Space, within: str = "") -> dict[str, Any]:
    """Return the fields of a dataclass that a document gives; `within` begins the names in messages.

    Raises
    ------
    InvalidPlan
        If a value breaks a rule. The message says the rule and the value. Unknown keys are not looked for.
    """
    defaults = {field.name: field.default for field in fields(cls)}
    found: dict[str, Any] = {}
    for name, value in _in_order(cls):
        key = value.key or name
        reading = Reading(f"{within}{key}", space, found)
        if key in document and not (value.null and document[key] is None):
            found[name] = value.read(document[key], reading)
        else:
            found[name] = value.missing(reading) if defaults[name] is MISSING else defaults[name]
    return found


@lru_cache(maxsize=256)
def _in_order(cls: type) -> tuple[tuple[str, Value], ...]:
    """Return the fields and values in the order in which they are read."""
    return tuple(sorted(values_of(cls).items(), key=lambda entry: entry[0] not in _FIRST))


def write(plan: Any, space: Space) -> dict[str, Any]:
    """Return the document of an object of such a dataclass; `read` is the inverse."""
    cls: type = type(plan)
    values = values_of(cls)
    document: dict[str, Any] = {}
    for name in (*(name for name in values if name not in _LAST), *(name for name in _LAST if name in values)):
        key, written = values[name].key or name, values[name].write(plan, name, space)
        if written is not None:
            document[key] = document[key] | written if key in document else written
    return document


def definition(cls: type) -> Schema:
    """Return the JSON Schema of the documents of a dataclass."""
    words, properties, required = descriptions(cls), {}, []
    for field in fields(cls):
        if field.name == "kind":
            properties["kind"] = {"const": field.default}
            required += ["kind"] if field.default != "range" else []
        elif value := values_of(cls).get(field.name):
            key = value.key or field.name
            properties[key] = _property(value, field, words.get(field.name, "")) | properties.get(key, {})
            required += [key] if field.default is MISSING and not value.optional and key not in required else []
    return {
        "description": summary(cls),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _property(value: Value, field: Field, words: str) -> Schema:
    """Return the schema of one key."""
    schema = nullable(value.schema()) if value.null else dict(value.schema())
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    if isinstance(default, str | int | float | list) and not value.null:
        schema["default"] = default
    return schema | ({"description": words} if words else {})


def definitions(cls: type) -> Definitions:
    """Return the definitions to which the schema of a dataclass refers, by name, unless all plans share them."""
    found: dict[str, Schema] = {}
    for value in values_of(cls).values():
        found |= value.definitions()
    return found


@dataclass(frozen=True, kw_only=True)
class Object(Value):
    """An object with the keys that the fields of a dataclass declare.

    Parameters
    ----------
    of : type
        The dataclass.
    definition : str
        The name of its definition in the JSON Schema.
    """

    of: type
    definition: str
    null: bool = True

    def read(self, value: Any, reading: Reading) -> Any:
        keys = keys_of(self.of)
        if not isinstance(value, dict):
            raise InvalidPlan(
                "%(name)s must be an object with %(keys)s; got %(value)s",
                name=reading.name,
                keys=", ".join(keys),
                value=f"{value!r:.200}",
            )
        check_keys(value, keys, reading.name)
        return self.of(**read(self.of, value, reading.space, f"{reading.name}: "))

    def write(self, plan: Any, name: str, space: Space) -> dict[str, Any] | None:
        part = getattr(plan, name)
        return None if part is None else write(part, space)

    def schema(self) -> Schema:
        return ref(self.definition)

    def definitions(self) -> Definitions:
        return {self.definition: definition(self.of), **definitions(self.of)}
