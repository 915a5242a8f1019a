"""State that survives: immutable files, a manifest for each micro-batch, and where they are stored.

A state is written as named parts (`codec`), which are immutable files of a `StateStore` (`stores`). Each task writes
its parts and then its receipt, and the task that ends last writes the manifest of the micro-batch (`manifest`,
`versions`). What no manifest names does not exist. `upkeep` makes manifests durable and removes what is no longer
needed.
"""
