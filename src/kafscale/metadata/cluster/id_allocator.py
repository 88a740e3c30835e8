"""Numbers that the cluster gives out once each: epochs of brokers, blocks of producer ids.

The law: no two calls, on whatever brokers, get the same number, and later calls get greater ones. A
call that fails may leave numbers unused, which harms nobody.
"""

from typing import Final

from kafscale.errors import DamagedObjectError, StoreUnavailableError
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Compare, Entry, MetadataStore, Put

ATTEMPTS_MAX: Final = 1000
"""Each attempt that fails is another's success, so this many never fail in a row by chance."""

PRODUCER_IDS: Final = "producer-id"


def broker_epoch(broker_id: str) -> str:
    """The name of the counter of a broker's epochs."""
    return f"broker-epoch/{broker_id}"


async def read(store: MetadataStore, name: str) -> int | None:
    """The number that is next; None where there never was one."""
    entry = await store.get(keys.counter(name))
    return None if entry is None else value_of(entry)


async def next_value(store: MetadataStore, name: str, step: int = 1, *, above: int = -1) -> int:
    """The first of the next `step` numbers, all of which are the caller's now; 0 is the first.

    All of them are greater than `above`, whatever the store remembers.
    """
    assert step >= 1, step
    return await _change(store, name, above + 1, step)


async def raise_to(store: MetadataStore, name: str, least: int) -> None:
    """Give out no number below `least` any more."""
    await _change(store, name, least, 0)


def value_of(entry: Entry) -> int:
    """What a counter's entry says."""
    if not entry.value.isdigit():
        raise DamagedObjectError(entry.key, f"not a number: {entry.value!r}")
    return int(entry.value)


async def _change(store: MetadataStore, name: str, least: int, step: int) -> int:
    """Take `step` numbers from the first that may be given out, none below `least`; that first."""
    key = keys.counter(name)
    for _ in range(ATTEMPTS_MAX):
        entry = await store.get(key)
        value = value_of(entry) if entry else 0
        first = max(value, least)
        if first + step == value:
            return first
        done = await store.commit(
            [Compare(key=key, mod_revision=entry.mod_revision if entry else 0)],
            [Put(key, str(first + step).encode())],
        )
        if done.succeeded:
            return first
    raise StoreUnavailableError(f"{key} was changed by others {ATTEMPTS_MAX} times in a row")
