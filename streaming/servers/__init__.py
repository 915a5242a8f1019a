"""Servers: pure functions from a state and an input to a new state and an output.

The roles are those of PLACE* (2007), section 3:

=================  ==================================================================================================
`home`             the home server of some objects: it knows the newest version of each, and the region that keeps it
`region`           the regional server: it keeps the objects in its part of the space, and answers fixed queries
`ways`             the other ways of evaluation, a room each: the parts of home servers, of participating and tracking
                   servers, and of the assembler, which merges the parts of all regions into one answer
`control`          for all servers: the registry of queries, the control step of a batch, the border around failures
`answers`          for all servers: members of answers, changes, reasons, recipients, result tuples
=================  ==================================================================================================
"""
