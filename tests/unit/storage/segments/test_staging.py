"""What jobs have staged is refused unless it fits, and then nothing has changed."""

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.storage.formats import object_keys
from unit.storage.engines import NAMESPACE, TOPIC, keys, memory_store, simulate
from unit.storage.swapping import PREFIX, segmented, stage, values, values_of


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ([], "no staged segments"),
        ([[1, 2]], "do not span whole segments"),
        ([[0, 1]], "do not span whole segments"),
        ([range(3), range(6, 10)], "gap in staged segments"),
        ([range(6, 14)], "do not span whole segments"),
        ([range(20, 22)], "do not span whole segments"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(plan, reason):
    async def scenario():
        store = memory_store()
        engine, log = await segmented(store)
        await stage(store, *plan)
        before = await keys(store)
        with pytest.raises(InvalidRequestError, match=reason):
            await engine.swap_segments(log, PREFIX)
        assert await keys(store) == before
        assert await values_of(engine) == values(range(0))

    simulate(scenario)


@pytest.mark.parametrize("way", ["damaged", "misnamed", "garbage", "another partition's", "live"])
def test_what_is_no_segment_of_the_log_is_refused(way):
    async def scenario():
        store = memory_store()
        engine, log = await segmented(store)
        await stage(store, range(3))
        prefix = PREFIX
        data = bytes(await store.get(f"{PREFIX}segment-{0:020d}.kfs"))
        if way == "damaged":
            await store.put(f"{PREFIX}segment-{0:020d}.kfs", [data[:-1]], create=False)
        elif way == "misnamed":
            await store.put(f"{PREFIX}segment-{3:020d}.kfs", [data])
        elif way == "garbage":
            await store.put(f"{PREFIX}readme", [b"hello"])
        elif way == "live":
            prefix = object_keys.partition_prefix(NAMESPACE, TOPIC, 0)
        else:
            prefix = object_keys.staging_prefix(NAMESPACE, "job", TOPIC, 1)
            await store.put(f"{prefix}segment-{0:020d}.kfs", [data])
        with pytest.raises(InvalidRequestError):
            await engine.swap_segments(log, prefix)
        assert await values_of(engine) == values(range(0))

    simulate(scenario)
