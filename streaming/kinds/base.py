"""What a kind of continuous query tells about its plans."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from streaming.errors import InvalidPlan
from streaming.kinds import declared
from streaming.kinds.around import Focus
from streaming.kinds.details import Detail
from streaming.kinds.parts import Box, Enlargement, Filter, UserFilter, check_keys
from streaming.kinds.schema import Schema, of_kind
from streaming.language import gettext
from streaming.spaces import Space


class Plan(Protocol):
    """A continuous query: what plans of all kinds have. They are frozen dataclasses, or properties of one."""

    @property
    def stream(self) -> str:
        """The stream whose elements the query evaluates."""

    @property
    def kind(self) -> str:
        """The value of the key `kind` in its document."""

    @property
    def area(self) -> Box:
        """The area in which elements are evaluated."""

    @property
    def where(self) -> str:
        """CQL2 text over the element's properties; empty for none."""

    @property
    def filters(self) -> tuple[Filter, ...]:
        """An element must pass all of them."""

    @property
    def emit(self) -> str:
        """What is reported: one of `fields.EMITS`."""


class Unfiltered:
    """What plans have that look at no elements themselves, so that no filter could judge any."""

    @property
    def where(self) -> str:
        """Nothing."""
        return ""

    @property
    def filters(self) -> tuple[Filter, ...]:
        """None."""
        return ()


class Evaluation(Enum):
    """How the servers evaluate a query."""

    REGIONAL = "each region compares its own objects"
    STREAM_JOIN = "each region compares its own objects with the elements of a stream, some of them from other regions"
    TIME_JOIN = "each region compares reports of two streams by place and time"
    MOVING_RANGE = "each region compares its own objects with a range about a focus"
    NEAREST = "the assembler ranks what the regions found nearest to a focus"
    AGGREGATE = "the assembler merges what the regions computed"
    ENCOUNTER = "the assembler joins the spans of time in which the regions found pairs near"
    SKETCH = "the assembler merges what the regions' sketches answered"
    TRACK = "each home server follows the tracks of its own objects"
    RULE = "the assembler compares the answers of other queries, in time"

    @property
    def distributed(self) -> bool:
        """Whether it has a focus or groups, so that the regions are participating servers (`DistributedQueries`)."""
        return self in (Evaluation.MOVING_RANGE, Evaluation.NEAREST, Evaluation.AGGREGATE)

    @property
    def event_timed(self) -> bool:
        """Whether it is about pairs of reports, by their own times: each report counts, also one that comes late."""
        return self in (Evaluation.TIME_JOIN, Evaluation.ENCOUNTER)

    @property
    def told_at_once(self) -> bool:
        """Whether its answer follows from where objects are, whatever they reported before."""
        return self not in (Evaluation.TIME_JOIN, Evaluation.ENCOUNTER, Evaluation.TRACK, Evaluation.RULE)

    @property
    def assembled(self) -> bool:
        """Whether the assembler reports the answer, instead of each region its part."""
        return self in (
            *(Evaluation.NEAREST, Evaluation.AGGREGATE, Evaluation.ENCOUNTER, Evaluation.SKETCH, Evaluation.RULE),
        )

    @property
    def watched(self) -> bool:
        """Whether its answer has objects that enter and leave, so that a rule can watch it."""
        return self not in (Evaluation.AGGREGATE, Evaluation.TIME_JOIN, Evaluation.SKETCH, Evaluation.RULE)


@dataclass(frozen=True)
class Source:
    """A layer or stream that a query needs besides its own stream.

    Parameters
    ----------
    key : str
        The key of the plan that names it.
    type : {"layer", "stream", "stored"}
        ``stored`` is a stream whose elements are stored.
    name : str
    """

    key: str
    type: str
    name: str


@dataclass(frozen=True)
class Prediction:
    """How a join with a stream compares pairs by where they will be, in place of where they are.

    Parameters
    ----------
    within_m : float
        How far the two may be from each other at the closest point of approach.
    within_s : float
        How many seconds after the later of the two reports this may be.
    gap_s : float
        How many seconds the two reports may be apart.
    mirrored : bool
        In the join of a stream with itself: whether a pair that satisfies the join both ways is told both ways.
    """

    within_m: float
    within_s: float
    gap_s: float
    mirrored: bool

    @property
    def ahead_s(self) -> float:
        """For how many seconds after its report the way of an object may count."""
        return self.within_s + self.gap_s


