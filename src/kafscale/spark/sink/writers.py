"""The sink `kafscale`: writes frames and streams to topics, exactly once.

    frame.write.format("kafscale").mode("append").options(**sink).save()
    stream.writeStream.format("kafscale").options(**sink, checkpointLocation=…).start()

Each batch, and each micro-batch of a stream, is one transaction, whose transactional id is the
query's. The decision about the design:

* Spark lets a sink neither choose how rows are distributed over tasks, nor which attempt of a task
  counts, before all tasks are done. So tasks do not produce: they encode and compress their rows
  (`task`), and their commit messages have the batches. Then the driver, which passes bytes on
  without looking at records, writes all of them (`delivery`).
* One transaction for each task, which the driver commits after its decision, would scale with the
  tasks. But a coordinator aborts what is open for longer than the transaction timeout: a driver
  that is away for long after the decision would find some of the tasks committed, and others lost.
  Also, every open transaction holds up the consumers of its partitions while the slowest task runs.
* Tasks that share one producer need one writer for each partition, which Spark cannot guarantee,
  and a retried task would have to fail the whole batch.

The price: the compressed records of a micro-batch must fit into the driver. Spark fails the query
above `spark.driver.maxResultSize`; a limit of the source (`maxOffsetsPerTrigger`) keeps below it. A
micro-batch that is in the log of the checkpoint cannot be made smaller (see `result_size`).

The id of a query is that of its checkpoint, so a new checkpoint starts a new sequence of
micro-batches. An empty micro-batch writes nothing. A stream in complete mode appends its result
each time, as to Spark's Kafka sink.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from kafscale.client.blocking import BlockingClient
from kafscale.client.client import Client
from kafscale.client.security import Security
from kafscale.client.transactions.producer import TransactionSettings
from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.spark.sink import result_size
from kafscale.spark.sink.delivery import MicroBatch, collect, deliver
from kafscale.spark.sink.options import SinkOptions, parse
from kafscale.spark.sink.rows import check_schema
from kafscale.spark.sink.task import TaskOutput, encode

logger = get_logger(__name__)

_QUERY_ID = "sql.streaming.queryId"
"""The local property of tasks that has the id of their query."""

Messages = Sequence[WriterCommitMessage | None]


@dataclass(frozen=True)
class Sink:
    """The target of a query, as it is sent to tasks."""

    options: SinkOptions
    security: Security

    @classmethod
    def of(cls, options: Mapping[str, str], security: Security, schema: StructType) -> "Sink":
        parsed = parse(options)
        check_schema(schema, parsed.topic)
        return cls(parsed, security)

    def encode(self, query_id: str, rows: Iterator[pa.RecordBatch]) -> TaskOutput:
        size_bytes_max = result_size.parse_limit(_local_property(result_size.SETTING))
        return encode(self.options, self.security, query_id, rows, size_bytes_max)

    def commit(self, messages: Messages, name: str = "", number: int | None = None) -> None:
        """Write the output of all tasks; `number` is that of the micro-batch of a stream."""
        outputs = [each if isinstance(each, TaskOutput) else None for each in messages]
        query_id, batches = collect(outputs)
        if not batches:
            return
        transactional_id = f"{self.options.prefix}-{name or query_id}"
        micro_batch = None if number is None else MicroBatch(transactional_id, number)
        settings = TransactionSettings(timeout_ms=self.options.timeout_ms)

        async def write(client: Client) -> bool:
            return await deliver(client, transactional_id, settings, batches, micro_batch)

        with BlockingClient(self.options.bootstrap, self.security) as client:
            is_written = client.run(write)
        if not is_written:
            logger.info("micro-batch was written before", query=query_id, batch=number)


def _local_property(name: str) -> str | None:
    """A local property of the task; settings that differ from the defaults are among them."""
    context = TaskContext.get()
    return context.getLocalProperty(name) if context is not None else None


class BatchWriter(DataSourceArrowWriter):
    """Writes a frame, all or nothing."""

    def __init__(self, sink: Sink, *, overwrite: bool) -> None:
        if overwrite:
            raise InvalidRequestError("a topic cannot be overwritten: use mode append")
        self._sink = sink
        self._name = str(uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOutput:
        return self._sink.encode("", iterator)

    def commit(self, messages: Messages) -> None:
        self._sink.commit(messages, self._name)

    def abort(self, messages: Messages) -> None:
        """Do nothing: tasks have written nothing, and a failed commit has aborted itself."""


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a stream, each exactly once."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOutput:
        query_id = _local_property(_QUERY_ID)
        if not query_id:
            raise OperatingError(f"Spark does not set {_QUERY_ID}, which identifies the query")
        return self._sink.encode(query_id, iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name.
        self._sink.commit(messages, number=batchId)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Do nothing: tasks have written nothing, and a failed commit has aborted itself."""
