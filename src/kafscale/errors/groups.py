"""What a consumer group answers with when it says no; the package draws the tree."""

from kafscale.errors.base import RefusedError


class GroupError(RefusedError):
    """A consumer group says no."""


class CoordinatorUnavailableError(GroupError):
    """Nobody can answer for the group now; retriable."""

    code = 15


class CoordinatorLoadingError(GroupError):
    """The group has just come to this broker, which still reads what is known of it."""

    code = 14


class NotCoordinatorError(GroupError):
    """Another broker answers for the group."""

    code = 16


class InvalidGroupIdError(GroupError):
    """A name that no group may have."""

    code = 24


class GroupNotFoundError(GroupError):
    """There is no such group, or it is not of the kind that was asked for."""

    code = 69


class NonEmptyGroupError(GroupError):
    """A group that has members, where it must have none."""

    code = 68


class GroupFullError(GroupError):
    """The group has as many members as it may have."""

    code = 81


class UnknownMemberError(GroupError):
    """The group does not know this member."""

    code = 25


class MemberIdRequiredError(GroupError):
    """A new member is to join again, with the id that it is given here."""

    code = 79

    def __init__(self, member_id: str) -> None:
        super().__init__("join again with the member id in this answer")
        self.member_id = member_id


class FencedInstanceError(GroupError):
    """Another member has taken the place of this static one."""

    code = 82


class IllegalGenerationError(GroupError):
    """The group is in another generation."""

    code = 22


class RebalanceInProgressError(GroupError):
    """The group is about to begin a new generation: join again."""

    code = 27


class InconsistentProtocolError(GroupError):
    """A member that has no protocol in common with the others."""

    code = 23


class InvalidSessionTimeoutError(GroupError):
    """A session timeout outside of what the broker allows."""

    code = 26


class OffsetMetadataTooLargeError(GroupError):
    """More text beside an offset than the broker allows."""

    code = 12


class SubscribedTopicError(GroupError):
    """Offsets of a topic that the group still reads."""

    code = 86


class FencedMemberEpochError(GroupError):
    """A member whose epoch is not that which the coordinator gave it: it has to join again."""

    code = 110


class UnreleasedInstanceError(GroupError):
    """A static member whose place is still taken."""

    code = 111


class UnsupportedAssignorError(GroupError):
    """An assignor that the broker does not have."""

    code = 112


class StaleMemberEpochError(GroupError):
    """A member that has to learn its new epoch first; retriable."""

    code = 113


class InvalidRegexError(GroupError):
    """A regular expression that cannot be read."""

    code = 128
