"""Kinds of continuous queries, a folder for each, and what they share. `registry` lists the kinds.

Modules of a kind's folder:

=========== =========================================================================================================
`plan`      the dataclass of its plans, which operators use; it knows nothing but the parts of plans
`schema`    the JSON Schema of its documents
`kind`      its `Kind`: how a plan is read, written, described in words and evaluated, and what it needs
=========== =========================================================================================================

The rest of the program asks `registry.kind_of(plan)`, and never which class a plan has. docs/architecture.md tells how
to add a kind.
"""
