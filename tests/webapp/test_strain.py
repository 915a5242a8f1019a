"""A query that takes too much of the engine's time is paused, with the figure; the others go on."""

import random
import time
from dataclasses import replace

import pytest
from django.conf import settings

from streaming.engine import fragments
from streaming.spaces import EARTH
from tests.webapp.conftest import PLAN
from tests.webapp.test_hub import fragment
from webapp.bus import sending
from webapp.bus.redis import log as log_of
from webapp.models import Query, Team
from webapp.queries import queries
from webapp.recording import strain

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def told(redis_client, monkeypatch):
    """Return a function that publishes a batch with costs, and has it observed; and the queries that were cancelled."""
    cancelled, log, batches = [], log_of(EARTH.name), iter(range(1_000))
    monkeypatch.setattr(sending.send_query, "apply_async", lambda arguments, **_: cancelled.extend(arguments))

    def publish(*costs, ms=4_000, elements=10, observed=True, owners=(), regions=1, **more):
        number = next(batches)
        first = replace(fragment(number, 0), costs=costs_told(ms, costs, owners) | more)
        second = replace(fragment(number, 1), costs=first.costs if regions == 2 else {})
        log.publish([replace(first, counters={"elements": elements}), second])
        if observed:
            strain.watch(redis_client, EARTH)

    return publish, cancelled


def costs_told(ms, queries, owners):
    """Return what a region tells of costs."""
    return {"ms": ms, "queries": list(queries), "owners": list(owners)} if queries or owners else {}


def together(costs):
    """Return what a region tells of one owner, given the costs by query, all of revision 3."""
    dear = sorted(costs, key=costs.get, reverse=True)
    return [Query.objects.get(pk=dear[0]).counts_for, sum(costs.values()), [[one, 3, costs[one]] for one in dear]]


def saved(user, **fields):
    query = Query(owner=user, name="dear", plan=PLAN, stream="ships", status=Query.RUNNING, revision=3, **fields)
    query.save()
    return query.pk


def test_a_query_that_is_too_dear_in_five_batches_running_is_paused_with_the_figure(told, user):
    publish, cancelled = told
    dear, cheap, seldom = saved(user), saved(user), saved(user)
    for number in range(5):
        assert not cancelled
        costs = [[dear, 3, 3900], [cheap, 3, 900]]
        publish(*costs, *([[seldom, 3, 3000]] if number != 2 else []), observed=number != 1)
    publish(elements=0)
    paused = Query.objects.get(pk=dear)
    assert (paused.status, paused.paused, paused.revision) == (Query.PAUSED, True, 4)
    assert "it took 3,900 ms of a batch of 4,000 ms, and a query may take 50%" in paused.warning
    assert cancelled == [dear]
    others = Query.objects.filter(pk__in=[cheap, seldom])
    assert list(others.values_list("paused", "revision")) == [(False, 3)] * 2


def test_of_queries_that_are_too_dear_together_the_costliest_are_paused_while_others_have_queries(
    told, user, other, settings
):
    publish, cancelled = told
    settings.QUERIES_COST_MS = 750
    mine, theirs = [saved(user) for _ in range(4)], saved(other)
    costs = {query: 700 + place for place, query in enumerate(mine)}

    def batches(count):
        for _ in range(count):
            running = Query.objects.filter(pk__in=mine, paused=False).values_list("pk", flat=True)
            publish(owners=[together({query: costs[query] for query in running}), together({theirs: 1_100})])

    batches(1)
    assert not cancelled
    batches(1)  # without one, they would take 2,103 of 3,297 ms, and without two, 1,401 of 2,595 ms
    assert cancelled == [mine[3], mine[2], mine[1]]
    batches(6)
    assert cancelled == [mine[3], mine[2], mine[1]]
    paused = Query.objects.get(pk=mine[3])
    assert "took 2,806 ms of a batch of 4,000 ms, and may take 50% while others have queries" in paused.warning
    assert "this one is among those that took most, 703 ms" in paused.warning


@pytest.mark.parametrize("once", ["rows", "begun"])
def test_who_opens_many_queries_at_once_may_take_more_for_their_first_answers(once, told, user, other):
    publish, cancelled = told
    mine, _ = saved(user), saved(other)
    for opens in [True] * 4 + [False] * 2:
        assert not cancelled
        more = {"rows": 5_000 * opens} if once == "rows" else {"begun": [mine] * opens}
        publish(owners=[together({mine: 90})], ms=100, **more)
    assert cancelled == [mine]


def test_what_hurts_much_is_paused_after_one_batch_unless_it_has_just_begun(told, user, other):
    publish, cancelled = told
    mine, _ = saved(user), saved(other)
    most_ms = settings.QUERIES_COST_MS + settings.BEGUN_COST_MS
    for begun in [mine], []:
        assert not cancelled
        took_ms = (strain.VERY + 1) * most_ms
        publish(owners=[together({mine: took_ms})], ms=took_ms + 100, begun=begun)
        publish()
    assert cancelled == [mine]


