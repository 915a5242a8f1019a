"""Users who wait get their turns one after the other, and none can keep the others from theirs."""

import asyncio
import contextlib
import random
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.live import wait_for
from webapp.rights.fair import FairTurns, TurnLimits
from webapp.words.refusals import Refused


def turns(at_once=1, wait_s=30.0, per_user=1, waiting=8):
    return FairTurns("reports", lambda: TurnLimits(at_once, wait_s, per_user, waiting))


def user(number):
    return SimpleNamespace(pk=number)


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


class Asked:
    """Many who ask for a turn, each with a gate at which it ends."""

    def __init__(self, fair):
        self.fair, self.order, self.gates, self.tasks = fair, [], {}, []

    async def ask(self, who):
        number = len(self.tasks)
        self.gates[number] = asyncio.Event()
        self.tasks.append(asyncio.create_task(self._take(number, who)))
        await settle()
        return number

    async def _take(self, number, who):
        async with self.fair.turn_later(user(who)):
            self.order.append((number, who))
            await self.gates[number].wait()

    async def end(self, number):
        self.gates[number].set()
        await self.tasks[number]
        await settle()


async def test_who_asked_often_waits_for_those_who_have_had_no_turn():
    asked = Asked(turns())
    mine = [await asked.ask("ann") for _ in range(4)]
    others = [await asked.ask(who) for who in ("bob", "cid")]
    await asked.end(mine[0])
    await asked.end(others[0])
    late = await asked.ask("dan")  # comes when ann has had one turn, and cid none
    await asked.end(others[1])
    for number in (mine[1], late, mine[2], mine[3]):
        asked.gates[number].set()
    await asyncio.gather(*asked.tasks)
    assert [who for _, who in asked.order] == ["ann", "bob", "cid", "ann", "dan", "ann", "ann"]


async def test_one_user_takes_no_second_turn_although_one_is_free():
    asked = Asked(turns(at_once=2))
    first, second = await asked.ask("ann"), await asked.ask("ann")
    assert len(asked.order) == 1
    other = await asked.ask("bob")
    assert [who for _, who in asked.order] == ["ann", "bob"]
    for number in (first, second, other):
        await asked.end(number)


async def test_waiting_is_bounded_for_each_user_and_a_refusal_says_the_rule_and_the_value():
    asked = Asked(turns(waiting=2))
    numbers = [await asked.ask("ann") for _ in range(3)]
    with pytest.raises(Refused, match="a user may wait for at most 2 reports: try again in a moment; got one more"):
        async with asked.fair.turn_later(user("ann")):
            pass
    numbers.append(await asked.ask("bob"))
    for number in numbers:
        asked.gates[number].set()
    await asyncio.gather(*asked.tasks)
    assert len(asked.order) == 4


async def test_who_waits_too_long_or_leaves_gives_up_the_place():
    asked = Asked(turns())
    first, leaving, last = await asked.ask("ann"), await asked.ask("bob"), await asked.ask("cid")
    asked.tasks[leaving].cancel()
    await asyncio.gather(asked.tasks[leaving], return_exceptions=True)
    asked.fair._limits = lambda: TurnLimits(1, 0.01, 1, 8)
    with pytest.raises(Refused, match=r"at most 1 reports at once.*; got one more for 0\.01 s"):
        async with asked.fair.turn_later(user("dan")):
            pass
    await asked.end(first)
    await asked.end(last)
    assert [who for _, who in asked.order] == ["ann", "cid"]
    assert not asked.fair._waiting and not asked.fair._taken


def test_threads_take_turns_too():
    fair, inside, most = turns(at_once=2, waiting=20), [], []

    def take(number):
        with fair.turn(user(number)):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)

    threads = [threading.Thread(target=take, args=[number % 3]) for number in range(30)]
    with fair.turn(user("ann")), fair.turn(user("bob")):
        for thread in threads:
            thread.start()
        wait_for(lambda: sum(map(len, fair._waiting.values())) == 30, "all to wait")
        assert not inside
    for thread in threads:
        thread.join()
    assert len(most) == 30 and max(most) <= 2 and not fair._taken


@given(st.integers(1, 3), st.integers(1, 2), st.lists(st.sampled_from("abcd"), max_size=25), st.randoms())
def test_turns_are_never_more_than_allowed_and_all_are_given_in_rounds(at_once, per_user, who, rng: random.Random):
    fair = turns(at_once, 30.0, per_user, 100)
    waiting = [(one, fair._asked(one, fair._limits())) for one in who]
    given_to = []
    while waiting:
        ready = [pair for pair in waiting if pair[1].done()]
        assert 0 < len(ready) <= at_once and max(map([w for w, _ in ready].count, "abcd")) <= per_user
        late = {w for w, one in waiting if not one.done()}
        assert len(ready) == at_once or all([w for w, _ in ready].count(one) == per_user for one in late)
        ended = rng.choice(ready)
        waiting.remove(ended)
        fair._ended(*ended)
        given_to.append(ended[0])
    assert sorted(given_to) == sorted(who) and not fair._taken and not fair._waiting


def test_a_failure_in_a_turn_ends_it():
    fair = turns()
    for _ in range(3):
        with contextlib.suppress(KeyError), fair.turn(user("ann")):
            raise KeyError
    assert not fair._taken
