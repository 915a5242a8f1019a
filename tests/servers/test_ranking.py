"""The ranking of candidates, kept from batch to batch, is that of sorting them all anew."""

import numpy as np
from hypothesis import given

from streaming.plans import parse_plan
from streaming.results import ENTERED, LEFT, STAYED
from streaming.servers.ways.moving.nearest import Ranked, Ranking, Searches, step
from streaming.servers.ways.moving.partial import Candidates, Partial
from tests.draws import rngs, times
from tests.servers.test_distributed import PLANE

K = {1: 1, 4: 2, 6: 5, 9: 3}
QUIET = {4, 9}
SIGNS = {ENTERED: (False, True), STAYED: (True, True), LEFT: (True, False)}


def searches_of(ids, shifted, carried, nearest, places):
    """The queries `ids` in a plane; `nearest` searches among all objects, by brute force."""
    plans = [parse_plan({"stream": "s", "kind": "knn", "around": {"at": [0, 0]}, "k": K[q]}, PLANE) for q in ids]
    reach = np.where([q in carried for q in ids], np.inf, 4.0)
    return Searches(
        np.array(ids, dtype=np.int64),
        plans,
        np.ones(len(ids), dtype=bool),
        np.array([q in shifted for q in ids], dtype=bool),
        np.array([q in carried for q in ids], dtype=bool),
        reach,
        lambda: np.full(len(ids), 4.0),
        np.full(len(ids), np.inf),
        10,
        nearest,
        lambda positions, keys: np.array(
            [places[ids[p], k] for p, k in zip(positions.tolist(), keys.tolist(), strict=True)]
        ),
        lambda ranked, seconds: None,
        np.array([q in QUIET for q in ids], dtype=bool),
    )


def candidates(triples):
    query, key, distance = zip(*triples, strict=True) if triples else ((), (), ())
    return Candidates(np.array(query, np.int64), np.array(key, np.int64), np.array(distance, np.float64))


def answer(found, query):
    """The members of a query's answer with their distances and ranks, by brute force: key -> (distance, rank)."""
    ordered = sorted((distance, key) for (q, key), distance in found.items() if q == query)
    return {key: (distance, rank) for rank, (distance, key) in enumerate(ordered[: K[query]], 1)}


@given(rngs())
def test_answers_and_changes_are_those_of_sorting_everything(rng):
    ranking, found, before = Ranking.none(), {}, {}
    for _ in times(rng, 9, 1):
        ids = sorted(q for q in K if rng.random() < 0.8)
        news = {q for q in ids if q not in before}
        shifted = news | {q for q in ids if rng.random() < 0.2}
        carried = {q for q in ids if q not in shifted and rng.random() < 0.2}
        removed, added, moved, now = [], [], [], {}
        for query in ids:
            if query in shifted:
                inside = {key: float(rng.randrange(4)) for key in rng.sample(range(9), rng.randrange(9))}
                touched = {key for key in inside if rng.random() < 0.3}
            else:
                inside = {key: d for (q, key), d in found.items() if q == query}
                touched = set(rng.sample(range(9), rng.randrange(4)))
                off = {} if rng.random() < 0.8 else {"rounded": 1e-9}  # as another limit may round it
                removed += [(query, key, inside.pop(key) + sum(off.values())) for key in touched & inside.keys()]
                if query in carried:
                    inside = {key: float(rng.randrange(4)) for key in inside}
                inside |= {key: float(rng.randrange(4)) for key in sorted(touched) if rng.random() < 0.7}
            told = sorted(inside) if query in shifted else sorted(touched & inside.keys())
            added += [(query, key, inside[key]) for key in told]
            moved += [key in touched for key in told]
            now |= {(query, key): distance for key, distance in inside.items()}

        def nearest(positions, radius, ids=ids, now=now):
            wanted = {ids[p] for p in positions.tolist()}
            return candidates([(q, key, d) for (q, key), d in sorted(now.items()) if q in wanted])

        order = np.array(rng.sample(range(len(added)), len(added)), dtype=np.int64)
        cut = len(order) // 2
        partials = [
            Partial(candidates(removed) if not part else Candidates.none(), *sent(added, moved, rows))
            for part, rows in enumerate((order[:cut], order[cut:]))
        ]
        ranking, changes, _ = step(ranking, partials, searches_of(ids, shifted, carried, nearest, now))
        expected = {query: answer(now, query) for query in ids}
        assert {query: of(ranking, query) for query in ids} == expected
        check(changes, before, expected)
        found = {
            (q, key): d for (q, key), d in now.items() if key in ranking.key[ranking.rows(np.array([ids.index(q)]))]
        }
        before = expected


def sent(added, moved, rows):
    chosen = candidates([added[row] for row in rows.tolist()])
    return chosen, np.array([moved[row] for row in rows.tolist()], dtype=bool), np.empty(0, dtype=np.int64), None


def of(ranking, query):
    told = ranking.answers(np.array([query]))
    return {k: (d, r) for k, d, r in zip(told.key.tolist(), told.distance.tolist(), told.rank.tolist(), strict=True)}


def check(changes, before, now):
    """Entries and exits are told, each once, with their ranks; so is every member whose distance or rank differs."""
    told, members = {}, changes.members
    columns = (members.query, members.key, members.distance, members.rank, changes.sign)
    for query, key, distance, rank, sign in zip(*(column.tolist() for column in columns), strict=True):
        was, is_ = (key in answers.get(query, {}) for answers in (before, now))
        assert (query, key) not in told and SIGNS[sign] == (was, is_)
        assert sign == LEFT or now[query][key] == (distance, rank)
        assert sign != STAYED or query not in QUIET
        told[query, key] = sign
    for query in before.keys() | now.keys():
        was, is_ = before.get(query, {}), now.get(query, {})
        for key in was.keys() | is_.keys():
            same = key in was and key in is_ and (query in QUIET or was[key] == is_[key])
            assert same or (query, key) in told


def test_a_ranking_of_rows_in_any_order_has_their_ranks():
    rows = Ranked(*(np.array(column) for column in ([5, 5, 2, 5], [1, 2, 7, 3], [2.0, 1.0, 0.5, 1.0], [0, 1, 1, 2])))
    ranking = Ranking.of(rows)
    assert ranking.ranks.tolist() == [1, 1, 2, 0]
    assert ranking.key.tolist() == [7, 2, 3, 1]
    assert ranking.without(np.array([2])).answers(np.array([2, 5])).key.tolist() == [2, 3]
