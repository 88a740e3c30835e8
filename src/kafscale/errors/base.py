"""All errors but those of groups; the package draws their tree."""

from typing import ClassVar


class KafscaleError(Exception):
    """The root: catch it to catch everything that Kafscale raises on purpose."""

    code: ClassVar[int] = -1


class ConfigError(KafscaleError):
    """A setting is unknown, malformed or contradicts another."""


class ProtocolError(KafscaleError):
    """Bytes that are not the Kafka message they claim to be."""

    code = 42


class FrameError(ProtocolError):
    """A length prefix that is negative or above the cap."""


class UnknownApiError(ProtocolError):
    """An API key or version that we do not speak."""

    code = 35


class RecordsError(KafscaleError):
    """A records field that cannot be stored."""

    code = 2


class CorruptBatchError(RecordsError):
    """A batch whose length, magic or checksum does not hold."""


class InvalidRecordError(RecordsError):
    """A well-formed batch that breaks a rule for record batches."""

    code = 87


class UnsupportedFormatError(RecordsError):
    """A magic that this version of the API does not carry."""

    code = 43


class UnsupportedCodecError(RecordsError):
    """A compression codec that we do not know or that this version cannot carry."""

    code = 76


class InvalidTimestampError(RecordsError):
    """A timestamp, or a type of timestamp, that a producer may not send."""

    code = 32


class BatchTooLargeError(RecordsError):
    """A batch that would not fit, compressed or not."""

    code = 10


class EncodeError(KafscaleError):
    """A message that cannot be written in the version asked for."""


class OperatingError(KafscaleError):
    """A store failed; the same request may succeed later."""

    code = 56


class StoreUnavailableError(OperatingError):
    """A store timed out, refused or asked to slow down."""


class ObjectNotFoundError(OperatingError):
    """There is no object under this key."""


class ObjectExistsError(OperatingError):
    """A create-only PUT found its key taken."""


class KubeError(OperatingError):
    """The API server of Kubernetes did not do what it was asked for."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
        """Of HTTP; 0 where there was no answer."""


class DamagedObjectError(OperatingError):
    """An object that is not what it claims to be."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class NotOwnerError(KafscaleError):
    """The partition belongs to another broker."""

    code = 6


class FencedError(NotOwnerError):
    """The partition has been taken from this broker, which must stop serving it."""


class RefusedError(KafscaleError):
    """A request that is understood and refused."""

    code = 42


class OffsetOutOfRangeError(RefusedError):
    """An offset outside of what the log holds."""

    code = 1


class InvalidRequestError(RefusedError):
    """A request whose parts contradict each other."""


class PolicyViolationError(RefusedError):
    """A request that the broker's settings forbid."""

    code = 44


class OverloadedError(RefusedError):
    """More than the broker may buffer; retriable."""

    code = 7


class UnknownTopicError(RefusedError):
    """A topic or a partition that does not exist."""

    code = 3


class UnknownTopicIdError(RefusedError):
    """A topic id that no topic has."""

    code = 100


class TopicExistsError(RefusedError):
    """A topic to be created that exists."""

    code = 36


class InvalidTopicError(RefusedError):
    """A name that no topic may have."""

    code = 17


class InvalidPartitionsError(RefusedError):
    """A number of partitions that a topic may not have."""

    code = 37


class InvalidReplicationFactorError(RefusedError):
    """A number of replicas that a topic may not have."""

    code = 38


class InvalidAssignmentError(RefusedError):
    """A manual assignment of replicas, which brokers without disks have no use for."""

    code = 39


class InvalidConfigError(RefusedError):
    """A configuration entry that is unknown or has a value that it may not have."""

    code = 40


class OutOfOrderSequenceError(RefusedError):
    """A batch of an idempotent producer that does not follow the one before."""

    code = 45


class InvalidProducerEpochError(RefusedError):
    """A batch of a producer whose epoch has been passed."""

    code = 47


class UnknownProducerIdError(RefusedError):
    """A producer id that the broker does not know."""

    code = 59


class FencedLeaderEpochError(RefusedError):
    """A leader epoch older than the current one."""

    code = 74


class UnknownLeaderEpochError(RefusedError):
    """A leader epoch newer than the current one."""

    code = 75


class InvalidAcksError(RefusedError):
    """A number of acknowledgements that is none of 0, 1 and -1."""

    code = 21


class InvalidTransactionStateError(RefusedError):
    """A batch of a transaction, where there are no transactions."""

    code = 48
