"""Spark's Python: has the fork server run a module, and ends as the module does.

It imports next to nothing, so that it starts fast. A command line other than ``-m module ...`` is run by the
interpreter itself, and so is every command line when no fork server answers.
"""

import json
import os
import socket
import sys


def main(folder: str, arguments: list[str]) -> int:
    """Run a command line by the fork server of a folder; return the exit code."""
    here = os.getcwd()
    connection = socket.socket(socket.AF_UNIX)
    try:
        if arguments[:1] != ["-m"]:
            raise ConnectionRefusedError
        os.chdir(folder)  # the path of a socket may have about 100 bytes
        connection.connect("socket")
    except OSError:
        os.chdir(here)
        os.execv(sys.executable, [sys.executable, *arguments])
    wanted = json.dumps({"arguments": arguments, "environment": dict(os.environ)}).encode() + b"\n"
    sent = socket.send_fds(connection, [wanted], [0, 1, 2])
    connection.sendall(wanted[sent:])
    # Now only the module holds them, and who reads its output sees the end.
    for stream in (0, 1, 2):
        os.close(stream)
    code = connection.recv(1)
    return code[0] if code else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
