"""The shuffle of compaction: partition, hash of the key and offsets, and nothing else.

    keys         tasks read records, and share out a row for each key by its hash
    newest       tasks get all rows of some keys; the newest offset of each survives, perhaps
    survivors    tasks get all survivors of some segments, and keep them aside

Rows go through Spark as bytes, thousands at a time: it neither sees single ones nor sorts them.
"""

from functools import partial
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from rich.console import Console

from kafscale.errors import OperatingError
from kafscale.spark.jobs.compact.key_scan import KeysWork, newest_of
from kafscale.spark.jobs.compact.surviving_offsets import SurvivorsWork, kept_aside, placed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def survivors(
    spark: "SparkSession",
    keys_work: KeysWork,
    survivors_work: SurvivorsWork,
    *,
    progress: bool = True,
) -> dict[int, int]:
    """How many records survive in which segment; a negative one is an incomplete partition."""
    if not keys_work.tasks or not survivors_work.targets:
        return {}
    count = len(keys_work.tasks)
    shared_out = (
        spark.sparkContext.parallelize(range(count), count)
        .flatMap(partial(newest_of, keys_work))
        .partitionBy(keys_work.buckets, int)
        .mapPartitions(partial(placed, survivors_work))
        .partitionBy(len(survivors_work.targets), int)
        .mapPartitions(partial(kept_aside, survivors_work))
    )
    console = Console(stderr=True, quiet=not progress)
    try:
        with console.status("reading keys"):
            return dict(shared_out.collect())
    except Py4JJavaError as error:
        raise OperatingError(f"reading keys failed: {_reason(error)}") from error


def _reason(error: Py4JJavaError) -> str:
    """The last line that Python has said, of the pages that Spark prints."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if "Error: " in line]
    return said[-1] if said else lines[0]
