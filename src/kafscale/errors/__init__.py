"""All errors of Kafscale, in one tree; the type says who has to act.

    KafscaleError
    ├── ConfigError            the user: a setting is unknown, malformed or contradicts another
    ├── ProtocolError          the client: bytes that are not a valid Kafka message
    │   ├── FrameError         ... the length prefix is negative or above the limit
    │   └── UnknownApiError    ... an unsupported API key or version
    ├── RecordsError           the client: a records field that cannot be stored
    │   ├── CorruptBatchError      ... wrong length, magic or checksum
    │   ├── InvalidRecordError     ... well-formed, but breaks a rule for record batches
    │   ├── UnsupportedFormatError ... a magic that this API version does not support
    │   ├── UnsupportedCodecError  ... a codec that this API version does not support
    │   ├── InvalidTimestampError  ... an invalid timestamp or timestamp type
    │   └── BatchTooLargeError     ... larger than allowed, compressed or not
    ├── EncodeError            Kafscale: a message that cannot be encoded in this version
    ├── OperatingError         the operator: a store failed; a retry may succeed
    │   ├── StoreUnavailableError  ... it timed out, rejected the request or throttles
    │   │   └── StoreFullError         ... it has no space, and has not changed anything
    │   ├── ObjectNotFoundError    ... there is no object under this key
    │   ├── ObjectExistsError      ... a create-only PUT found its key taken
    │   ├── ObjectChangedError     ... a conditional PUT found another object than was read
    │   ├── DamagedObjectError     ... an object is corrupt
    │   │   └── DamagedRecordsError    ... and its records cannot be served
    │   └── KubeError              ... the Kubernetes API server rejected it or did not respond
    ├── NotOwnerError          another broker owns the partition
    │   └── FencedError            ... and this broker must stop serving it
    └── RefusedError           the client: a valid message that is rejected
        ├── OffsetOutOfRangeError, InvalidRequestError, PolicyViolationError, OverloadedError
        ├── InvalidAcksError
        ├── UnknownTopicError, UnknownTopicIdError, TopicExistsError, InvalidTopicError
        ├── InvalidPartitionsError, InvalidReplicationFactorError, InvalidAssignmentError
        ├── NoReassignmentInProgressError, InvalidConfigError, InvalidUpdateVersionError
        ├── UnknownSubscriptionError, TelemetryTooLargeError
        ├── OutOfOrderSequenceError, InvalidProducerEpochError
        ├── FencedLeaderEpochError, UnknownLeaderEpochError
        ├── AuthenticationError, UnsupportedMechanismError, IllegalSaslStateError
        ├── AuthorizationError     ... no ACL allows it, or one denies it: Topic-, Group-,
        │                          Cluster-, TransactionalIdAuthorizationError
        ├── DelegationTokensDisabledError, DelegationTokensNotAllowedError
        ├── SecurityDisabledError, ThrottledError, ResourceNotFoundError, DuplicateResourceError,
        │   UnacceptableCredentialError
        ├── TransactionError   rejected by a transaction or its coordinator
        │   ├── InvalidTransactionStateError, InvalidProducerIdMappingError
        │   ├── InvalidTxnTimeoutError, ConcurrentTransactionsError, ProducerFencedError
        │   ├── TransactionCoordinatorFencedError, TransactionalIdNotFoundError
        │   ├── TransactionAbortableError, UnstableOffsetCommitError
        │   └── UnverifiedTransactionError
        └── GroupError         rejected by a consumer group
            ├── CoordinatorUnavailableError, CoordinatorLoadingError, NotCoordinatorError
            ├── CommitsThrottledError
            ├── InvalidGroupIdError, GroupNotFoundError, NonEmptyGroupError, GroupFullError
            ├── UnknownMemberError, MemberIdRequiredError, FencedInstanceError
            ├── IllegalGenerationError, RebalanceInProgressError, InconsistentProtocolError
            ├── InvalidSessionTimeoutError, OffsetMetadataTooLargeError, SubscribedTopicError
            └── FencedMemberEpochError, StaleMemberEpochError, UnreleasedInstanceError,
                UnsupportedAssignorError, InvalidRegexError

Broken internal invariants are assertions, not errors. `code` is the Kafka error code of the
response. It is a plain number because this package is below `protocol`; a test compares it with
`ErrorCode`.
"""

from kafscale.errors.base import *  # noqa: F403 - this package exports all of them.
from kafscale.errors.groups import *  # noqa: F403
from kafscale.errors.security import *  # noqa: F403
from kafscale.errors.transactions import *  # noqa: F403
