"""Spark's Python daemon on a machine of a cluster: it imports everything once, and forks a process for each task.

The processes that Spark's own daemon forks import PySpark and the servers themselves: seconds for which all answers
wait when an engine starts or takes over. On the machine of the driver, the fork server does this.
"""

import gc
import importlib

from pyspark.daemon import manager

from streaming.engine.python_workers import PRELOADED

if __name__ == "__main__":
    for module in PRELOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    manager()
