"""What Spark runs to get Python workers: it loads what they all need, then forks one a task slot.

A worker that starts by itself spends two seconds of a processor on loading Arrow and the compiled
decoder; forked from here it has both at once. And workers look for garbage after every task, which
with all these modules takes 70 ms, unless they are set aside. Measured with PySpark 4.2.0 on two
slots: 200 empty tasks took 2.5 s from here, 5 s from Spark's own daemon, and 15 s from workers with
the decoder in them. Sessions of ours name this module as `spark.python.daemon.module`.

The law: nothing is loaded here that keeps threads of its own, other than allocators that are made
to be forked, and no store is opened: their event loops would not live on in the workers.
"""

import gc
import importlib
from contextlib import suppress
from typing import Final

LOADED: Final = ("pyspark.worker", "pyarrow", "kafscale.spark.read.task")
"""What tasks use."""


def load() -> None:
    """Load what can be loaded; of what cannot, a task that needs it will complain."""
    for name in LOADED:
        with suppress(Exception):
            importlib.import_module(name)
    with suppress(Exception):
        importlib.import_module("kafscale.spark.codec.decoder").warm_up()
    gc.freeze()


if __name__ == "__main__":
    from pyspark.daemon import manager

    load()
    manager()
