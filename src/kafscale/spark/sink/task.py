"""A task of the sink: encodes its rows as record batches, and hands them to the driver.

A task writes nothing to a broker; it only asks for what it needs to know of topics. So a task that
fails, is killed, retried or run twice has no effect, and the driver gets the batches of exactly one
attempt of each.

A record goes to the partition of its column; else to that of its key, as Kafka's producers choose
it; else, for each Arrow batch, to a random one. No Python code runs per record.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import WriterCommitMessage

from kafscale.aio.clock import clock
from kafscale.client.blocking import BlockingClient
from kafscale.client.security import Security
from kafscale.errors import InvalidRequestError
from kafscale.spark.codec.encoder import Encoder
from kafscale.spark.sink import result_size
from kafscale.spark.sink.options import SinkOptions
from kafscale.spark.sink.rows import by_topic, to_records
from kafscale.spark.sink.topic import WrittenTopic, find
from kafscale.text.topic_partition import TopicPartition

_NO_PARTITION: Final = -1


@dataclass
class TaskOutput(WriterCommitMessage):
    """The batches of a task, in the order of its rows, by partition."""

    query_id: str
    """Of the streaming query; empty for a batch."""
    batches: dict[TopicPartition, list[bytearray]] = field(default_factory=dict)
    size_bytes: int = 0


class TaskEncoder:
    """Encodes the rows of one task."""

    def __init__(
        self,
        options: SinkOptions,
        client: BlockingClient,
        query_id: str,
        random: Random,
        size_bytes_max: int | None = None,
    ) -> None:
        """`size_bytes_max` is the limit of the output."""
        self.output = TaskOutput(query_id)
        self._options = options
        self._client = client
        self._random = random
        self._size_bytes_max = size_bytes_max
        self._topics: dict[str, WrittenTopic] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        for topic, part in by_topic(rows, self._options.topic):
            encoder = Encoder(to_records(part, clock()))
            written = self._topic(topic)
            partitions = self._partitions(topic, written.partition_count, part, encoder)
            for index in np.unique(partitions).tolist():
                chosen = np.flatnonzero(partitions == index)
                batches = encoder.batches(
                    chosen, self._options.codec, message_bytes_max=written.message_bytes_max
                )
                self._keep((topic, index), batches)

    def _keep(self, topic_partition: TopicPartition, batches: Iterable[bytearray]) -> None:
        kept = self.output.batches.setdefault(topic_partition, [])
        for batch in batches:
            self.output.size_bytes += len(batch)
            result_size.check(self.output.size_bytes, self._size_bytes_max)
            kept.append(batch)

    def _partitions(
        self, topic: str, count: int, rows: pa.RecordBatch, encoder: Encoder
    ) -> NDArray[np.int32]:
        keyless = np.full(rows.num_rows, self._random.randrange(count), np.int32)
        chosen = encoder.partitions(count, keyless)
        if "partition" not in rows.schema.names:
            return chosen
        column = rows.column("partition").cast(pa.int32())
        given = column.fill_null(_NO_PARTITION).to_numpy(zero_copy_only=False)
        is_given = column.is_valid().to_numpy(zero_copy_only=False)
        wrong = given[is_given & ((given < 0) | (given >= count))]
        if wrong.size:
            raise InvalidRequestError(
                f"topic {topic} has {count} partitions, but a row has partition {wrong[0]}"
            )
        result: NDArray[np.int32] = np.where(is_given, given, chosen)
        return result

    def _topic(self, name: str) -> WrittenTopic:
        if name not in self._topics:
            self._topics[name] = self._client.run(lambda client: find(client, name))
        return self._topics[name]


def encode(
    options: SinkOptions,
    security: Security,
    query_id: str,
    rows: Iterable[pa.RecordBatch],
    size_bytes_max: int | None,
) -> TaskOutput:
    """Encode all rows of a task."""
    random = Random()  # noqa: S311 - of partitions.
    with BlockingClient(options.bootstrap, security) as client:
        encoder = TaskEncoder(options, client, query_id, random, size_bytes_max)
        for batch in rows:
            encoder.add(batch)
        return encoder.output
