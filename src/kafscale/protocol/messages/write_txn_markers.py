"""WriteTxnMarkers (27): end transactions in the logs of their partitions (KIP-98).

Transaction coordinators send it to partition leaders; administrators send it to abort a hanging
transaction, which no coordinator knows (KIP-664).

Version notes:
* v1: flexible, and the first version of Kafka 4 (KIP-896).
* v2 (the transaction version of a marker, KIP-1228) is newer than Kafka 4.1 and not declared here.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int16, Int32, Int64, Message, String


class TopicToMark(Message):
    name: String = ""
    partitions: list[Int32] = []


class MarkerToWrite(Message):
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Boolean = False
    """True for a COMMIT marker, false for an ABORT marker."""
    topics: list[TopicToMark] = []
    coordinator_epoch: Int32 = 0
    """The epoch of the coordinator's shard; partition leaders reject markers of an older one."""


class WriteTxnMarkersRequest(Message):
    markers: list[MarkerToWrite] = []


class MarkedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0


class MarkedTopic(Message):
    name: String = ""
    partitions: list[MarkedPartition] = []


class WrittenMarker(Message):
    producer_id: Int64 = 0
    topics: list[MarkedTopic] = []


class WriteTxnMarkersResponse(Message):
    markers: list[WrittenMarker] = []


WRITE_TXN_MARKERS = Api(
    27,
    "WriteTxnMarkers",
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    1,
    flexible_since=1,
    version_min=1,
)
