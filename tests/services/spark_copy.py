"""A program: a streaming query that copies what a topic has now, exactly once.

python -m services.spark_copy DATA BOOTSTRAP SOURCE TARGET CHECKPOINT
"""

import sys
from pathlib import Path
from typing import Final

from services.broker import BrokerProcess

OFFSETS_PER_MICRO_BATCH: Final = 30
MASTER: Final = "local[2,4]"
"""Two tasks at a time, each with three retries."""


def command(broker: BrokerProcess, source: str, target: str, checkpoint: Path) -> list[str]:
    program = [sys.executable, "-m", "services.spark_copy"]
    return [*program, str(broker.data), broker.address, source, target, str(checkpoint)]


def _copy(data: str, address: str, source: str, target: str, checkpoint: str) -> None:
    from kafscale.spark import register
    from kafscale.spark.runtime.session import session
    from services.spark import SETTINGS

    with session("copy", settings={**SETTINGS, "spark.master": MASTER}) as spark:
        register(spark)
        records = (
            spark.readStream.format("kafscale")
            .options(subscribe=source, startingOffsets="earliest", taskBytes="1KB")
            .option("maxOffsetsPerTrigger", str(OFFSETS_PER_MICRO_BATCH))
            .load(data)
        )
        query = (
            records.select("key", "value")
            .writeStream.format("kafscale")
            .option("kafka.bootstrap.servers", address)
            .options(topic=target, checkpointLocation=checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


if __name__ == "__main__":
    _copy(*sys.argv[1:])
