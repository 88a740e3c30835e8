"""Allocates cluster-wide identifiers: cluster id, broker ids and epochs, blocks of producer ids.

Invariant: no two calls, on any brokers, get the same number, and later calls get greater numbers.
A call that fails may leave numbers unused, which is harmless.
"""

from typing import Final

from kafscale.errors import DamagedObjectError, StoreUnavailableError
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Compare, Entry, MetadataStore, Operation, Put, absent

ATTEMPTS_MAX: Final = 1000
"""Each failed attempt means that another allocation succeeded, so this limit is not reached by
contention alone."""

PRODUCER_ID_COUNTER: Final = "producer-id"
BROKER_ID_COUNTER: Final = "broker-id"


def broker_epoch_counter(broker_id: str) -> str:
    """The name of the counter of a broker's epochs."""
    return f"broker-epoch/{broker_id}"


async def cluster_id(store: MetadataStore, candidate: str, *operations: Operation) -> str:
    """Return the id of the cluster; the first caller sets it, in a commit with `operations`."""
    await store.commit(
        [absent(keys.CLUSTER_ID)], [Put(keys.CLUSTER_ID, candidate.encode()), *operations]
    )
    entry = await store.get(keys.CLUSTER_ID)
    assert entry, "a cluster id is never deleted"
    return entry.value.decode()


async def peek(store: MetadataStore, name: str) -> int | None:
    """Return the next number of a counter without taking it; None for a counter never used."""
    entry = await store.get(keys.counter(name))
    return None if entry is None else counter_value(entry)


async def allocate(store: MetadataStore, name: str, step: int = 1, *, above: int = -1) -> int:
    """Take the next `step` numbers and return the first of them; counters start at 0.

    All of them are greater than `above`, even if the stored counter is lower.
    """
    assert step >= 1, step
    return await _change(store, name, above + 1, step)


async def advance_to(store: MetadataStore, name: str, minimum: int) -> None:
    """Raise a counter so that it never returns a number below `minimum`."""
    await _change(store, name, minimum, 0)


def counter_value(entry: Entry) -> int:
    if not entry.value.isdigit():
        raise DamagedObjectError(entry.key, f"not a number: {entry.value!r}")
    return int(entry.value)


async def _change(store: MetadataStore, name: str, minimum: int, step: int) -> int:
    """Take `step` numbers, none below `minimum`, and return the first."""
    key = keys.counter(name)
    for _ in range(ATTEMPTS_MAX):
        entry = await store.get(key)
        value = counter_value(entry) if entry else 0
        first = max(value, minimum)
        if first + step == value:
            return first
        done = await store.commit(
            [Compare(key=key, mod_revision=entry.mod_revision if entry else 0)],
            [Put(key, str(first + step).encode())],
        )
        if done.succeeded:
            return first
    raise StoreUnavailableError(f"{key}: {ATTEMPTS_MAX} attempts failed because of other writers")
