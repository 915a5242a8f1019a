"""Spark's Python: ask the fork server to run a module, and end with the exit code of the module.

This program imports very little, so that it starts fast. The interpreter itself runs any command line other than
``-m module ...``, and every command line when no fork server answers.
"""

import json
import os
import socket
import sys


def main(folder: str, arguments: list[str]) -> int:
    """Let the fork server of a folder run a command line; return the exit code."""
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
    wanted = json.dumps({"arguments": arguments, "environment": dict(os.environ)}).encode() + b"\n"
    sent = socket.send_fds(connection, [wanted], [0, 1, 2])
    connection.sendall(wanted[sent:])
    # Now only the module holds the streams, so the reader of its output sees their end.
    for stream in (0, 1, 2):
        os.close(stream)
    code = connection.recv(1)
    return code[0] if code else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
