"""Errors of consumer groups; the package docstring shows the tree."""

from kafscale.errors.base import RefusedError


class GroupError(RefusedError):
    """A request that a consumer group rejects."""


class CoordinatorUnavailableError(GroupError):
    """The group has no coordinator at the moment; retriable."""

    code = 15


class CoordinatorLoadingError(GroupError):
    """The coordinator is still loading the group; retriable."""

    code = 14


class CommitsThrottledError(GroupError):
    """A user or a group commits more than its limit; retriable.

    The code is that of a coordinator that is loading: clients retry at this broker.
    """

    code = 14


class NotCoordinatorError(GroupError):
    """Another broker is the coordinator of the group."""

    code = 16


class InvalidGroupIdError(GroupError):
    """An invalid group id."""

    code = 24


class GroupNotFoundError(GroupError):
    """The group does not exist or has another type."""

    code = 69


class NonEmptyGroupError(GroupError):
    """The group has members."""

    code = 68


class GroupFullError(GroupError):
    """The group has the maximum number of members."""

    code = 81


class UnknownMemberError(GroupError):
    """The group has no such member."""

    code = 25


class MemberIdRequiredError(GroupError):
    """A new member has to join again with the member id of this response."""

    code = 79

    def __init__(self, member_id: str) -> None:
        super().__init__("join again with the member id of this response")
        self.member_id = member_id


class FencedInstanceError(GroupError):
    """Another member uses this group instance id."""

    code = 82


class IllegalGenerationError(GroupError):
    """The group is in another generation."""

    code = 22


class RebalanceInProgressError(GroupError):
    """The group is rebalancing; the member has to join again."""

    code = 27


class InconsistentProtocolError(GroupError):
    """A member without a protocol in common with the others."""

    code = 23


class InvalidSessionTimeoutError(GroupError):
    """A session timeout outside of the allowed range."""

    code = 26


class OffsetMetadataTooLargeError(GroupError):
    """Offset metadata larger than allowed."""

    code = 12


class SubscribedTopicError(GroupError):
    """The group is still subscribed to the topic."""

    code = 86


class FencedMemberEpochError(GroupError):
    """The member epoch is not the current one; the member has to join again."""

    code = 110


class UnreleasedInstanceError(GroupError):
    """The group instance id is still in use."""

    code = 111


class UnsupportedAssignorError(GroupError):
    """An assignor that the broker does not support."""

    code = 112


class StaleMemberEpochError(GroupError):
    """The member epoch is stale; a heartbeat returns the new one; retriable."""

    code = 113


class InvalidRegexError(GroupError):
    """An invalid regular expression."""

    code = 128
