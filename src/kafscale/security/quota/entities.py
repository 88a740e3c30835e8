"""Quota entities in the terms of Kafka's clients, and filters for them.

    entity_of([("user", "alice"), ("client-id", None)])    # None: the default of its type.

An entity is a user, a client id, both, or an IP address. Addresses are normalized. Host names are
not accepted, because their addresses may differ by broker and over time.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kafscale.errors import InvalidRequestError, UnknownApiError
from kafscale.metadata.access.model import QuotaEntity
from kafscale.net.address import parse_ip

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)

DEFAULT: Final = ""
"""How the default of a type is stored."""

EXACT, IS_DEFAULT, ANY_NAME = 0, 1, 2
"""Match types of filters: the given name, the default, or any name."""

Part = tuple[str, str | None]


def entity_of(parts: Sequence[Part]) -> QuotaEntity:
    """Build an entity; raises Kafka's errors for invalid parts."""
    named = dict(parts)
    if len(named) < len(parts):
        raise InvalidRequestError("Invalid client quota entity, duplicate entity entry")
    for kind, name in named.items():
        if kind not in TYPES:
            raise InvalidRequestError(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequestError(f"Empty {kind} not supported")
    if not named:
        raise InvalidRequestError("Invalid empty client quota entity")
    if IP in named and len(named) > 1:
        raise InvalidRequestError(
            "Invalid quota entity combination, IP entity should"
            "not be combined with User or ClientId"
        )
    if named.get(IP) is not None:
        named[IP] = address(named[IP] or "")
    kept = {kind: name or DEFAULT for kind, name in named.items()}
    return QuotaEntity(user=kept.get(USER), client_id=kept.get(CLIENT_ID), ip=kept.get(IP))


def parts_of(entity: QuotaEntity) -> list[Part]:
    """The parts of an entity.

    >>> parts_of(QuotaEntity(user="alice", client_id=""))
    [('user', 'alice'), ('client-id', None)]
    """
    kept = zip(TYPES, (entity.user, entity.client_id, entity.ip), strict=True)
    return [(kind, name or None) for kind, name in kept if name is not None]


def address(text: str) -> str:
    """Normalize an IP address.

    >>> address("::ffff:10.0.0.1"), address("2001:DB8:0::1")
    ('10.0.0.1', '2001:db8::1')
    """
    try:
        return str(parse_ip(text))
    except ValueError:
        raise InvalidRequestError(f"{text} is not a valid IP address.") from None


class Filter(msgspec.Struct, frozen=True):
    """A condition on one part of an entity."""

    kind: str
    match_type: int
    name: str | None = None

    def __post_init__(self) -> None:
        if not self.kind:
            raise InvalidRequestError("Invalid empty entity type.")
        if self.kind not in TYPES:
            raise UnknownApiError(f"Unsupported entity type {self.kind}")
        if self.match_type not in {EXACT, IS_DEFAULT, ANY_NAME}:
            raise InvalidRequestError(f"Unknown match type {self.match_type}")
        if self.match_type == EXACT and self.name is None:
            raise InvalidRequestError(
                "Request specified MATCH_TYPE_EXACT, but set match string to null."
            )
        if self.match_type != EXACT and self.name is not None:
            kind = "DEFAULT" if self.match_type == IS_DEFAULT else "SPECIFIED"
            raise InvalidRequestError(
                f"Request specified MATCH_TYPE_{kind}, but also specified a match string."
            )

    def matches(self, parts: dict[str, str | None]) -> bool:
        if self.kind not in parts:
            return False
        # As in Kafka, despite its documentation: any name includes the default.
        return self.match_type == ANY_NAME or parts[self.kind] == self.name


def select(
    entities: Iterable[QuotaEntity], filters: Iterable[Filter], *, strict: bool
) -> list[QuotaEntity]:
    """The entities that match all filters; `strict` excludes entities with other parts."""
    by_type = {each.kind: each for each in filters}
    if IP in by_type and len(by_type) > 1:
        raise InvalidRequestError(
            "Invalid entity filter component combination. IP filter component should not be used"
            " with user or clientId filter component."
        )
    selected = []
    for entity in entities:
        parts = dict(parts_of(entity))
        if all(each.matches(parts) for each in by_type.values()) and not (
            strict and parts.keys() - by_type.keys()
        ):
            selected.append(entity)
    return selected
