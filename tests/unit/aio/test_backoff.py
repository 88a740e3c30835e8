"""Exponential backoff."""

from random import Random

from kafscale.aio.backoff import FIRST_MS, JITTER, LAST_MS, Backoff


def test_pauses_double_up_to_a_limit_with_jitter():
    backoff = Backoff(Random(1))
    pauses = [backoff.next_seconds() * 1000 for _ in range(20)]
    for number, pause_ms in enumerate(pauses):
        least_ms = min(FIRST_MS * 2**number, LAST_MS)
        assert least_ms <= pause_ms <= least_ms * (1 + JITTER)
    assert len(set(pauses)) == len(pauses)
    assert backoff.tries == 20
