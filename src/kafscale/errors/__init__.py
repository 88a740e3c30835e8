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
    ├── EncodeError            ours: a message that cannot be written in the version asked for
    ├── OperatingError         nobody's: a store failed; the same request may succeed later
    │   ├── StoreUnavailableError  ... it timed out, refused or asked to slow down
    │   ├── ObjectNotFoundError    ... there is no object under this key
    │   ├── ObjectExistsError      ... a create-only PUT found its key taken
    │   ├── DamagedObjectError     ... an object is not what it claims to be
    │   └── KubeError              ... the API server of Kubernetes refused, or did not answer
    ├── NotOwnerError          the partition is somebody else's
    │   └── FencedError            ... and has been taken from us: stop serving it
    └── RefusedError           the client's: a request that is understood and refused
        ├── OffsetOutOfRangeError, InvalidRequestError, PolicyViolationError, OverloadedError
        ├── InvalidAcksError, InvalidTransactionStateError
        ├── UnknownTopicError, UnknownTopicIdError, TopicExistsError, InvalidTopicError
        ├── InvalidPartitionsError, InvalidReplicationFactorError, InvalidAssignmentError
        ├── InvalidConfigError
        ├── OutOfOrderSequenceError, InvalidProducerEpochError, UnknownProducerIdError
        ├── FencedLeaderEpochError, UnknownLeaderEpochError
        ├── AuthenticationError, UnsupportedMechanismError, IllegalSaslStateError
        ├── AuthorizationError     ... no rule allows it, or one denies it: Topic-, Group-,
        │                          Cluster-, TransactionalIdAuthorizationError
        ├── SecurityDisabledError, ThrottledError, ResourceNotFoundError, DuplicateResourceError,
        │   UnacceptableCredentialError
        └── GroupError         a consumer group says no
            ├── CoordinatorUnavailableError, CoordinatorLoadingError, NotCoordinatorError
            ├── InvalidGroupIdError, GroupNotFoundError, NonEmptyGroupError, GroupFullError
            ├── UnknownMemberError, MemberIdRequiredError, FencedInstanceError
            ├── IllegalGenerationError, RebalanceInProgressError, InconsistentProtocolError
            ├── InvalidSessionTimeoutError, OffsetMetadataTooLargeError, SubscribedTopicError
            └── FencedMemberEpochError, StaleMemberEpochError, UnreleasedInstanceError,
                UnsupportedAssignorError, InvalidRegexError

Broken invariants of ours are assertions, not errors. `code` is the Kafka error code that a client
is told; it stands here, beside the meaning, and is turned into an answer in one place only. It is a
plain number because this module lies below the protocol room; a test compares it with `ErrorCode`.
"""

from kafscale.errors.base import (
    BatchTooLargeError,
    ConfigError,
    CorruptBatchError,
    DamagedObjectError,
    EncodeError,
    FencedError,
    FencedLeaderEpochError,
    FrameError,
    InvalidAcksError,
    InvalidAssignmentError,
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTimestampError,
    InvalidTopicError,
    InvalidTransactionStateError,
    KafscaleError,
    KubeError,
    NotOwnerError,
    ObjectExistsError,
    ObjectNotFoundError,
    OffsetOutOfRangeError,
    OperatingError,
    OutOfOrderSequenceError,
    OverloadedError,
    PolicyViolationError,
    ProtocolError,
    RecordsError,
    RefusedError,
    StoreUnavailableError,
    TopicExistsError,
    UnknownApiError,
    UnknownLeaderEpochError,
    UnknownProducerIdError,
    UnknownTopicError,
    UnknownTopicIdError,
    UnsupportedCodecError,
    UnsupportedFormatError,
)
from kafscale.errors.groups import (
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    FencedInstanceError,
    FencedMemberEpochError,
    GroupError,
    GroupFullError,
    GroupNotFoundError,
    IllegalGenerationError,
    InconsistentProtocolError,
    InvalidGroupIdError,
    InvalidRegexError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    NonEmptyGroupError,
    NotCoordinatorError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    SubscribedTopicError,
    UnknownMemberError,
    UnreleasedInstanceError,
    UnsupportedAssignorError,
)
from kafscale.errors.security import (
    AuthenticationError,
    AuthorizationError,
    ClusterAuthorizationError,
    DuplicateResourceError,
    GroupAuthorizationError,
    IllegalSaslStateError,
    ResourceNotFoundError,
    SecurityDisabledError,
    ThrottledError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
    UnacceptableCredentialError,
    UnsupportedMechanismError,
)

__all__ = [
    "AuthenticationError",
    "AuthorizationError",
    "BatchTooLargeError",
    "ClusterAuthorizationError",
    "ConfigError",
    "CoordinatorLoadingError",
    "CoordinatorUnavailableError",
    "CorruptBatchError",
    "DamagedObjectError",
    "DuplicateResourceError",
    "EncodeError",
    "FencedError",
    "FencedInstanceError",
    "FencedLeaderEpochError",
    "FencedMemberEpochError",
    "FrameError",
    "GroupAuthorizationError",
    "GroupError",
    "GroupFullError",
    "GroupNotFoundError",
    "IllegalGenerationError",
    "IllegalSaslStateError",
    "InconsistentProtocolError",
    "InvalidAcksError",
    "InvalidAssignmentError",
    "InvalidConfigError",
    "InvalidGroupIdError",
    "InvalidPartitionsError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "InvalidRegexError",
    "InvalidReplicationFactorError",
    "InvalidRequestError",
    "InvalidSessionTimeoutError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "InvalidTransactionStateError",
    "KafscaleError",
    "KubeError",
    "MemberIdRequiredError",
    "NonEmptyGroupError",
    "NotCoordinatorError",
    "NotOwnerError",
    "ObjectExistsError",
    "ObjectNotFoundError",
    "OffsetMetadataTooLargeError",
    "OffsetOutOfRangeError",
    "OperatingError",
    "OutOfOrderSequenceError",
    "OverloadedError",
    "PolicyViolationError",
    "ProtocolError",
    "RebalanceInProgressError",
    "RecordsError",
    "RefusedError",
    "ResourceNotFoundError",
    "SecurityDisabledError",
    "StaleMemberEpochError",
    "StoreUnavailableError",
    "SubscribedTopicError",
    "ThrottledError",
    "TopicAuthorizationError",
    "TopicExistsError",
    "TransactionalIdAuthorizationError",
    "UnacceptableCredentialError",
    "UnknownApiError",
    "UnknownLeaderEpochError",
    "UnknownMemberError",
    "UnknownProducerIdError",
    "UnknownTopicError",
    "UnknownTopicIdError",
    "UnreleasedInstanceError",
    "UnsupportedAssignorError",
    "UnsupportedCodecError",
    "UnsupportedFormatError",
    "UnsupportedMechanismError",
]
