"""Appends runs that were found in WAL objects or damaged segments to logs that are being opened.

Invariant: no turn on the event loop takes longer than a few milliseconds, however many batches
there are. A log that is being opened is not served yet, so other tasks never see it half done.
"""

import asyncio
from typing import Final

from kafscale.aio.pacer import Pacer
from kafscale.records.batch import CONTROL_BIT
from kafscale.records.control import read_end_marker
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.batch_run import BatchRun

STEPS_PER_TURN: Final = 1000
"""Batches whose producers are recorded in one turn: about 3 ms."""

_RUN_STEPS: Final = 5
"""What a run costs besides its batches."""


def new_pacer() -> Pacer:
    """A pacer for `recover_run`; share one between many runs."""
    return Pacer(STEPS_PER_TURN)


async def recover_run(log: PartitionLog, run: BatchRun, now_ms: int, pacer: Pacer) -> None:
    """Append the batches of a run that the log does not have yet."""
    first = run.first_index(log.recovery_offset)
    if first == len(run.offsets):
        return
    if first:
        run = await asyncio.to_thread(BatchRun.parse, run.view[run.positions[first] :])
    for start in range(0, len(run.offsets), STEPS_PER_TURN):
        count = 0
        for header in run.headers(start, start + STEPS_PER_TURN):
            marker = None
            if header.attributes & CONTROL_BIT:
                marker = read_end_marker(run.batch(start + count))
            log.update_state(header, now_ms, marker)
            count += 1
        await pacer.step(count)
    log.recover(run, now_ms)
    await pacer.step(_RUN_STEPS)
