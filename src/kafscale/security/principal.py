"""`Principal`: the authenticated client of a connection."""

from typing import Final

import msgspec

ANONYMOUS_NAME: Final = "User:ANONYMOUS"
USER_PREFIX: Final = "User:"
GROUP_PREFIX: Final = "Group:"


class Principal(msgspec.Struct, frozen=True):
    """An authenticated user with its groups."""

    full_name: str = ANONYMOUS_NAME
    """Type and name, as Kafka writes them: `User:alice`."""
    groups: tuple[str, ...] = ()
    """Groups such as `Group:analysts`, whose ACLs apply to this user too. Only tokens have
    groups."""
    expires_ms: int | None = None
    """When the authentication expires, in ms since 1970; None if it does not."""

    @property
    def user(self) -> str:
        """The name without the type, as quotas use it."""
        return self.full_name.partition(":")[2]


ANONYMOUS: Final = Principal()
