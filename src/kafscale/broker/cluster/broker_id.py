"""Which id a broker has: the configured one, the number in its host name, or an allocated one.

Invariant: all processes that allocate an id get different ones, except those that listen on the
same port of the same host name: they are the same broker, which gets its id back when it restarts.
That only one process at a time uses an id is left to `Registration`.
"""

import re
import uuid
from pathlib import Path
from typing import Final

from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import MetadataStore, Put, absent
from kafscale.net.address import Address
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

EMBEDDED_ID: Final = 0
"""The id of an embedded broker, whose metadata no other broker uses."""

CONFIGURED_ID_MAX: Final = 1000
"""Allocated ids are greater, as with Kafka's `reserved.broker.max.id`."""

_ORDINAL = re.compile(r".*-(\d{1,8})", re.ASCII)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NETWORK_NAMESPACE = Path("/proc/self/ns/net")


def ordinal_of(host_name: str) -> int | None:
    """The number at the end of a host name, as in the pods of a StatefulSet.

    >>> ordinal_of("kafscale-broker-2.kafscale.svc")
    2
    """
    match = _ORDINAL.fullmatch(host_name.split(".", maxsplit=1)[0])
    return int(match[1]) if match else None


async def determine(
    store: MetadataStore, configured: int | None, host_name: str, port: int, *, is_embedded: bool
) -> int:
    """The id of the broker that listens on `port`."""
    if configured is not None:
        return configured
    ordinal = ordinal_of(host_name)
    if ordinal is not None:
        return ordinal
    if is_embedded:
        return EMBEDDED_ID
    return await _allocate(store, f"{host_name}:{port}")


async def _allocate(store: MetadataStore, name: str) -> int:
    """The id that belongs to a name; a new name gets one that no name had before."""
    key = keys.allocated_broker_id(name)
    entry = await store.get(key)
    while entry is None:
        number = await id_allocator.allocate(
            store, id_allocator.BROKER_ID_COUNTER, above=CONFIGURED_ID_MAX
        )
        done = await store.commit([absent(key)], [Put(key, str(number).encode())])
        if done.succeeded:
            logger.info("broker id allocated", broker_id=number, name=name)
        entry = await store.get(key)
    return id_allocator.counter_value(entry)


def process_location(address: Address) -> str:
    """Names what only one process at a time can listen on: an address in a network namespace.

    Another process that bound the same one has replaced ours. Where this is not known, every
    process has a location of its own.
    """
    try:
        boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
        namespace = _NETWORK_NAMESPACE.stat().st_ino
    except OSError:
        return uuid.uuid4().hex
    return f"{boot_id}/{namespace}/{address.host}:{address.port}"
