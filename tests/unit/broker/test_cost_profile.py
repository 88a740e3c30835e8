"""The cost profile, `examples/cost-profile.yaml`, stays within the budget of PUTs (D-02, D-03).

A day of 100 GB to 100 partitions of three brokers is scaled down by `SCALE` in bytes, not in time:
one broker runs for some hours of virtual time with a third of the traffic, and every PUT counts.
"""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from doubles import virtual_time
from kafscale.broker.component_settings import engine_settings
from kafscale.broker.health import Health
from kafscale.config import Config, load
from kafscale.observability.metrics.broker import Metrics
from kafscale.storage.engine import EngineSettings
from kafscale.storage.objects.layers.observed import BEGUN, ObservedObjectStore
from unit.storage.engines import (
    NAMESPACE,
    TOPIC,
    log_settings,
    memory_store,
    new_engine,
    simulate,
    topic,
    values_batch,
)

PROFILE = Path(__file__).parents[3] / "examples" / "cost-profile.yaml"
BROKERS, PARTITIONS = 3, 34
BYTES_PER_SECOND = 100e9 / 86_400 / BROKERS
SCALE = 500
WARM_UP_HOURS = 2
"""Until the first tails are full."""
HOURS = 4
BATCH_OVERHEAD_BYTES = 70
PUTS_PER_DAY_MAX = 25_000
BUCKET = {"KAFSCALE_S3_BUCKET": "records", "KAFSCALE_S3_NAMESPACE": NAMESPACE}


def scaled(config: Config) -> EngineSettings:
    settings = engine_settings(config)
    policy, limits = settings.seal_policy, settings.limits
    assert policy.quiet_bytes is not None
    return replace(
        settings,
        seal_policy=replace(
            policy,
            flush_bytes=policy.flush_bytes // SCALE,
            quiet_bytes=policy.quiet_bytes // SCALE,
            coalesce_bytes=policy.coalesce_bytes // SCALE,
        ),
        limits=replace(
            limits,
            tail_bytes_max=limits.tail_bytes_max // SCALE,
            wal_bytes_max=limits.wal_bytes_max // SCALE,
            borrowed_bytes_max=limits.borrowed_bytes_max // SCALE,
        ),
    )


async def puts_per_day(config: Config) -> float:
    """The PUTs of all brokers, at the rate after the warm-up."""
    counts: Counter[str] = Counter()
    health = Health(config.s3, Metrics(), virtual_time.clock_ms)

    def on_operation(operation: str, status: str, seconds: float, size_bytes: int) -> None:
        counts[operation] += status != BEGUN
        health.on_operation(operation, status, seconds, size_bytes)

    store = ObservedObjectStore(memory_store(), on_operation)
    engine = new_engine(store, **vars(scaled(config)))
    await engine.start_session(0)
    settings = log_settings(segment_bytes=config.storage.segment_bytes // SCALE)
    await engine.open(topic(PARTITIONS, settings=settings))
    health.watch(engine, SimpleNamespace(connected=True))
    tasks = [asyncio.ensure_future(health.run(store)), asyncio.ensure_future(engine.run())]
    value = bytes(int(BYTES_PER_SECOND / SCALE) - BATCH_OVERHEAD_BYTES)
    for number in range((WARM_UP_HOURS + HOURS) * 3600):
        if number == WARM_UP_HOURS * 3600:
            counts.clear()
        log = engine.logs.get(TOPIC, number % PARTITIONS)
        log.append(values_batch([value]), virtual_time.clock_ms())
        await asyncio.sleep(1)
    for task in tasks:
        task.cancel()
    assert engine.counters.segments_rolled.total() > PARTITIONS
    engine.close()
    return counts["put"] * 24 / HOURS * BROKERS


def test_cost_profile_meets_the_budget():
    config = load({**BUCKET, "KAFSCALE_CONFIG_FILE": str(PROFILE)})
    puts = simulate(lambda: puts_per_day(config), time_max_s=1e6)
    assert 0.5 * PUTS_PER_DAY_MAX < puts <= PUTS_PER_DAY_MAX
