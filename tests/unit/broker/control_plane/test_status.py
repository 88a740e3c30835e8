"""The status of a broker, from memory."""

from msgspec.structs import replace

from unit.broker.control_plane.controlled_broker import ME, OTHER, log, owned, simulate


def test_status_has_identity_and_health():
    async def body(setup):
        setup.now_ms += 5_000
        status = await setup.broker.status(with_partitions=True)
        assert (status.broker_id, status.node_id, status.epoch) == ("1", 1, 4)
        assert (status.cluster_id, status.store_health) == ("cluster", "healthy")
        assert (status.is_controller, status.controller_id) == (True, "1")
        assert (status.ready, status.draining, status.uptime_ms) == (True, False, 5_000)
        assert status.version
        assert list(status.shards) == [3]

    simulate(body)


def test_status_has_owned_partitions():
    async def body(setup):
        await setup.put(owned("orders", 3, leader_epoch=1))
        zero, one, three = (await setup.broker.status(with_partitions=True)).partitions
        assert (zero.topic, zero.partition, zero.leader, zero.state) == (
            "orders",
            0,
            True,
            "online",
        )
        assert (zero.log_start_offset, zero.high_watermark, zero.log_end_offset) == (2, 9, 10)
        assert (zero.leader_epoch, zero.rolled_offset, zero.size_bytes) == (7, 0, 100)
        assert (one.state, one.moving_to, one.leader) == ("moving", "2", True)
        assert (three.partition, three.state, three.leader) == (3, "opening", False)
        assert not (await setup.broker.status(with_partitions=False)).partitions

    simulate(body)


def test_status_has_other_brokers():
    async def body(setup):
        # What an earlier session of a broker owned has no owner.
        await setup.put(replace(owned("orders", 3, OTHER), broker_epoch=0))
        me, other = (await setup.broker.status(with_partitions=False)).brokers
        assert (me.broker_id, me.host, me.port, me.rack, me.version) == ("1", "a", 9092, "z", "9")
        assert (me.control_host, me.control_port, me.epoch, me.draining) == ("a", 9095, 4, False)
        assert (me.partition_count, me.shard_count, me.moving_count) == (2, 1, 1)
        assert (other.broker_id, other.draining) == ("2", True)
        assert (other.partition_count, other.shard_count, other.moving_count) == (1, 1, 0)

    simulate(body)


def test_status_has_problems():
    async def body(setup):
        setup.problems = {"object storage": "unavailable"}
        status = await setup.broker.status(with_partitions=True)
        assert (status.ready, dict(status.problems)) == (False, setup.problems)
        assert len(status.partitions) == 2

    simulate(body)


def test_status_between_two_sessions():
    async def body(setup):
        setup.registration.broker = None
        status = await setup.broker.status(with_partitions=True)
        assert (status.ready, status.epoch, len(status.partitions)) == (False, -1, 0)
        assert "registration" in status.problems

    simulate(body)


def test_status_of_a_draining_broker():
    async def body(setup):
        setup.registration.broker = replace(ME, is_draining=True)
        assert (await setup.broker.status(with_partitions=True)).draining

    simulate(body)


def test_status_lists_many_partitions():
    async def body(setup):
        for number in range(0, 1_200, 60):
            topics = [f"t{number + each:04}" for each in range(60)]
            await setup.put(*(owned(topic, 0) for topic in topics))
            setup.storage.logs_by_partition |= {(topic, 0): log(topic, 0) for topic in topics}
        status = await setup.broker.status(with_partitions=True)
        received = [each.topic for each in status.partitions]
        assert received == ["orders", "orders", *(f"t{number:04}" for number in range(1_200))]
        assert all(each.leader for each in status.partitions)

    simulate(body)
