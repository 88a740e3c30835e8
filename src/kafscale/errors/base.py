"""Errors that have no module of their own; the package docstring shows the tree."""

from collections.abc import Sequence
from typing import ClassVar


class KafscaleError(Exception):
    """The base class of all errors that Kafscale raises deliberately."""

    code: ClassVar[int] = -1


class ConfigError(KafscaleError):
    """A setting is unknown, malformed or contradicts another."""


class ProtocolError(KafscaleError):
    """Bytes that are not a valid Kafka message."""

    code = 42


class FrameError(ProtocolError):
    """A length prefix that is negative or above the limit."""


class UnknownApiError(ProtocolError):
    """An unsupported API key or version."""

    code = 35


class RecordsError(KafscaleError):
    """A records field that cannot be stored."""

    code = 2
    record_errors: Sequence[tuple[int, str]] = ()
    """The first refused records, if the others would be accepted: index in the batch, and reason
    (KIP-467)."""


class CorruptBatchError(RecordsError):
    """A batch with a wrong length, magic or checksum."""


class InvalidRecordError(RecordsError):
    """A well-formed batch that breaks a rule for record batches."""

    code = 87


class UnsupportedFormatError(RecordsError):
    """A magic that this API version does not support."""

    code = 43


class UnsupportedCodecError(RecordsError):
    """A compression codec that this API version does not support."""

    code = 76


class InvalidTimestampError(RecordsError):
    """An invalid timestamp or timestamp type."""

    code = 32


class BatchTooLargeError(RecordsError):
    """A batch that is larger than allowed, compressed or not."""

    code = 10


class EncodeError(KafscaleError):
    """A message that cannot be encoded in the requested version."""


class OperatingError(KafscaleError):
    """A store failed; a retry may succeed."""

    code = 56


class StoreUnavailableError(OperatingError):
    """A store timed out, rejected the request or throttles."""


class StoreFullError(StoreUnavailableError):
    """A store had no space for an object, and has not changed anything."""


class ObjectNotFoundError(OperatingError):
    """There is no object with this key."""


class ObjectExistsError(OperatingError):
    """A create-only PUT found an existing object."""


class ObjectChangedError(OperatingError):
    """A conditional PUT found that the object is not the one that was read."""


class KubeError(OperatingError):
    """The Kubernetes API server rejected a request or did not respond."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; 0 without a response."""


class DamagedObjectError(OperatingError):
    """An object or entry that is corrupt."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class DamagedRecordsError(DamagedObjectError):
    """Records that cannot be served, because the objects that hold them are corrupt."""

    code = 2


class NotOwnerError(KafscaleError):
    """Another broker owns the partition."""

    code = 6


class FencedError(NotOwnerError):
    """This broker lost the partition and must stop serving it."""


class RefusedError(KafscaleError):
    """A valid message that is rejected."""

    code = 42


class OffsetOutOfRangeError(RefusedError):
    """An offset outside of the log."""

    code = 1


class InvalidRequestError(RefusedError):
    """A request whose parts contradict each other."""


class PolicyViolationError(RefusedError):
    """A request that the broker's settings do not allow."""

    code = 44


class OverloadedError(RefusedError):
    """The broker's buffer is full; retriable."""

    code = 7


class UnknownTopicError(RefusedError):
    """A topic or a partition that does not exist; by default with Kafka's message."""

    code = 3

    def __init__(self, message: str = "This server does not host this topic-partition.") -> None:
        super().__init__(message)


class UnknownTopicIdError(RefusedError):
    """A topic id that no topic has; by default with Kafka's message."""

    code = 100

    def __init__(self, message: str = "This server does not host this topic ID.") -> None:
        super().__init__(message)


class TopicExistsError(RefusedError):
    """The topic already exists."""

    code = 36


class InvalidTopicError(RefusedError):
    """An invalid topic name."""

    code = 17


class InvalidPartitionsError(RefusedError):
    """An invalid number of partitions."""

    code = 37


class InvalidReplicationFactorError(RefusedError):
    """An invalid replication factor."""

    code = 38


class InvalidAssignmentError(RefusedError):
    """A list of replicas that is empty, has a broker twice, or names one that is not there."""

    code = 39


class NoReassignmentInProgressError(RefusedError):
    """A reassignment that is to be cancelled, but is over or never was."""

    code = 85


class InvalidConfigError(RefusedError):
    """An unknown config or an invalid value."""

    code = 40


class InvalidUpdateVersionError(RefusedError):
    """A level of a feature that is not supported."""

    code = 95


class UnknownSubscriptionError(RefusedError):
    """A push for a subscription of client metrics that is not the present one."""

    code = 117


class TelemetryTooLargeError(RefusedError):
    """Pushed metrics that are larger than allowed, compressed or not."""

    code = 118


class OutOfOrderSequenceError(RefusedError):
    """A gap in the sequence numbers of an idempotent producer."""

    code = 45


class InvalidProducerEpochError(RefusedError):
    """A batch with an outdated producer epoch."""

    code = 47


class FencedLeaderEpochError(RefusedError):
    """A leader epoch older than the current one."""

    code = 74


class UnknownLeaderEpochError(RefusedError):
    """A leader epoch newer than the current one."""

    code = 75


class InvalidAcksError(RefusedError):
    """An acks value other than 0, 1 and -1."""

    code = 21
