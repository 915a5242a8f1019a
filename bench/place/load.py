"""The load: every object reports every 30 s, in blocks as the gateway writes them; a tick is sent every second."""

import argparse
import threading
import time

import numpy as np
import redis

from bench.load import CONFIG, Generator, LoadBlock
from bench.place.workload import SPACE, STREAM, Workload, key_of
from streaming.elements import point_elements
from streaming.logs import Log, block_entries

TICK_S = 1.0


class Travellers(LoadBlock):
    """Objects of a workload that report in turn.

    Parameters
    ----------
    partition, fields :
        As for `bench.load.LoadBlock`.
    workload : Workload
    """

    def __init__(self, partition: int, fields: dict, workload: Workload) -> None:
        super().__init__(partition, fields, SPACE)
        keys = self.table["key"].to_pylist()
        self.workload, self.reports = workload, 0
        self.numbers = np.array([int(key.split()[1]) for key in keys])

    def advance(self, rng: np.random.Generator, motion: str, now_us: int) -> None:
        """Move the objects to the places of their next report."""
        self.reports += 1
        self.move(self.workload.places(self.numbers, self.reports), now_us)


def make_blocks(workload: Workload, rows: int, partitions: int) -> list[Travellers]:
    """Return blocks that hold every object once; the blocks of all partitions hold `rows` rows together in one turn."""
    blocks = []
    for start in range(0, workload.objects, rows):
        numbers = np.arange(start, min(start + rows, workload.objects))
        keys = [key_of(number) for number in numbers.tolist()]
        table = point_elements(STREAM, keys, np.zeros(len(keys)), workload.places(numbers, 0), [{}] * len(keys), SPACE)
        entries = block_entries(table, STREAM, 0, partitions)
        blocks += [Travellers(partition, fields, workload) for partition, fields in entries]
    return blocks


def clock(log: Log) -> None:
    """Send ticks for ever, as the gateway does: the engine trims the entries of a batch with the batch after it."""
    while True:
        log.send("tick", now_us=time.time_ns() // 1000)
        time.sleep(TICK_S)


def main() -> None:
    """Fill the engine with the objects, print ``filled``, and go on until ended."""
    parser = argparse.ArgumentParser(prog="python -m bench.place.load", description=main.__doc__)
    parser.add_argument("redis_url")
    parser.add_argument("--crowd", type=int, default=Workload.crowd)
    parser.add_argument("--partitions", type=int, default=2)
    arguments = parser.parse_args()
    workload = Workload(arguments.crowd)
    log = Log(redis.Redis.from_url(arguments.redis_url), SPACE.name, arguments.partitions)
    rows = min(CONFIG.block_rows, max(1, round(workload.rate * CONFIG.flush_s)))
    generator = Generator(log, make_blocks(workload, rows, arguments.partitions), "")
    threading.Thread(target=clock, args=(log,), daemon=True).start()
    generator.fill()
    print("filled", flush=True)
    for _ in generator.run(round(workload.rate)):
        pass


if __name__ == "__main__":
    main()
