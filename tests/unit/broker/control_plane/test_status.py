"""How a broker does, told from what it remembers."""

from msgspec.structs import replace

from unit.broker.control_plane.stage import ME, OTHER, log, owned, play


def test_a_status_tells_who_it_is_and_how_it_does():
    async def body(stage):
        stage.now_ms += 5_000
        status = await stage.broker.status(with_partitions=True)
        assert (status.broker_id, status.node_id, status.epoch) == ("1", 1, 4)
        assert (status.cluster_id, status.store_health) == ("cluster", "healthy")
        assert (status.is_controller, status.controller_id) == (True, "1")
        assert (status.ready, status.draining, status.uptime_ms) == (True, False, 5_000)
        assert status.version
        assert list(status.shards) == [3]

    play(body)


def test_a_status_tells_of_what_it_owns():
    async def body(stage):
        await stage.put(owned("orders", 3, leader_epoch=1))
        zero, one, three = (await stage.broker.status(with_partitions=True)).partitions
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
        assert not (await stage.broker.status(with_partitions=False)).partitions

    play(body)


def test_a_status_tells_of_the_other_brokers():
    async def body(stage):
        # What is held by an earlier life of a broker is nobody's.
        await stage.put(replace(owned("orders", 3, OTHER), broker_epoch=0))
        me, other = (await stage.broker.status(with_partitions=False)).brokers
        assert (me.broker_id, me.host, me.port, me.rack, me.version) == ("1", "a", 9092, "z", "9")
        assert (me.control_host, me.control_port, me.epoch, me.draining) == ("a", 9093, 4, False)
        assert (me.partition_count, me.shard_count, me.moving_count) == (2, 1, 1)
        assert (other.broker_id, other.draining) == ("2", True)
        assert (other.partition_count, other.shard_count, other.moving_count) == (1, 1, 0)

    play(body)


def test_one_that_is_not_ready_says_why():
    async def body(stage):
        stage.problems = {"object storage": "unavailable"}
        status = await stage.broker.status(with_partitions=True)
        assert (status.ready, dict(status.problems)) == (False, stage.problems)
        assert len(status.partitions) == 2

    play(body)


def test_one_between_two_lives_owns_nothing():
    async def body(stage):
        stage.registration.broker = None
        status = await stage.broker.status(with_partitions=True)
        assert (status.ready, status.epoch, len(status.partitions)) == (False, -1, 0)
        assert "registration" in status.problems

    play(body)


def test_one_that_leaves_says_so():
    async def body(stage):
        stage.registration.broker = replace(ME, is_draining=True)
        assert (await stage.broker.status(with_partitions=True)).draining

    play(body)


def test_many_partitions_are_all_told_of():
    async def body(stage):
        for number in range(0, 1_200, 60):
            topics = [f"t{number + each:04}" for each in range(60)]
            await stage.put(*(owned(topic, 0) for topic in topics))
            stage.storage.by_place |= {(topic, 0): log(topic, 0) for topic in topics}
        status = await stage.broker.status(with_partitions=True)
        told = [each.topic for each in status.partitions]
        assert told == ["orders", "orders", *(f"t{number:04}" for number in range(1_200))]
        assert all(each.leader for each in status.partitions)

    play(body)
