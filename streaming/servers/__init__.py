"""Servers: pure functions from a state and an input to a new state and an output.

The roles are those of PLACE* (2007), section 3:

=================  ==================================================================================================
`home`             the home server of some objects: it knows the newest version of each, and the region that keeps it
`region`           the regional server: it keeps the objects in its part of the space, and answers fixed queries
`participant`      the participating server: it computes a region's part of the answers to distributed queries
`assembler`        it merges the parts into one answer: neighbours, aggregates, and where queries are
`focals`           the tracking server's part: where the focal objects are
`control`          for all servers: the registry of queries, the control step of a batch, the border around failures
`answers`          for all servers: members of answers, changes, reasons, recipients, result tuples
=================  ==================================================================================================
"""
