"""The child processes of a web process, which answer what takes long."""

import atexit

from streaming.children import Children

CHILDREN = Children()
atexit.register(CHILDREN.end)
