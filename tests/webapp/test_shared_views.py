"""Equal views of several connections are one query of the engine, until one of them moves."""

from hypothesis import given
from hypothesis import strategies as st

from webapp.hub.views import Views

BOX, OTHER = {"lo": [20, 50], "hi": [30, 60]}, {"lo": [25, 50], "hi": [35, 60]}


async def shown(socket, area=BOX):
    """Show an area; return the number of the view."""
    await socket.tell("view.subscribe", id="v", streams=["ships"], area=area)
    return (await socket.hear("view.status", id="v"))["views"]["ships"]


async def test_equal_views_are_one_query_and_each_connection_gets_all_of_the_answer(engine, streams, user, connect):
    engine.move({"a": [25, 55]})
    async with connect(user) as one, connect(user) as two:
        number = await shown(one)
        await one.hear("answer.snapshot", query=number)
        assert await shown(two) == number
        await two.hear("answer.snapshot", query=number)
        engine.move({"b": [26, 56]})
        changes = [await socket.hear("answer.change", query=number) for socket in (one, two)]
        assert changes[0]["rows"] == changes[1]["rows"]


async def test_who_moves_a_shared_view_gets_one_of_its_own_and_the_others_keep_theirs(engine, streams, user, connect):
    engine.move({"a": [25, 55], "east": [34, 55]})
    async with connect(user) as one, connect(user) as two:
        number = await shown(one)
        await one.hear("answer.snapshot", query=number)
        assert await shown(two) == number
        await two.hear("answer.snapshot", query=number)
        moved = await shown(two, OTHER)
        assert moved != number
        snapshot = await two.hear("answer.snapshot", query=moved)
        assert len(snapshot["rows"]) == 2
        engine.move({"west": [21, 55]})
        await one.hear("answer.change", query=number)
        await two.silence("answer.change")
        assert await shown(two, {"lo": [20, 50], "hi": [36, 60]}) == moved  # alone, it keeps its number
        await two.hear("answer.change", query=moved)


class Link:
    """Stands for the way to the engine: notes which plan each view has there."""

    id = "web"

    def __init__(self):
        self.running = {}

    def entry(self, op, query, revision, plan=None):
        return op, query, plan

    def send(self, name, *commands):
        for op, query, plan in (command for command in commands if isinstance(command, tuple)):
            if op == "register":
                self.running[query] = plan
            else:
                del self.running[query]


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 2)), max_size=40))
def test_whatever_connections_do_each_has_a_view_with_its_plan_and_no_other_view_runs(steps):
    link = Link()
    views, held = Views(link), {}
    for connection, plan in steps:
        if plan is None:
            if connection in held:
                views.let_go(held.pop(connection)[0])
        elif connection in held:
            held[connection] = views.move(held[connection][0], {"area": plan}), {"area": plan}
        else:
            held[connection] = views.hold({"area": plan}), {"area": plan}
        assert {number for number, _ in held.values()} == set(link.running)
        assert all(link.running[number] == plan for number, plan in held.values())
    for number, _ in held.values():
        views.let_go(number)
    assert not link.running and not views._shared and not views._holders


def test_connections_that_open_equal_views_share_them_all():
    views = Views(link := Link())
    assert len({views.hold({"area": 1}) for _ in range(32)}) == 1 == len(link.running)
