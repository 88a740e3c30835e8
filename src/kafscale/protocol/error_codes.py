"""`ErrorCode`: all error codes of Kafka 4.3.

Each has a number, whether it is retriable, and a message. Names, numbers and retriability are
Kafka's, because clients depend on them; the messages are Kafscale's. The list is complete, so that
every code of a response has a name.

    >>> ErrorCode.NOT_COORDINATOR == 16
    True
    >>> ErrorCode.NOT_COORDINATOR.retriable
    True
    >>> ErrorCode.of(31000).name
    'UNKNOWN_SERVER_ERROR'
"""

from enum import IntEnum
from typing import Self

from kafscale.errors import KafscaleError


class ErrorCode(IntEnum):
    retriable: bool
    message: str

    def __new__(cls, code: int, retriable: bool, message: str) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.message = message
        return member

    @classmethod
    def of(cls, code: int) -> "ErrorCode":
        """The member of a number; `UNKNOWN_SERVER_ERROR` for unknown numbers."""
        return _BY_NUMBER.get(code, cls.UNKNOWN_SERVER_ERROR)

    UNKNOWN_SERVER_ERROR = -1, False, "The broker failed with an unexpected error."
    NONE = 0, False, "Success."
    OFFSET_OUT_OF_RANGE = 1, False, "The offset is outside of the partition's range."
    CORRUPT_MESSAGE = 2, True, "A record batch is damaged: its length or its checksum is wrong."
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "The topic or partition does not exist."
    INVALID_FETCH_SIZE = 4, False, "The number of bytes to fetch is invalid."
    LEADER_NOT_AVAILABLE = 5, True, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = 6, True, "Another broker serves this partition."
    REQUEST_TIMED_OUT = 7, True, "The broker could not finish the request in time."
    BROKER_NOT_AVAILABLE = 8, False, "The broker cannot be reached."
    REPLICA_NOT_AVAILABLE = 9, True, "The broker has no replica of this partition."
    MESSAGE_TOO_LARGE = 10, False, "A record batch is larger than the topic allows."
    STALE_CONTROLLER_EPOCH = 11, False, "The request comes from a controller that was replaced."
    OFFSET_METADATA_TOO_LARGE = 12, False, "The metadata of a committed offset is too long."
    NETWORK_EXCEPTION = 13, True, "The connection was lost before the response arrived."
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "The coordinator is still loading its state."
    COORDINATOR_NOT_AVAILABLE = 15, True, "There is no coordinator at the moment."
    NOT_COORDINATOR = 16, True, "Another broker is the coordinator."
    INVALID_TOPIC_EXCEPTION = 17, False, "The topic name is not allowed, or not for this operation."
    RECORD_LIST_TOO_LARGE = 18, False, "The record batches together are larger than a segment."
    NOT_ENOUGH_REPLICAS = 19, True, "Too few replicas are in sync, so nothing was written."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "The records reached too few in-sync replicas."
    INVALID_REQUIRED_ACKS = 21, False, "The acks of a produce request must be -1, 0 or 1."
    ILLEGAL_GENERATION = 22, False, "The generation is not the current one of the group."
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "The member shares no protocol with its group."
    INVALID_GROUP_ID = 24, False, "The group id is not allowed."
    UNKNOWN_MEMBER_ID = 25, False, "The group has no member with this id."
    INVALID_SESSION_TIMEOUT = 26, False, "The session timeout is shorter or longer than allowed."
    REBALANCE_IN_PROGRESS = 27, False, "The group is rebalancing; its members have to join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "The offsets to commit are too large."
    TOPIC_AUTHORIZATION_FAILED = 29, False, "The operation on the topic is not authorized."
    GROUP_AUTHORIZATION_FAILED = 30, False, "The operation on the group is not authorized."
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "The operation on the cluster is not authorized."
    INVALID_TIMESTAMP = 32, False, "A record's timestamp is too far from the broker's clock."
    UNSUPPORTED_SASL_MECHANISM = 33, False, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, False, "The request is not allowed in this SASL state."
    UNSUPPORTED_VERSION = 35, False, "The broker does not support this API version."
    TOPIC_ALREADY_EXISTS = 36, False, "A topic with this name already exists."
    INVALID_PARTITIONS = 37, False, "The number of partitions is not allowed."
    INVALID_REPLICATION_FACTOR = 38, False, "The replication factor is not supported."
    INVALID_REPLICA_ASSIGNMENT = 39, False, "The replica assignment is not supported."
    INVALID_CONFIG = 40, False, "A config is unknown, or its value is not allowed."
    NOT_CONTROLLER = 41, True, "Another broker is the controller."
    INVALID_REQUEST = 42, False, "The request is malformed or contradicts itself."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "The format of the records does not allow this."
    POLICY_VIOLATION = 44, False, "A policy of the cluster forbids the request."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "The producer's sequence numbers have a gap."
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "The producer has already sent these sequence numbers."
    INVALID_PRODUCER_EPOCH = 47, False, "The producer's epoch is older than the latest one."
    INVALID_TXN_STATE = 48, False, "The transaction's state does not allow this step."
    INVALID_PRODUCER_ID_MAPPING = 49, False, "The transactional id has another producer id."
    INVALID_TRANSACTION_TIMEOUT = 50, False, "The transaction timeout is longer than allowed."
    CONCURRENT_TRANSACTIONS = 51, True, "An earlier operation of this transaction is in progress."
    TRANSACTION_COORDINATOR_FENCED = 52, False, "The transaction has a newer coordinator."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (
        53,
        False,
        "The use of this transactional id is not authorized.",
    )
    SECURITY_DISABLED = 54, False, "Authorization is disabled on the cluster."
    OPERATION_NOT_ATTEMPTED = 55, False, "This part was not attempted because another part failed."
    KAFKA_STORAGE_ERROR = 56, True, "The broker cannot reach the storage of this partition."
    LOG_DIR_NOT_FOUND = 57, False, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, False, "The credentials were not accepted."
    UNKNOWN_PRODUCER_ID = 59, False, "The broker has no state of this producer id."
    REASSIGNMENT_IN_PROGRESS = 60, False, "The partition is being moved between brokers."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "The cluster does not use delegation tokens."
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "The delegation token has another owner."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, False, "This connection may not request tokens."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (
        65,
        False,
        "The use of this delegation token is not authorized.",
    )
    DELEGATION_TOKEN_EXPIRED = 66, False, "The delegation token is no longer valid."
    INVALID_PRINCIPAL_TYPE = 67, False, "Principals of this type are not supported."
    NON_EMPTY_GROUP = 68, False, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, False, "The group does not exist."
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "The broker has no fetch session with this id."
    INVALID_FETCH_SESSION_EPOCH = 71, True, "The fetch session's requests came out of order."
    LISTENER_NOT_FOUND = 72, True, "The leader does not have the listener of this connection."
    TOPIC_DELETION_DISABLED = 73, False, "Topic deletion is disabled."
    FENCED_LEADER_EPOCH = 74, True, "The client's leader epoch is older than the broker's."
    UNKNOWN_LEADER_EPOCH = 75, True, "The client's leader epoch is newer than the broker's."
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "This compression cannot be used here."
    STALE_BROKER_EPOCH = 77, False, "The broker epoch is stale: the broker has registered again."
    OFFSET_NOT_AVAILABLE = 78, True, "A new leader does not know the high watermark yet."
    MEMBER_ID_REQUIRED = 79, False, "The member has to join again with the id it was given."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "The preferred leader cannot take over now."
    GROUP_MAX_SIZE_REACHED = 81, False, "The group has the maximum number of members."
    FENCED_INSTANCE_ID = 82, False, "Another member has taken over this group instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "No replica can become leader at the moment."
    ELECTION_NOT_NEEDED = 84, True, "The partition needs no leader election."
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "The partition is not being moved."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "The group still reads the topic."
    INVALID_RECORD = 87, False, "A record violates a rule of its topic or of its batch."
    UNSTABLE_OFFSET_COMMIT = 88, True, "Offsets of an open transaction are still pending."
    THROTTLING_QUOTA_EXCEEDED = 89, True, "The quota is exceeded."
    PRODUCER_FENCED = 90, False, "A newer producer has taken over the transactional id."
    RESOURCE_NOT_FOUND = 91, False, "The request names a resource that does not exist."
    DUPLICATE_RESOURCE = 92, False, "The request names the same resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, False, "The new credential is too weak or incomplete."
    INCONSISTENT_VOTER_SET = 94, False, "Sender and receiver disagree about who may vote."
    INVALID_UPDATE_VERSION = 95, False, "The update starts from a version that is not current."
    FEATURE_UPDATE_FAILED = 96, False, "The cluster's features could not be changed."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "A forwarded principal cannot be decoded."
    SNAPSHOT_NOT_FOUND = 98, False, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, False, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, True, "No topic has this id."
    DUPLICATE_BROKER_REGISTRATION = 101, False, "Another broker is already registered with this id."
    BROKER_ID_NOT_REGISTERED = 102, False, "No broker is registered with this id."
    INCONSISTENT_TOPIC_ID = 103, True, "The topic has another id than in the request."
    INCONSISTENT_CLUSTER_ID = 104, False, "The request is for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "The fetch session mixes topic ids and names."
    INELIGIBLE_REPLICA = 107, False, "A replica in the new ISR is not eligible for it."
    NEW_LEADER_ELECTED = 108, False, "The partition was changed, and a new leader was elected."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "The offset was moved to tiered storage."
    FENCED_MEMBER_EPOCH = 110, False, "The member must give up its partitions and join again."
    UNRELEASED_INSTANCE_ID = 111, False, "Another member still holds this group instance id."
    UNSUPPORTED_ASSIGNOR = 112, False, "The group cannot use this assignor."
    STALE_MEMBER_EPOCH = 113, False, "The member epoch is stale; a heartbeat returns the new one."
    MISMATCHED_ENDPOINT_TYPE = 114, False, "This endpoint does not serve such requests."
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "Endpoints of this type are not supported."
    UNKNOWN_CONTROLLER_ID = 116, False, "No controller has this id."
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "The telemetry subscription is unknown or has changed."
    TELEMETRY_TOO_LARGE = 118, False, "The pushed metrics are larger than the broker accepts."
    INVALID_REGISTRATION = 119, False, "The controller refused the broker's registration."
    TRANSACTION_ABORTABLE = 120, False, "The transaction failed; abort it and begin another."
    INVALID_RECORD_STATE = 121, False, "The record can no longer be acknowledged by this member."
    SHARE_SESSION_NOT_FOUND = 122, True, "The broker has no share session with this id."
    INVALID_SHARE_SESSION_EPOCH = 123, True, "The share session's requests came out of order."
    FENCED_STATE_EPOCH = 124, False, "The state epoch of the share group is stale."
    INVALID_VOTER_KEY = 125, False, "The request is for another voter."
    DUPLICATE_VOTER = 126, False, "The voter already exists."
    VOTER_NOT_FOUND = 127, False, "There is no such voter."
    INVALID_REGULAR_EXPRESSION = 128, False, "The regular expression is invalid."
    REBOOTSTRAP_REQUIRED = 129, False, "The client has to connect to its bootstrap servers again."
    STREAMS_INVALID_TOPOLOGY = 130, False, "The topology of the streams group is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "The epoch of the topology is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, False, "The streams group has a newer topology."
    SHARE_SESSION_LIMIT_REACHED = 133, True, "The broker has the maximum number of share sessions."


_BY_NUMBER = {int(member): member for member in ErrorCode}


def error_code_of(error: KafscaleError | None) -> int:
    """The code of a result that is an error, or None for success."""
    return ErrorCode.NONE if error is None else error.code
