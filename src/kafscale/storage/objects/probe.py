"""The proof, before anything relies on it, that a store honours create-only PUTs.

Fencing rests on them: on a store that ignores the condition, two brokers could acknowledge records
into one log. Such a store is refused at the start, in words, and never worked around.
"""

from random import Random

from kafscale.errors import ConfigError, ObjectExistsError
from kafscale.storage.objects.base import ObjectStore


async def probe_create_only(store: ObjectStore, namespace: str, random: Random) -> None:
    """Write one key twice; the second must be told that the key is taken, and change nothing."""
    key = f"{namespace}/_probe/{random.getrandbits(64):016x}"
    await store.put(key, [b"first"])
    try:
        await store.put(key, [b"second"])
    except ObjectExistsError:
        is_honoured = bytes(await store.get(key)) == b"first"
    else:
        is_honoured = False
    await store.delete([key])
    if not is_honoured:
        raise ConfigError(
            "this object store overwrites objects that it was asked only to create: it ignores "
            "If-None-Match on PUT, without which records could be lost; use a store that has it"
        )
