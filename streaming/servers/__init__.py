"""Servers: pure steps from a state and an input to a state and an output.

The roles are those of PLACE* (2007), section 3:

=================  ==================================================================================================
`home`             the home server of a part of the objects: their newest versions, and which region keeps each
`region`           the regional server: the objects in its part of the space, and the answers to fixed queries
`participant`      the participating server: a region's part of the answers to distributed queries
`assembler`        one answer of all parts: neighbours, aggregates, where queries are
`focals`           the tracking server's part: where the objects are that queries follow
`control`          for all of them: the registry of queries, the control step of a batch, the border of failures
`answers`          for all of them: members of answers, changes, reasons, recipients, result tuples
=================  ==================================================================================================
"""
