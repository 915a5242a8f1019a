"""Processes of imports that are forked from one which has loaded what they need, so that a start costs no second.

Only how they start differs: then each runs `streaming.layers.__main__`, as the command does.
"""

import multiprocessing
import os
import sys
from multiprocessing.reduction import DupFd

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.layers.loaded"])


class ForkedImport:
    """Stands for the `subprocess.Popen` of an import.

    Parameters
    ----------
    command : list of str
        Not used: there is one.
    stderr : file
    **options
        Not used: standard input and output are pipes, and it is the first process of a session.
    """

    def __init__(self, command, stderr, **options):
        read, told = os.pipe()
        answers, write = os.pipe()
        self._process = _context.Process(target=_run, args=[DupFd(fd) for fd in (read, write, stderr.fileno())])
        self._process.start()
        for fd in (read, write):
            os.close(fd)
        self.stdin, self.stdout = os.fdopen(told, "wb"), os.fdopen(answers, "rb")

    def kill(self):
        self._process.kill()

    def wait(self):
        self._process.join()
        return self._process.exitcode


def _run(*files):
    from streaming.layers.__main__ import main

    for number, file in enumerate(files):
        os.dup2(file.detach(), number)
    sys.stdin = os.fdopen(0)  # multiprocessing has put another one in its place
    os.setsid()
    main()
