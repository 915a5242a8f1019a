"""The list of queries comes page by page, and a connection that asks for pages is told of what lies on them."""

import itertools

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from tests.webapp.conftest import INSIDE, PLAN
from webapp.bus.notify import announce
from webapp.consumers.listing import Listing
from webapp.models import Query, RemovedExamples, Space
from webapp.queries import queries
from webapp.queries.listing import END, PAGE_QUERIES, START, Position, QueryPage, page_of

pytestmark = pytest.mark.django_db(transaction=True)
ASKED = "queries=asked"


def make(owner, count, **fields):
    """Save queries of one user; return their numbers."""
    about = {"plan": PLAN, "stream": "ships", "status": Query.RUNNING} | fields
    name = about.pop("name", "query")
    rows = [Query(owner=owner, name=f"{name} {n}", **about) for n in range(count)]
    return [query.pk for query in Query.objects.bulk_create(rows)]


def all_pages(user, limit, **fields):
    """Return the numbers on all pages of a list, page by page; check what each page says."""
    after, pages = START, []
    while after != END:
        page = page_of(user, after=after, limit=limit, **fields)
        pages.append([query.pk for query in page.queries])
        assert after < page.end
        after = page.end
    assert page.total == sum(map(len, pages))
    return pages


@pytest.fixture
def many(user, other):
    """Save queries of two users in turns, of several kinds of visibility."""
    for _ in range(4):
        make(other, 3, shared=True, name="Port of Turku")
        make(user, 2, name="Own 100%")
        make(other, 2)
        make(user, 1, shared=True, stream="buses")
        make(user, 1, status=Query.CANCELLED)
        make(None, 1, shared=True, name="Example")
    return Query.objects.all()


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_the_pages_together_are_the_visible_queries_own_ones_first(many, user, limit):
    visible = [q for q in many if q.status != Query.CANCELLED and (q.shared or q.owner_id == user.pk)]
    expected = [q.pk for q in sorted(visible, key=lambda q: (q.owner_id != user.pk, q.pk))]
    pages = all_pages(user, limit)
    assert list(itertools.chain(*pages)) == expected
    assert all(len(page) == limit for page in pages[:-1])


@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("turku", {"Port of Turku"}),
        ("  PORT   of ", {"Port of Turku"}),
        ("bob", {"Port of Turku"}),
        ("100%", {"Own 100%"}),
        ("_", set()),
        ("buses", {"query"}),
        ("example ships", {"Example"}),
        ("", {"Port of Turku", "Own 100%", "query", "Example"}),
    ],
)
def test_each_word_of_a_search_is_in_the_name_the_owner_or_the_stream(many, user, search, names):
    found = Query.objects.filter(pk__in=itertools.chain(*all_pages(user, 5, search=search)))
    assert {query.name.rsplit(" ", 1)[0] for query in found} == names


def test_a_page_reads_no_more_than_itself(user, other, many):
    make(other, 300, shared=True)
    with CaptureQueriesContext(connection) as asked:
        page = page_of(user, limit=10)
        assert [query.document()["owner"] for query in page.queries] == ["ann"] * 10
    assert len(asked) <= 4
    assert all("LIMIT" in one["sql"] or "COUNT" in one["sql"] for one in asked if '"name"' in one["sql"])


def test_a_page_has_no_examples_that_the_user_removed_and_no_queries_of_other_spaces(many, user):
    RemovedExamples.show(user, False)
    Space.objects.create(name="prices", title="Prices", definition=Space.objects.get(pk="earth").definition)
    (there,) = make(user, 1, space_id="prices", name="There")
    assert there in itertools.chain(*all_pages(user, 5))
    listed = list(itertools.chain(*all_pages(user, 5, spaces=["earth"])))
    assert there not in listed
    assert not Query.objects.filter(pk__in=listed, owner=None).exists()


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), max_size=6), st.integers(1, 12), st.booleans())
def test_a_connection_is_told_of_what_lies_on_the_pages_that_it_got_without_a_gap(asked, number, mine):
    numbers = [*((True, n) for n in (2, 4, 6)), *((False, n) for n in (1, 3, 5, 7, 9, 11))]
    listing, told, reached = Listing(every=False), set(), START
    for begin, limit in asked:
        after = START if begin == 0 else Position.of(*numbers[min(begin, len(numbers)) - 1])
        rest = [one for one in numbers if Position.of(*one) > after]
        end = Position.of(*rest[limit - 1]) if len(rest) > limit else END
        listing.take(QueryPage([Query(pk=n) for _, n in rest[:limit]], 9, end), "", None, after)
        told |= {n for _, n in rest[:limit]}
        reached = max(reached, end) if after <= reached else reached
    document = {"query": number, "space": "earth"}
    expected = mine or number in told or Position.of(mine, number) <= reached
    assert listing.covers(document, mine) == expected
    assert listing.whole == (reached == END)


async def asked(socket, **fields):
    """Ask for a page of the list; return the reply."""
    await socket.tell("query.list", id="list", **fields)
    return await socket.hear("query.listed", id="list")


