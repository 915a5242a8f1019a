"""What is started as Python: ask the fork server to run a module, and end as the module ends.

This program imports very little, so that it starts fast. The interpreter itself runs any command line other than
``-m module ...``, and every command line when no fork server answers.
"""

import json
import os
import resource
import signal
import socket
import sys


def main(folder: str, arguments: list[str]) -> int:
    """Let the fork server of a folder run a command line; return the exit code, or a signal's number, negative."""
    here = os.getcwd()
    connection = socket.socket(socket.AF_UNIX)
    try:
        if arguments[:1] != ["-m"]:
            raise ConnectionRefusedError
        os.chdir(folder)  # the path of a socket may have about 100 bytes at most
        connection.connect("socket")
    except OSError:
        os.chdir(here)
        os.execv(sys.executable, [sys.executable, *arguments])
    wanted = json.dumps({"arguments": arguments, "environment": dict(os.environ), "folder": here}).encode() + b"\n"
    sent = socket.send_fds(connection, [wanted], [0, 1, 2])
    connection.sendall(wanted[sent:])
    # Now only the module holds the streams, so the reader of its output sees their end.
    for stream in (0, 1, 2):
        os.close(stream)
    code = connection.recv(2)
    return int.from_bytes(code, "big", signed=True) if code else 1


def end(code: int) -> None:
    """End with an exit code, or by the signal of a negative one."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the module has left what is to be left
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    end(main(sys.argv[1], sys.argv[2:]))
