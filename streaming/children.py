"""Work for users in child processes, with limits of memory and time: ``python -m streaming.children <bytes>``.

A child reads a function and its arguments from standard input, and writes what it returns to standard output; then it
waits for the next ones, since it takes a second or more to load the libraries. Who asks and who answers are the same
program, so they exchange pickles. Files from elsewhere are read by `streaming.layers`, which exchanges JSON.
"""

import contextlib
import math
import os
import pickle
import selectors
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from streaming.confined import WAITED_FOR, command, confine, memory_errors
from streaming.errors import LookoutError
from streaming.language import thousands

R = TypeVar("R")

# Who asks looks this often whether the answer is wanted still.
LOOK_S = 0.2
# A child that nobody kills, because its parent has died, ends so long after its time; and so soon after its output.
GRACE_S = 5
LENGTH_BYTES = 8


class LimitReached(LookoutError):
    """Work that a child process did not finish, most often for a limit; the message says the rule and the value."""


class Child:
    """A child process that reads from its standard input and answers on its standard output.

    Parameters
    ----------
    module : str
    *arguments : str
    """

    def __init__(self, module: str, *arguments: str) -> None:
        # It has a session of its own, so that Ctrl-C reaches only the parent, which then ends the child.
        self._process = subprocess.Popen(
            command(WAITED_FOR, module, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[1],
            start_new_session=True,
        )
        assert self._process.stdin and self._process.stdout  # both are pipes
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def write(self, words: bytes) -> None:
        """Write to its standard input; raise BrokenPipeError or ValueError if it has ended."""
        self._stdin.write(words)
        self._stdin.flush()

    def read(self, size: int, deadline_s: float, wanted: Callable[[], bool] = lambda: True) -> bytes:
        """Return so many bytes of its standard output.

        Parameters
        ----------
        size : int
        deadline_s : float
            By `time.monotonic`.
        wanted : callable
            Tells whether the answer is wanted still; called several times a second.

        Raises
        ------
        TimeoutError
            When they do not come before the deadline, or are not wanted any more.
        EOFError
            When the process ends before.
        """
        found = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while len(found) < size:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not wanted():
                    raise TimeoutError
                if not selector.select(min(LOOK_S, left_s)):
                    continue
                chunk = os.read(self._stdout.fileno(), min(size - len(found), 1 << 20))
                if not chunk:
                    raise EOFError
                found += chunk
        return bytes(found)

    def read_frame(self, deadline_s: float, wanted: Callable[[], bool] = lambda: True) -> bytes:
        """Return a text of bytes that its length precedes, as `read` does."""
        return self.read(int.from_bytes(self.read(LENGTH_BYTES, deadline_s, wanted), "big"), deadline_s, wanted)

    def code(self) -> int:
        """Return the code with which the process ended whose output has ended; it is killed if it goes on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        return self.kill()

    def kill(self) -> int:
        """End the process at once, and return its code. Whoever reads from it hears that it ended."""
        self._process.kill()
        return self._process.wait()

    def close(self) -> None:
        """End the process and close its pipes, when nobody reads from it."""
        self.kill()
        for pipe in (self._stdin, self._stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Children:
    """Child processes that carry out functions, and are kept for the next ones.

    Parameters
    ----------
    idle_s : float
        A child that has nothing to do for so long ends.
    """

    def __init__(self, idle_s: float = 60.0) -> None:
        self._idle_s, self._lock = idle_s, threading.Lock()
        self._idle: list[tuple[float, int, Child]] = []

    def run(
        self,
        function: Callable[..., R],
        arguments: tuple[Any, ...],
        memory_bytes: int,
        seconds: float,
        wanted: Callable[[], bool] = lambda: True,
    ) -> R:
        """Carry out a function in a child process, and return what it returns.

        Parameters
        ----------
        function : callable
            Of a module; it is found by its name, and arguments and result are pickled.
        arguments : tuple
        memory_bytes : int
            How much memory the child may have; memory that files back does not count.
        seconds : float
            How long it may take.
        wanted : callable
            Tells whether the result is wanted still; called several times a second.

        Raises
        ------
        LimitReached
            When it takes too much time or memory, or the child ends. The child is killed then.
        LookoutError
            As the function does.
        """
        child = self._taken(memory_bytes)
        try:
            kind, told = _asked(child, (seconds, function, arguments), wanted)
            if kind is MemoryError:
                raise MemoryError
        except MemoryError:
            child.close()
            raise too_large(memory_bytes) from None
        except BaseException:
            child.close()
            raise
        self._keep(child, memory_bytes)
        if issubclass(kind, LookoutError):
            raise kind.of_document(told)
        if issubclass(kind, Exception):
            raise RuntimeError(told)
        return told

    def end(self) -> None:
        """End all children that have nothing to do."""
        self._sweep(float("-inf"))

    def _taken(self, memory_bytes: int) -> Child:
        with self._lock:
            for place, (_, allowed, child) in enumerate(self._idle):
                if allowed == memory_bytes and not child.ended:
                    del self._idle[place]
                    return child
        return Child("streaming.children", str(memory_bytes))

    def _keep(self, child: Child, memory_bytes: int) -> None:
        with self._lock:
            self._idle.append((time.monotonic(), memory_bytes, child))
        timer = threading.Timer(self._idle_s + LOOK_S, self._sweep, [self._idle_s])
        timer.daemon = True
        timer.start()

    def _sweep(self, idle_s: float) -> None:
        """End the children that have had nothing to do for so long."""
        with self._lock:
            since_s = time.monotonic() - idle_s
            old = [one for one in self._idle if one[0] <= since_s or one[2].ended]
            self._idle = [one for one in self._idle if one not in old]
        for _, _, child in old:
            child.close()


def too_large(memory_bytes: int) -> LimitReached:
    """Return the error of work that needs more memory than it may have."""
    return LimitReached(
        "what is asked must be answered with %(memory_bytes)s bytes of memory: ask for less; this needs more",
        memory_bytes=thousands(memory_bytes),
    )


def _asked(child: Child, work: tuple[float, Any, Any], wanted: Callable[[], bool]) -> tuple[type, Any]:
    """Return what a child answers, as `_answer` does; raise MemoryError if it ended for want of memory."""
    seconds = work[0]
    try:
        child.write(_framed(work))
        return pickle.loads(child.read_frame(time.monotonic() + seconds, wanted))
    except TimeoutError:
        raise LimitReached(
            "what is asked must be answered within %(seconds)g s: ask for less; this takes longer", seconds=seconds
        ) from None
    except (EOFError, BrokenPipeError):
        code = child.code()
        if code == -signal.SIGABRT:  # so do programs in Rust and C++ end that get no memory
            raise MemoryError from None
        raise LimitReached(
            "a child process must come to its end; this one ended with code %(code)s", code=code
        ) from None


def _framed(words: Any) -> bytes:
    text = pickle.dumps(words)
    return len(text).to_bytes(LENGTH_BYTES, "big") + text


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[type, Any]:
    """Return what a function returns, or its error, as the class and what tells of it."""
    try:
        with memory_errors():
            return object, function(*arguments)
    except LookoutError as error:
        return type(error), error.document()
    except MemoryError:
        return MemoryError, ""
    except Exception:
        return RuntimeError, traceback.format_exc()


def main() -> None:
    """Carry out functions until standard input ends."""
    confine(int(sys.argv[1]))
    told = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    while head := sys.stdin.buffer.read(LENGTH_BYTES):
        seconds, function, arguments = pickle.loads(sys.stdin.buffer.read(int.from_bytes(head, "big")))
        signal.alarm(math.ceil(seconds) + GRACE_S)
        told.write(_framed(_answer(function, arguments)))
        told.flush()
        signal.alarm(0)


if __name__ == "__main__":
    main()
