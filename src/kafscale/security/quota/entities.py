"""Whom quotas are for, in the words of Kafka's clients, and which of them a filter means.

    entity_of([("user", "alice"), ("client-id", None)])    # None: the default of its type.

The laws: an entity is a user, a client id, both, or an address; no other combination exists. An
address has one spelling, so that it is found again. Names of hosts are no addresses here: what they
stand for would differ from broker to broker, and from day to day.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kafscale.errors import InvalidRequestError, UnknownApiError
from kafscale.metadata.access.model import QuotaEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)

DEFAULT: Final = ""
"""How the default of a type is kept."""

EXACT, IS_DEFAULT, ANY_NAME = 0, 1, 2
"""How a filter matches: the name that it gives, the default, or whoever is named at all."""

Part = tuple[str, str | None]


def entity_of(parts: Sequence[Part]) -> QuotaEntity:
    """The entity of these parts; raises what is wrong about them, in Kafka's words."""
    named = dict(parts)
    if len(named) < len(parts):
        raise InvalidRequestError("Invalid client quota entity, duplicate entity entry")
    for kind, name in named.items():
        if kind not in TYPES:
            raise InvalidRequestError(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequestError(f"Empty {kind} not supported")
    if not named or (IP in named and len(named) > 1):
        raise InvalidRequestError("Invalid empty client quota entity")
    if named.get(IP) is not None:
        named[IP] = address(named[IP] or "")
    kept = {kind: name or DEFAULT for kind, name in named.items()}
    return QuotaEntity(user=kept.get(USER), client_id=kept.get(CLIENT_ID), ip=kept.get(IP))


def parts_of(entity: QuotaEntity) -> list[Part]:
    """What an entity is made of.

    >>> parts_of(QuotaEntity(user="alice", client_id=""))
    [('user', 'alice'), ('client-id', None)]
    """
    kept = zip(TYPES, (entity.user, entity.client_id, entity.ip), strict=True)
    return [(kind, name or None) for kind, name in kept if name is not None]


def address(text: str) -> str:
    """The one spelling of an address.

    >>> address("::ffff:10.0.0.1"), address("2001:DB8:0::1")
    ('10.0.0.1', '2001:db8::1')
    """
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise InvalidRequestError(f"{text} is not a valid IP address.") from None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


class Filter(msgspec.Struct, frozen=True):
    """What part of an entity is looked for."""

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
        if (self.match_type == EXACT) != (self.name is not None):
            raise InvalidRequestError("A name goes with an exact match, and with no other.")

    def matches(self, parts: dict[str, str | None]) -> bool:
        if self.kind not in parts:
            return False
        # As in Kafka, whose documentation has it otherwise: who asks for any name sees the default.
        return self.match_type == ANY_NAME or parts[self.kind] == self.name


def select(
    entities: Iterable[QuotaEntity], filters: Iterable[Filter], *, strict: bool
) -> list[QuotaEntity]:
    """The entities that all filters match; `strict` leaves out those with other parts as well."""
    wanted = {each.kind: each for each in filters}
    if IP in wanted and len(wanted) > 1:
        raise InvalidRequestError("An address goes with no user and no client id.")
    found = []
    for entity in entities:
        parts = dict(parts_of(entity))
        if all(each.matches(parts) for each in wanted.values()) and not (
            strict and parts.keys() - wanted.keys()
        ):
            found.append(entity)
    return found
