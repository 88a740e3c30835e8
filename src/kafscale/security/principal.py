"""`Identity`: who is at the other end of a connection, once they have shown it."""

from typing import Final

import msgspec

ANONYMOUS: Final = "User:ANONYMOUS"
USER: Final = "User:"
GROUP: Final = "Group:"


class Identity(msgspec.Struct, frozen=True):
    """Somebody, as rules and quotas know them."""

    principal: str = ANONYMOUS
    """`User:alice`, as Kafka writes it."""
    groups: tuple[str, ...] = ()
    """`Group:analysts`: rules for them hold for this user as well. Only tokens bring some."""
    expires_ms: int | None = None
    """When what was shown stops being valid, in ms since 1970; None where it never does."""

    @property
    def user(self) -> str:
        """The name alone, as quotas know it."""
        return self.principal.partition(":")[2]


NOBODY: Final = Identity()