async def statuses_until_reply(socket):
    """Return what is told of queries until the reply to a request: their names and statuses."""
    await socket.tell("query.snapshot", id="end", query=999_999)
    statuses = []
    while (message := await socket.hear_any())["type"] != "error":
        statuses += [(message["name"], message["status"])] if message["type"] == "query.status" else []
    return statuses


async def test_a_client_that_asks_for_the_list_gets_pages_and_no_greeting_of_all_queries(user, other, connect):
    await sync_to_async(make)(other, PAGE_QUERIES + 20, shared=True)
    own = await sync_to_async(make)(user, 2)
    async with connect(user, ASKED) as socket:
        await socket.hear("hello")
        assert await statuses_until_reply(socket) == []
        first = await asked(socket)
        assert [query["query"] for query in first["queries"][:3]] == [*own, own[0] - PAGE_QUERIES - 20]
        assert [query["mine"] for query in first["queries"][:3]] == [True, True, False]
        assert (len(first["queries"]), first["total"]) == (PAGE_QUERIES, PAGE_QUERIES + 22)
        assert first["next"] == {"mine": False, "query": first["queries"][-1]["query"]}
        last = await asked(socket, after=first["next"])
        assert (len(last["queries"]), last["total"], last["next"]) == (22, PAGE_QUERIES + 22, None)
        found = await asked(socket, search="query 7", limit=3)
        assert [query["name"] for query in found["queries"]] == ["query 7", "query 17", "query 27"]
        assert found["total"] == 21


async def test_changes_of_listed_queries_and_of_ones_own_come_and_of_others_only_that_the_list_changed(
    streams, user, other, connect
):
    await sync_to_async(make)(other, 4, shared=True)
    edit = sync_to_async(queries.edit)
    numbers = [query.pk async for query in Query.objects.order_by("pk")]
    async with connect(user, ASKED) as socket:
        page = await asked(socket, limit=2)
        assert [query["query"] for query in page["queries"]] == numbers[:2]
        await sync_to_async(announce)([await Query.objects.select_related("owner").aget(pk=numbers[3])])
        await socket.silence("queries.changed")
        await edit(other, numbers[3], name="far")
        await edit(other, numbers[1], name="near")
        await socket.hear("queries.changed")
        assert (await socket.hear("query.status"))["name"] == "near"
        mine = await sync_to_async(queries.register)(user, "mine", PLAN)
        assert (await socket.hear("query.status"))["query"] == mine.pk
        await edit(other, numbers[0], shared=False)
        ended = await socket.hear("query.status")
        assert (ended["query"], ended["status"]) == (numbers[0], "cancelled")
        await asked(socket, search="query 2")
        await edit(other, numbers[2], name="found")
        assert (await socket.hear("query.status"))["name"] == "found"
        await asked(socket, after=page["next"])
        await sync_to_async(queries.register)(other, "at the end", PLAN, shared=True)
        assert (await socket.hear("query.status", name="at the end"))["mine"] is False
        socket.skipped.clear()
        await socket.silence("queries.changed")


async def test_a_subscribed_query_is_told_of_although_it_was_not_listed(engine, streams, user, other, connect):
    query = await sync_to_async(queries.register)(other, "theirs", PLAN, shared=True)
    async with connect(user, ASKED) as socket:
        engine.move({"near": INSIDE})
        await socket.tell("query.subscribe", query=query.pk)
        await socket.hear("answer.snapshot", query=query.pk)
        await sync_to_async(queries.edit)(other, query.pk, shared=False)
        await socket.hear("query.status", query=query.pk, status="cancelled")


async def test_a_list_of_subscriptions_ends_by_one_message(engine, streams, user, connect):
    made = [await sync_to_async(queries.register)(user, f"query {n}", PLAN) for n in range(3)]
    numbers = [query.pk for query in made]
    async with connect(user, ASKED) as socket:
        await socket.tell("query.subscribe", queries=numbers)
        for _ in numbers:
            await socket.hear("answer.snapshot")
        await socket.tell("query.unsubscribe", queries=numbers[:2])
        await socket.tell("query.snapshot", id="gone", query=numbers[0])
        await socket.hear("error", id="gone", code="query")
        engine.move({"near": INSIDE})
        assert (await socket.hear("answer.change"))["query"] == numbers[2]


async def test_an_address_with_an_unknown_word_is_an_error_and_lists_all(user, connect):
    await sync_to_async(make)(user, 2)
    async with connect(user, "queries=some") as socket:
        await socket.hear("error", code="fields")
        assert len(await statuses_until_reply(socket) + socket.skipped) >= 2


@pytest.mark.parametrize(
    "fields",
    [
        {"limit": 0},
        {"limit": PAGE_QUERIES + 1},
        {"after": 7},
        {"after": {"query": 7}},
        {"after": {"mine": 1, "query": 7}},
        {"search": 7},
        {"search": "x" * 200},
        {"spaces": "earth"},
    ],
)
async def test_a_question_for_a_page_is_checked(fields, user, connect):
    async with connect(user) as socket:
        await socket.tell("query.list", id=1, **fields)
        assert (await socket.hear("error", id=1))["code"] == "fields"
