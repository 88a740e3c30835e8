"""Every error of ours, in one tree; the type says whose fault it is.

    KafscaleError
    ├── ConfigError            the user's: a setting is unknown, malformed or contradicts another
    ├── ProtocolError          the client's: bytes that are not the Kafka message they claim to be
    │   ├── FrameError         ... the length prefix is negative or above the cap
    │   └── UnknownApiError    ... an API key or version that we do not speak
    ├── RecordsError           the client's: a records field that cannot be stored
    │   ├── CorruptBatchError      ... length, magic or checksum do not hold
    │   ├── InvalidRecordError     ... well-formed, but breaks a rule for record batches
    │   ├── UnsupportedFormatError ... a magic that this version of the API does not carry
    │   ├── UnsupportedCodecError  ... a codec that we do not know or that this version cannot carry
    │   ├── InvalidTimestampError  ... a timestamp, or its type, that a producer may not send
    │   └── BatchTooLargeError     ... it would not fit, compressed or not
    └── EncodeError            ours: a message that cannot be written in the version asked for

Broken invariants of ours are assertions, not errors. `code` is the Kafka error code that a client
is told; it stands here, beside the meaning, and is turned into an answer in one place only. It is a
plain number because this module lies below the protocol room; a test compares it with `ErrorCode`.
"""

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
