"""JSON Schema of plans, made from the registry of kinds. ``python -m streaming.plans.schema`` prints it.

References
----------
JSON Schema, draft 2020-12: https://json-schema.org/draft/2020-12/json-schema-core
"""

import json
from typing import Any

from streaming.kinds import registry
from streaming.kinds.schema import ref, shared_definitions

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of the plans of any space.

    Returns
    -------
    dict
        Every document that `parse_plan` accepts is valid under it. Rules that it cannot express are left to
        `parse_plan`: CQL2 text must parse, a box must lie in the space, and no lower bound may exceed its upper bound.

    Examples
    --------
    >>> plan_schema()["$defs"]["range"]["properties"]["report"]["enum"]
    ['inside', 'outside']
    """
    definitions = {kind.name: kind.definition() for kind in registry.KINDS}
    for kind in reversed(registry.KINDS):
        definitions |= kind.definitions()
    return {
        "$schema": DRAFT,
        "title": "Query plan of Lookout",
        "description": "A continuous query. See docs/plans.md.",
        "type": "object",
        **_choice(),
        "$defs": definitions | shared_definitions(),
    }


def _choice() -> dict[str, Any]:
    """Return the schema that chooses the definition of a kind, as `kinds.registry.claimed` does."""
    choice = ref(registry.KINDS[0].name)
    for kind in registry.KINDS[1:]:
        if (condition := kind.condition()) is not None:
            choice = {"if": condition, "then": ref(kind.name), "else": choice}
    return choice


if __name__ == "__main__":
    print(json.dumps(plan_schema(), indent=2, ensure_ascii=False))
