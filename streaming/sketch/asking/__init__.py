"""The questions of plans, put to the sketches of several regions.

`needs` says what a region sends, and `answering` how leaves and sets of all regions together answer: as they would if
one region had them all.

References
----------
Synopsis (2017), section 3.5: a query is evaluated at the sketchlets that have something about it, and merged.
"""