@pytest.mark.parametrize("tasks, dear", [(1, True), (2, False)])
def test_what_an_owner_takes_in_all_regions_counts_as_far_as_one_task_carries_them_out(
    tasks, dear, told, user, other, settings
):
    publish, cancelled = told
    mine, _ = saved(user), saved(other)
    settings.PARTITIONS = tasks
    for _ in range(2):
        publish(owners=[together({mine: 45})], ms=55, regions=2)
    assert cancelled == [mine][: int(dear)]


def test_so_many_are_paused_that_the_rest_takes_half_of_what_it_may(told, user, other):
    publish, cancelled = told
    mine = [saved(user) for _ in range(10)]
    saved(other)
    for _ in range(2):  # 100 ms and 0.1 ms for each of 2,000 elements may always be taken
        publish(owners=[together(dict.fromkeys(mine, 40))], ms=400, elements=2_000)
    assert len(cancelled) == 7


def test_queries_that_are_too_dear_together_go_on_while_nobody_else_has_one(told, user, other):
    publish, cancelled = told
    mine, paused = [saved(user) for _ in range(4)], saved(other, paused=True)
    Query.objects.create(owner=None, name="example", plan=PLAN, stream="ships", status=Query.RUNNING)
    for _ in range(3):
        publish(owners=[together(dict.fromkeys(reversed(mine), 900))])
    assert not cancelled
    Query.objects.filter(pk=paused).update(paused=False)
    for _ in range(2):
        publish(owners=[together(dict.fromkeys(reversed(mine), 900))])
    assert cancelled == mine[::-1]  # one that takes 900 ms still holds the others up


def test_two_workers_count_a_batch_once(told, user, monkeypatch, redis_client):
    publish, cancelled = told
    dear, observed = saved(user), strain._observed

    def late(*arguments):
        found = observed(*arguments)
        monkeypatch.setattr(strain, "_observed", observed)
        publish([dear, 3, 3_900])
        return found

    for _ in range(2):
        monkeypatch.setattr(strain, "_observed", late)
        publish([dear, 3, 3_900])
    assert not cancelled
    publish([dear, 3, 3_900])
    assert cancelled == [dear]


def test_the_queries_of_an_owner_may_take_more_when_many_elements_come_at_once(told, user, other):
    publish, cancelled = told
    mine, _ = saved(user), saved(other)
    for _ in range(4):
        publish([mine, 3, 1_400], owners=[together({mine: 800})], ms=850, elements=7_500)
    assert not cancelled
    for _ in range(2):
        publish(owners=[together({mine: 800})], ms=850, elements=5_500)
    assert cancelled == [mine]


def test_the_costs_that_an_earlier_release_told_pause_a_query(told, user, monkeypatch):
    publish, cancelled = told
    dear, now = saved(user), costs_told
    monkeypatch.setitem(globals(), "costs_told", lambda *costs: {k: v for k, v in now(*costs).items() if k != "owners"})
    for _ in range(5):
        publish([dear, 3, 3_900])
    assert cancelled == [dear]


def test_the_queries_of_a_team_count_together_whoever_owns_them(told, user, other):
    publish, cancelled = told
    team = Team.objects.create(name="port")
    mine = [saved(owner, team=team) for owner in (user, other)]
    saved(user)
    for _ in range(2):
        publish(owners=[together({mine[0]: 1_100, mine[1]: 1_101})])
    assert [Query.objects.get(pk=query).counts_for for query in mine] == [-team.pk] * 2
    assert cancelled == [mine[1]]


def test_what_was_measured_of_an_older_revision_or_a_share_below_the_bound_pauses_nothing(told, user):
    publish, cancelled = told
    query = saved(user)
    for _ in range(6):
        publish([query, 2, 3900], [query + 9, 1, 3900])
        publish([query, 3, 3900], ms=10_000)
    assert not cancelled and not Query.objects.get(pk=query).warning


def test_one_huge_query_that_moves_is_paused_among_small_ones(engine, streams, user, project, monkeypatch):
    monkeypatch.setattr(fragments, "COST_REPORTED_S", 0.0)
    project.QUERY_SHARE, project.QUERY_COST_MS, project.ELEMENT_COST_MS = 0.02, 3, 0
    ships = [f"ship {number}" for number in range(3_000)]

    def around(number, radius):
        plan = {"stream": "ships", "around": {"key": ships[number], "radius": radius}, "where": "speed > 1"}
        return queries.register(user, "around", plan).pk

    huge, small = around(0, 2_000_000), [around(number, 1_000) for number in range(1, 20)]
    for _ in range(7):
        places = {ship: (random.uniform(0, 9), random.uniform(0, 9)) for ship in ships}
        engine.move(places, properties={"speed": 9})
        while not engine.caught_up():
            time.sleep(0.01)
    strain.watch(engine.log.client, EARTH)
    paused = Query.objects.get(pk=huge)
    assert paused.status == Query.PAUSED
    assert "make its range, its filter or its join smaller" in paused.warning
    assert set(Query.objects.filter(pk__in=small).values_list("status", flat=True)) == {Query.RUNNING}
