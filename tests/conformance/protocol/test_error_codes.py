"""`ErrorCode` compared with kio, which is generated from Kafka's Java, and with kafka-python.

kio is the reference. kafka-python is maintained by hand: its differences from Java are listed here
with their reason, so that a new one fails.
"""

import kafka.errors
from kio.schema.errors import ErrorCode as KioErrorCode

from kafscale.protocol.error_codes import ErrorCode

KAFKA_PYTHON_NAMES = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UNKNOWN",  # the name in Kafka 0.10
    ErrorCode.NONE: "NO_ERROR",  # its own word
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "NOT_LEADER_FOR_PARTITION",  # the name before Kafka 2.6
    ErrorCode.MESSAGE_TOO_LARGE: "MESSAGE_SIZE_TOO_LARGE",  # the name of Kafka 0.8
    ErrorCode.INVALID_TOPIC_EXCEPTION: "INVALID_TOPIC",  # drops the Java suffix
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "INVALID_REPLICATION_ASSIGNMENT",  # its own word
}

KAFKA_PYTHON_RETRIABLE = {
    # In Java CorruptRecordException is a RetriableException: bytes damaged on the way may arrive
    # whole the next time. kafka-python gives up.
    ErrorCode.CORRUPT_MESSAGE: False
}

KAFKA_PYTHON_LACKS = {
    # Newer than its list.
    ErrorCode.INVALID_REGULAR_EXPRESSION,
    ErrorCode.REBOOTSTRAP_REQUIRED,
    ErrorCode.STREAMS_INVALID_TOPOLOGY,
    ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
    ErrorCode.STREAMS_TOPOLOGY_FENCED,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
}

KAFKA_PYTHON = {
    number: error
    for number, error in kafka.errors.kafka_errors.items()
    if number is not None  # a base class of its own
}


def test_error_codes_equal_kio():
    ours = {(code.name, int(code), code.retriable) for code in ErrorCode}
    kios = {(code.name.upper(), int(code), code.retriable) for code in KioErrorCode}
    assert ours == kios


def test_error_numbers_equal_kafka_python():
    assert set(ErrorCode) - KAFKA_PYTHON_LACKS == set(KAFKA_PYTHON)


def test_error_names_equal_kafka_python():
    ours = {int(code): code.name for code in ErrorCode if code not in KAFKA_PYTHON_LACKS}
    theirs = {number: error.message for number, error in KAFKA_PYTHON.items()}
    assert ours | {int(code): name for code, name in KAFKA_PYTHON_NAMES.items()} == theirs
    assert all(ours[code] != name for code, name in KAFKA_PYTHON_NAMES.items())


def test_retriability_equals_kafka_python():
    ours = {int(code): code.retriable for code in ErrorCode if code not in KAFKA_PYTHON_LACKS}
    theirs = {number: error.retriable for number, error in KAFKA_PYTHON.items()}
    assert ours | {int(code): is_so for code, is_so in KAFKA_PYTHON_RETRIABLE.items()} == theirs
    assert all(ours[code] != is_so for code, is_so in KAFKA_PYTHON_RETRIABLE.items())
