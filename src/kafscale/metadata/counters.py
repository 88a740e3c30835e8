"""Numbers that the cluster gives out once each: epochs of brokers, blocks of producer ids.

The law: no two calls, on whatever brokers, get the same number, and later calls get greater ones. A
call that fails may leave numbers unused, which harms nobody.
"""

from typing import Final

from kafscale.errors import DamagedObjectError, StoreUnavailableError
from kafscale.metadata import keys
from kafscale.metadata.store import Compare, MetadataStore, Put

ATTEMPTS_MAX: Final = 1000
"""Each attempt that fails is another's success, so this many never fail in a row by chance."""

PRODUCER_IDS: Final = "producer-id"


def broker_epoch(broker_id: str) -> str:
    """The name of the counter of a broker's epochs."""
    return f"broker-epoch/{broker_id}"


async def next_value(store: MetadataStore, name: str, step: int = 1) -> int:
    """The first of the next `step` numbers, all of which are the caller's now; 0 is the first."""
    assert step >= 1, step
    key = keys.counter(name)
    for _ in range(ATTEMPTS_MAX):
        entry = await store.get(key)
        if entry and not entry.value.isdigit():
            raise DamagedObjectError(key, f"not a number: {entry.value!r}")
        first = int(entry.value) if entry else 0
        done = await store.commit(
            [Compare(key=key, mod_revision=entry.mod_revision if entry else 0)],
            [Put(key, str(first + step).encode())],
        )
        if done.succeeded:
            return first
    raise StoreUnavailableError(f"{key} was changed by others {ATTEMPTS_MAX} times in a row")
