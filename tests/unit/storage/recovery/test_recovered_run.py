"""Runs are appended to logs once, and in short turns."""

import asyncio
import time
from itertools import pairwise

from kafscale.storage.recovery.recovered_run import STEPS_PER_TURN, new_pacer, recover_run
from unit.storage.engines import new_log, run_of, simulate

TURN_SECONDS_MAX = 0.05


def test_batches_that_the_log_has_are_skipped():
    async def scenario():
        log, pacer = new_log(), new_pacer()
        for run in (run_of(0, 1, 1), run_of(1, 1, 1), run_of(0, 1)):
            await recover_run(log, run, 0, pacer)
        assert [run.base_offset for run in log.tail.runs] == [0, 2]
        assert (log.high_watermark, log.end_offset) == (3, 3)

    simulate(scenario)


def test_other_tasks_get_their_turns_during_a_long_run():
    async def scenario():
        count = 20 * STEPS_PER_TURN
        log, run = new_log(), run_of(0, *[1] * count)
        turns = [time.thread_time()]

        async def measure() -> None:
            while not log.high_watermark:
                turns.append(time.thread_time())
                await asyncio.sleep(0)

        measuring = asyncio.create_task(measure())
        await recover_run(log, run, 0, new_pacer())
        await measuring
        assert log.high_watermark == count
        assert len(turns) > 15
        longest = max(end - start for start, end in pairwise(turns))
        assert longest < TURN_SECONDS_MAX

    simulate(scenario)
