"""Exponential backoff."""

from random import Random

from kafscale.aio.backoff import Backoff


def test_pauses_double_up_to_a_limit_with_jitter():
    backoff = Backoff(Random(1))
    pauses = [backoff.next_seconds() for _ in range(2_000)]
    for number, pause in enumerate(pauses[:20]):
        least = min(0.1 * 2**number, 10)
        assert least <= pause <= least * 1.3
    assert len(set(pauses[:20])) == 20
    assert 10 <= min(pauses[7:]) < max(pauses[7:]) <= 13
    assert backoff.tries == 2_000


def test_pauses_are_exact_without_random_and_start_again_after_a_reset():
    backoff = Backoff(first_seconds=0.5, max_seconds=3)
    assert [backoff.next_seconds() for _ in range(5)] == [0.5, 1, 2, 3, 3]
    backoff.reset()
    assert (backoff.tries, backoff.next_seconds()) == (0, 0.5)
