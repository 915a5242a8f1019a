"""The disk of these tests has what was synced, whoever's sync ends last."""

import os
import threading

from tests.power.disk import Disk


def test_a_sync_that_began_before_another_and_ends_after_it_takes_nothing_away(tmp_path, monkeypatch):
    began, may_end, real = threading.Event(), threading.Event(), os.fsync

    def slow_at_first(descriptor):
        real(descriptor)
        if not began.is_set():
            began.set()
            may_end.wait()

    monkeypatch.setattr(os, "fsync", slow_at_first)
    disk = Disk(tmp_path, monkeypatch)
    with (tmp_path / "file").open("wb", buffering=0) as file:
        file.write(b"first")
        first = threading.Thread(target=os.fsync, args=(file.fileno(),))
        first.start()
        began.wait()
        file.write(b", second")
        os.fsync(file.fileno())
        may_end.set()
        first.join()
    folder = os.open(tmp_path, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    after = disk.after_a_cut(tmp_path.with_name("after"))
    disk.close()
    assert (after / "file").read_bytes() == b"first, second"
