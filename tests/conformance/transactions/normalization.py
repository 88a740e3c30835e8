"""Makes responses about transactions comparable: producer ids, times and batches.

Producer ids become numbers in order of appearance, from `FIRST_PRODUCER_ID` on; a request may use
these numbers, and a batch in a request, too. Times of a server's clock become `SOME_TIME`; the
timestamp that a test gives to its records stays. Batches are compared with all fields of their
headers, but for the checksum of what is replaced here, and with their payload as it is.

Three differences are intended, and hidden here:
* Kafka lists more aborted transactions than the records of a response need, as it rounds their end
  up to an entry of an index or to the end of a segment; those beyond the records are left out.
* The time of a producer's newest batch is that of the broker's clock; in Kafka, of the batch.
* A refused batch has no log start offset, a repeated one no append time.
"""

from struct import Struct
from typing import Any, Final, NamedTuple

import msgspec

from conformance.groups.normalization import IdMapping
from kafscale.protocol.messages.fetch import FetchedPartition
from kafscale.protocol.messages.produce import ProducedPartition
from kafscale.records import BatchView, split
from kafscale.records.batch import PRODUCER_ID_POSITION

FIRST_PRODUCER_ID: Final = 7_000_000_000_000_001
SOME_TIME: Final = 1

_PRODUCER_ID_FIELD: Final = "producer_id"
_TIME_FIELDS: Final = {"last_timestamp_ms", "transaction_start_time_ms"}
_PRODUCER_ID: Final = Struct(">q")


class NormalBatch(NamedTuple):
    """A batch as both servers must have it."""

    base_offset: int
    last_offset_delta: int
    attributes: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    payload: bytes

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1


class TransactionNames(IdMapping):
    """The producer ids of one server, and their normalized numbers."""

    def __init__(self, topic_ids: dict[str, bytes], timestamp_ms: int) -> None:
        super().__init__(topic_ids)
        self._timestamp_ms = timestamp_ms
        self._producers: dict[int, int] = {}

    def denormalize(self, value: Any) -> Any:
        own = {number: id_ for id_, number in self._producers.items()}
        return super().denormalize(_with_producers(value, own))

    def normalize(self, value: Any) -> Any:
        normal = super().normalize(value)
        if isinstance(normal, ProducedPartition):
            normal.log_append_time_ms = -1
            if normal.error_code:
                normal.log_start_offset = -1
        elif isinstance(normal, FetchedPartition) and normal.aborted_transactions:
            end = max((batch.next_offset for batch in normal.records or ()), default=0)
            normal.aborted_transactions = tuple(
                each for each in normal.aborted_transactions if each.first_offset < end
            )
        return normal

    def add_topic(self, topic_id: bytes, placeholder: bytes) -> None:
        """A topic that was created after the start."""
        self._normal[topic_id] = placeholder

    def _field(self, name: str, value: Any) -> Any:
        if name == _PRODUCER_ID_FIELD:
            return self._producer(value)
        if name in _TIME_FIELDS:
            return SOME_TIME if value > 0 else value
        if name == "records" and value is not None:
            data = b"".join(value) if isinstance(value, list) else bytes(value)
            return tuple(self._batch(each) for each in split(data, partial_ok=True))
        if name == "aborted_transactions" and value is not None:
            return tuple(self.normalize(each) for each in value)  # Their order is compared.
        return super()._field(name, value)

    def _name(self, leaf: Any, *, may_generate: bool = True) -> Any:
        if isinstance(leaf, memoryview):  # Records, which are compared in `_field`.
            return bytes(leaf)
        return super()._name(leaf, may_generate=may_generate)

    def _producer(self, producer_id: int) -> int:
        if producer_id <= 0:  # Defaults of responses; the first id of a server is not a test's.
            return producer_id
        return self._producers.setdefault(producer_id, FIRST_PRODUCER_ID + len(self._producers))

    def _time(self, time_ms: int) -> int:
        return time_ms if time_ms in (self._timestamp_ms, -1, 0) else SOME_TIME

    def _batch(self, batch: BatchView) -> NormalBatch:
        header = batch.header()
        return NormalBatch(
            header.base_offset,
            header.last_offset_delta,
            header.attributes,
            self._time(header.base_timestamp_ms),
            self._time(header.max_timestamp_ms),
            self._producer(header.producer_id),
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
            bytes(batch.payload),
        )


def _with_producers(value: Any, own: dict[int, int]) -> Any:
    """The value with the producer ids of a server."""
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        return type(value)(**{name: _with_producers(getattr(value, name), own) for name in names})
    if isinstance(value, list):
        return [_with_producers(each, own) for each in value]
    if isinstance(value, bytearray | memoryview):
        return _batch_with_producer(value, own)
    return own.get(value, value)


def _batch_with_producer(data: bytearray | memoryview, own: dict[int, int]) -> bytes:
    changed = bytearray(data)
    (producer_id,) = _PRODUCER_ID.unpack_from(changed, PRODUCER_ID_POSITION)
    if producer_id in own:
        _PRODUCER_ID.pack_into(changed, PRODUCER_ID_POSITION, own[producer_id])
        BatchView(changed).write_checksum()
    return bytes(changed)
