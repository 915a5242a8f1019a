"""What queries ask to look at decides who is refused, also where they share evaluations, or an evaluation owners."""

import numpy as np

from streaming.operators.asked import Asked, refused_unseen


def owners(by_query):
    """Return a function that tells the owners of queries, given a tuple of them by query."""

    def told(queries):
        pairs = [(place, owner) for place, query in enumerate(queries.tolist()) for owner in by_query.get(query, ())]
        of, owner = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return of, owner

    return told


def apart(pairs):
    return Asked.apart(np.array(list(pairs)), np.array(list(pairs.values()), dtype=float))


def test_the_most_expensive_query_of_who_asks_for_most_is_refused_with_the_figures():
    refused = apart({1: 3_000, 2: 5_000, 3: 4_000}).refused(9_000, owners({1: (7,), 2: (7,), 3: (8,)}))
    assert list(refused) == [2]
    assert "about 5,000 pairs" in refused[2] and "room for 9,000" in refused[2] and "may have 5,000 now" in refused[2]


def test_queries_that_are_evaluated_together_are_refused_together():
    parts = [Asked.jointly(np.array([4, 2, 9]), pairs) for pairs in (30, 70)]
    asked = Asked.all_of([*parts, apart({1: 40})])
    assert set(asked.refused(100, owners({query: (query,) for query in (1, 2, 4, 9)}))) == {2, 4, 9}


def test_what_several_owners_ask_for_counts_for_the_one_who_asks_for_least():
    asked = apart({1: 50, 2: 60, 3: 70})
    assert list(asked.refused(120, owners({1: (7, 8), 2: (7,), 3: (7,)}))) == [3]
    # The greedy owner asks for the same as the modest one, who would have had room for it alone.
    assert list(apart({1: 50, 2: 60}).refused(100, owners({1: (7, 8), 2: (7,)}))) == [2]


def test_a_query_of_an_unknown_owner_counts_for_nobody():
    assert list(apart({1: 50, 2: 60, 3: 10}).refused(70, owners({3: (7,)}))) == [2]


def test_somebody_is_refused_whatever_the_room():
    assert list(apart({1: 50}).refused(50, owners({}))) == [1]


def test_what_positions_ask_for_is_told_by_their_numbers():
    asked = Asked.jointly(np.array([0, 1]), 8).numbered(np.array([20, 30]))
    assert set(asked.refused(5, owners({}))) == {20, 30}


def test_queries_that_were_not_looked_at_are_refused_only_if_all_their_owners_ask_for_too_much():
    owned = {1: [7], 2: [7], 3: [7, 8], 4: [8]}

    def owners(queries):
        both = [(place, owner) for place, query in enumerate(queries.tolist()) for owner in owned.get(query, ())]
        return tuple(np.array(both, dtype=np.int64).reshape(-1, 2).T)

    # Query 5 counts for nobody.
    assert refused_unseen({2, 3, 4, 5}, {1}, owners).keys() == {2}
    assert refused_unseen({5}, {6}, owners).keys() == {5}