def focal_source(focus: Focus) -> tuple[Source, ...]:
    """Return the stream of a focal object, as `Kind.sources` does; nothing for a fixed place."""
    return (Source("around", "stream", focus.stream),) if focus.key else ()


def udfs(filters: tuple[Filter, ...], pairs: bool = False) -> tuple[tuple[UserFilter, bool], ...]:
    """Return those of some filters that are user-defined, as `Kind.user_filters` does; `pairs` is the same for all."""
    return tuple((entry, pairs) for entry in filters if isinstance(entry, UserFilter))


P = TypeVar("P", bound=Plan)
# Fields of `streaming.explaining.ExplanationFacts` that are about queries of some kinds only.
Fact = Literal["partners", "neighbours", "groups", "fix", "member", "clock"]


class Kind(ABC, Generic[P]):
    """A kind of continuous query. The registry has one object of each; the methods without a body are to be written.

    Attributes
    ----------
    name : str
        The name of the kind, of its folder, and of its definition in the JSON Schema.
    written : str
        The value of the key `kind` in its documents; several kinds may share one.
    called : str
        What messages call its documents, marked for translation, such as "a join".
    plan_class : type
        The class of its plans, which belongs to this kind alone. Its fields declare the keys of documents, from which
        reading, writing and the JSON Schema follow; see `streaming.kinds.declared`.
    geographic : bool
        Whether it needs a space with longitude and latitude.
    refinement : str
        For kinds that are evaluated ``REGIONAL``: where the `Refinement` of its plans is, as ``module:object``; empty
        if a plan is a `RangePlan`, which needs none. It is loaded where queries are evaluated, so that programs that
        only read plans do not load it.
    operator : str
        For kinds that are evaluated ``TIME_JOIN`` or ``ENCOUNTER``: where the `TimeJoin` of its plans is, likewise.
    explained : str
        Where the function is that explains its plans (`explaining.explain.Explained`), likewise.
    boxes : tuple of str
        Keys of documents, and attributes of plans, that are boxes. Documents that differ in nothing else, and in which
        the same of these keys are given, are read together (`plans.together`); see `like`.
    details : tuple of Detail
        The columns of result tuples that its queries have, and not those of all kinds.
    once : bool
        Whether answers tell things once that no later answer has, such as pairs of a moment.
    """

    name: ClassVar[str]
    written: ClassVar[str]
    called: ClassVar[str]
    plan_class: ClassVar[type]
    geographic: ClassVar[bool] = False
    refinement: ClassVar[str] = ""
    operator: ClassVar[str] = ""
    explained: ClassVar[str] = "streaming.explaining.ranges:usual_term"
    boxes: ClassVar[tuple[str, ...]] = ()
    details: ClassVar[tuple[Detail, ...]] = ()
    once: ClassVar[bool] = False

    def claims(self, document: dict[str, Any]) -> bool:
        """Tell whether a document, whose `kind` is a known one, has a plan of this kind, valid or not."""
        return document.get("kind", "range") == self.written

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that its documents may have."""
        return declared.keys_of(self.plan_class)

    def parse(self, document: dict[str, Any], space: Space) -> P:
        """Return the plan that a document describes.

        Raises
        ------
        InvalidPlan
            If the document breaks a rule. The message says the rule and the value.
        """
        called = gettext(self.called)
        check_keys(document, self.keys, called)
        if self.geographic and not space.geographic:
            raise InvalidPlan(
                "%(what)s needs a space with longitude and latitude; got %(name)s", what=called, name=repr(space.name)
            )
        found = declared.read(self.plan_class, document, space)
        made: P = self.plan_class(**self.completed(found, document, space))
        return made

    def completed(self, fields: dict[str, Any], document: dict[str, Any], space: Space) -> dict[str, Any]:
        """Return the fields of a plan, given those that were read: check that they go together, and add what follows.

        Raises
        ------
        InvalidPlan
            If they do not go together.
        """
        return fields

    def like(self, plan: P, boxes: Mapping[str, Sequence[Box]]) -> list[P]:
        """Return the plans of documents that are sound, and that differ from the one of `plan` in their boxes alone.

        Parameters
        ----------
        plan : Plan
        boxes : mapping of str to sequence of Box, length N
            The boxes that the documents give, by key. They are bounded in the same dimensions as those of `plan`.
        """
        plans = []
        for some in zip(*boxes.values(), strict=True):
            # A fifth of the time that the constructor takes.
            made: P = object.__new__(self.plan_class)
            vars(made).update(vars(plan), **dict(zip(boxes, some, strict=True)))
            plans.append(made)
        return plans

    def document(self, plan: P, space: Space) -> dict[str, Any]:
        """Return the JSON document of a plan; `parse` is the inverse."""
        return {"stream": plan.stream, "kind": plan.kind} | declared.write(plan, space)

    @abstractmethod
    def words(self, document: dict[str, Any], unit: str) -> str:
        """Describe in words what a document in its full form asks for.

        Parameters
        ----------
        document : dict
        unit : str
            Unit that follows lengths, with a leading space; empty outside of geographic spaces.
        """

    def definition(self) -> Schema:
        """Return the JSON Schema of its documents."""
        return declared.definition(self.plan_class)

    def definitions(self) -> Mapping[str, Schema]:
        """Return further definitions that `definition` refers to, by name."""
        return declared.definitions(self.plan_class)

    def condition(self) -> Schema | None:
        """Return the JSON Schema of what only its documents have: the value of the key `kind`.

        None if they have nothing that the kinds registered before lack, or if `definition` describes only an object
        within the documents of other kinds.
        """
        return of_kind(self.written)

    @abstractmethod
    def evaluation(self, plan: P) -> Evaluation:
        """Return how the servers evaluate a plan."""

    def sources(self, plan: P) -> tuple[Source, ...]:
        """Return what a query needs besides its own stream."""
        return ()

    def layer(self, plan: P) -> str | None:
        """Return the name under which the engine knows the features that a query needs; None if it needs none."""
        return None

    def layer_reach(self, plan: P) -> tuple[tuple[Enlargement, ...], float]:
        """Return how far an element reaches for features of `layer`: transformations of its box, then a distance.

        The distance is infinite if each feature may be a partner.
        """
        return (), 0.0

    def user_filters(self, plan: P) -> tuple[tuple[UserFilter, bool], ...]:
        """Return the user-defined filters of a plan, and whether each of them judges pairs."""
        return udfs(plan.filters)

    def facts(self, plan: P) -> tuple[Fact, ...]:
        """Return what an explanation of a plan can use besides layers and foci."""
        return ()

    def prediction(self, plan: P) -> Prediction | None:
        """Return how a join with a stream predicts places; None if it compares where objects are."""
        return None

    def queries(self, plan: P) -> tuple[int, ...]:
        """Return the numbers of the other queries whose answers it watches."""
        return ()

    def measures(self, plan: P) -> bool:
        """Tell whether matches have a distance although the query is evaluated ``REGIONAL`` or as a stream join."""
        return False

    def members(self, plan: P) -> Plan:
        """Return the plan that says which elements the answer is about: that of an aggregate's range, else the plan."""
        return plan

    def focus(self, plan: P) -> Focus | None:
        """Return the focus of a query; None if it has none."""
        return None

    def box(self, plan: P) -> Box:
        """Return a box that every matching element meets, before transformations; a focus is not considered."""
        return plan.area

    def moved(self, was: P, now: P) -> list[tuple[Box, Box]] | None:
        """Return the boxes that differ between two plans, each as it was and as it is, if nothing else differs.

        Then an element that meets none of the places where they differ (`boxes.differences`) matches both plans, or
        neither. None if something else differs, or if places decide in another way.
        """
        return None

    def reach(self, plan: P) -> float:
        """Return how far most of the members are from the focus; infinite without a focus. It serves for estimates."""
        return math.inf
