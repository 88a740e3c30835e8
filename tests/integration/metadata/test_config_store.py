"""Dynamic configs in every metadata store."""

import asyncio

from kafscale.metadata.configs.model import ConfigEntity, EntityKind
from kafscale.metadata.configs.store import ConfigStore

GROUP = ConfigEntity(EntityKind.GROUP, "bill/ing é%<default>")
ALL_BROKERS = ConfigEntity(EntityKind.BROKER, "")


def test_changes_of_several_brokers_are_all_visible_to_each(run_with_store):
    async def body(store):
        brokers = [ConfigStore(store) for _ in range(3)]
        for each in brokers:
            await each.start()
        await asyncio.gather(
            *(
                broker.alter(entity, lambda current, name=f"{number}": {**current, name: "é"})
                for number, broker in enumerate(brokers)
                for entity in (GROUP, ALL_BROKERS)
            )
        )
        fresh = ConfigStore(store)
        await fresh.start()
        expected = {str(number): "é" for number in range(3)}
        assert fresh.get(GROUP) == fresh.get(ALL_BROKERS) == expected
        await fresh.alter(GROUP, lambda _current: {})
        assert fresh.names(EntityKind.GROUP) == []
        for each in brokers:
            await each.alter(ALL_BROKERS, lambda current: {**current, "last": "1"})
            assert each.get(GROUP) == {}, "a later change is visible, and so is an earlier one"
        for each in [*brokers, fresh]:
            await each.close()

    run_with_store(body)
