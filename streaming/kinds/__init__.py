"""Kinds of continuous queries, a folder for each, and what they share. `registry` lists the kinds.

Modules of a kind's folder:

=========== =========================================================================================================
`plan`      the dataclass of its plans, which operators use; its fields declare the keys of documents (`values`,
            `fields`), from which reading, writing and the JSON Schema follow (`declared`)
`kind`      its `Kind`: which values go together, how a plan is described in words and evaluated, and what it needs
=========== =========================================================================================================

The rest of the program asks `registry.kind_of(plan)`, and never which class a plan has. docs/architecture.md tells how
to add a kind.
"""
