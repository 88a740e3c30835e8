"""Entities with dynamic configs, and the keys and encoding of their records. Pure.

    /kafscale/configs/groups/{group}            DynamicConfigs
    /kafscale/configs/brokers/{broker id}       DynamicConfigs
    /kafscale/configs/brokers/<default>         DynamicConfigs, for all brokers
    /kafscale/configs/client-metrics/{name}     DynamicConfigs

Invariants: different entities have different keys. Group ids may contain any character and are
escaped, so that none equals `<default>`.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema.protobuf import parse, serialize
from kafscale.metadata.store.base import Entry

CONFIGS: Final = "/kafscale/configs/"
_DEFAULT: Final = "<default>"

Configs = Mapping[str, str]


class EntityKind(enum.StrEnum):
    """What has dynamic configs, as keys name it. Topics keep their configs in their own record."""

    GROUP = "groups"
    BROKER = "brokers"
    CLIENT_METRICS = "client-metrics"
    """A subscription of metrics of clients (KIP-714)."""


@dataclass(frozen=True, slots=True)
class ConfigEntity:
    """A group, a broker, all brokers, or a subscription of client metrics."""

    kind: EntityKind
    name: str
    """The group id, the broker id, or the name of a subscription; empty for all brokers."""

    @property
    def key(self) -> str:
        """The key of its record.

        >>> ConfigEntity(EntityKind.GROUP, "a/b").key
        '/kafscale/configs/groups/a%2Fb'
        >>> ConfigEntity(EntityKind.BROKER, "").key
        '/kafscale/configs/brokers/<default>'
        """
        return f"{CONFIGS}{self.kind}/{_escape(self.name) or _DEFAULT}"


def entity_of(key: str) -> ConfigEntity | None:
    """The entity of a key; None for other keys."""
    kind, _, escaped = key.removeprefix(CONFIGS).partition("/")
    if kind not in set(EntityKind) or not escaped:
        return None
    name = "" if escaped == _DEFAULT else _unescape(escaped)
    entity = ConfigEntity(EntityKind(kind), name)
    return entity if entity.key == key else None


def encode_configs(configs: Configs) -> bytes:
    return serialize(messages.DynamicConfigs(configs=configs))


def decode_configs(entry: Entry) -> Configs:
    """Decode a record; raises `DamagedObjectError` if it is invalid."""
    return dict(parse(messages.DynamicConfigs(), entry).configs)


def _escape(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F").replace("<", "%3C")


def _unescape(text: str) -> str:
    return text.replace("%3C", "<").replace("%2F", "/").replace("%25", "%")
