"""Explanations: why an element is in the answer of a query, or why it is not, term by term.

An explanation is a tree of `Term`. Each leaf says what is asked, what was found, and whether that holds; a term about a
place also says how far its border is. All terms are decided by the functions with which the engine evaluates queries.
"""

from streaming.explaining.explain import explain
from streaming.explaining.known import ExplanationFacts, Partner
from streaming.explaining.subject import Subject
from streaming.explaining.terms import BorderDistance, Term

__all__ = ["BorderDistance", "ExplanationFacts", "Partner", "Subject", "Term", "explain"]
