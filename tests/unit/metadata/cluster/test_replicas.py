"""The replicas of a partition, and its preferred owner."""

import pytest
from msgspec.structs import replace

from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.cluster.replicas import partition_replicas, preferred_owner
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment, encode_broker
from kafscale.metadata.schema.model import NO_BROKER, Assignment, BrokerInfo, Topic
from kafscale.metadata.store.base import Put

TOPIC = Topic(name="orders", id=bytes(16), partitions=1, configs={}, created_ms=0)


def live(*broker_ids, draining=()):
    return {
        broker_id: BrokerInfo(
            id=broker_id, epoch=1, host="host", port=9092, is_draining=broker_id in draining
        )
        for broker_id in broker_ids
    }


@pytest.mark.parametrize(
    ("brokers", "preferred"),
    [
        (live(1, 2, 3), 2),
        (live(1, 3), 3),
        (live(1, 2, 3, draining=[2]), 3),
        (live(1, 2, draining=[2]), NO_BROKER),
        ({}, NO_BROKER),
    ],
)
def test_preferred_owner_is_the_first_that_can_own(brokers, preferred):
    assert preferred_owner((2, 3), brokers) == preferred


@pytest.mark.parametrize(
    ("requested", "owner", "brokers", "expected"),
    [
        (None, 1, live(1, 2), {"replicas": (1,), "in_sync": (1,)}),
        (None, 1, live(2), {"leader_id": NO_BROKER, "replicas": (), "in_sync": ()}),
        ((2, 1), 2, live(1, 2), {"replicas": (2, 1), "in_sync": (2, 1)}),
        ((2, 1), 1, live(1), {"replicas": (2, 1), "in_sync": (1,), "offline": (2,)}),
        ((2, 1), 2, live(1), {"leader_id": -1, "replicas": (2, 1), "in_sync": (1,)}),
        ((2,), 1, live(1), {"replicas": (1,), "in_sync": (1,), "adding": ()}),
        ((2,), 1, live(1, 2, draining=[2]), {"replicas": (1,), "in_sync": (1,), "adding": ()}),
        (
            (3, 2),
            1,
            live(1, 2),
            {
                "leader_id": 1,
                "leader_epoch": 5,
                "replicas": (3, 2, 1),
                "in_sync": (1,),
                "offline": (3,),
                "adding": (3, 2),
                "removing": (1,),
                "target": (3, 2),
            },
        ),
    ],
    ids=[
        "not requested",
        "no owner",
        "owned by the first",
        "the first is lost",
        "no owner of the list yet",
        "none of the list is there",
        "all of the list are draining",
        "moving",
    ],
)
def test_replicas_that_clients_see(run_with_store, requested, owner, brokers, expected):
    async def body(store):
        assignment = Assignment(
            topic="orders",
            partition=0,
            broker_id=owner,
            broker_epoch=1,
            leader_epoch=5,
            fully_rolled=True,
        )
        await store.commit(
            [],
            [
                Put(keys.assignment("orders", 0), encode_assignment(assignment)),
                *(
                    Put(keys.broker(str(each.id)), encode_broker(each, 0))
                    for each in brokers.values()
                ),
            ],
        )
        cache = ClusterCache(store)
        await cache.start()
        topic = replace(TOPIC, replicas={} if requested is None else {0: requested})
        shown = partition_replicas(cache, topic, 0)
        await cache.close()
        assert {name: getattr(shown, name) for name in expected} == expected
        assert shown.is_reassigning == bool(expected.get("adding"))

    run_with_store(body)
