"""The event loop monitor: every delay is observed, and long ones are logged."""

import asyncio

from structlog.testing import capture_logs

from doubles import virtual_time
from kafscale.broker.event_loop_monitor import EventLoopMonitor
from kafscale.observability.metrics.broker import Metrics


def test_long_turn_is_observed_and_logged():
    metrics = Metrics()

    async def scenario(_):
        loop = asyncio.get_running_loop()
        monitor = EventLoopMonitor(metrics.event_loop_lag_seconds, cpu_clock=loop.time)
        task = asyncio.create_task(monitor.run())
        with capture_logs() as logs:
            await asyncio.sleep(1)
            loop.call_later(0.05, loop.block, 0.3)
            await asyncio.sleep(1)
            assert logs == []
            loop.call_later(0.05, loop.block, 0.8)
            await asyncio.sleep(1)
        task.cancel()
        [event] = logs
        assert event["event"] == "event loop blocked"
        assert 0.5 <= event["seconds"] <= 0.8 <= event["cpu_seconds"]

    virtual_time.run(scenario, seed=0)
    assert 0.9 <= metrics.event_loop_lag_seconds.sum <= 1.1
