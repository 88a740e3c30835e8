"""`Principal`: who is at the other end of a connection, once they have shown it."""

from typing import Final

import msgspec

ANONYMOUS_NAME: Final = "User:ANONYMOUS"
USER_PREFIX: Final = "User:"
GROUP_PREFIX: Final = "Group:"


class Principal(msgspec.Struct, frozen=True):
    """Somebody, as rules and quotas know them."""

    full_name: str = ANONYMOUS_NAME
    """`User:alice`, as Kafka writes it."""
    groups: tuple[str, ...] = ()
    """`Group:analysts`: rules for them hold for this user as well. Only tokens bring some."""
    expires_ms: int | None = None
    """When what was shown stops being valid, in ms since 1970; None where it never does."""

    @property
    def user(self) -> str:
        """The name alone, as quotas know it."""
        return self.full_name.partition(":")[2]


ANONYMOUS: Final = Principal()
