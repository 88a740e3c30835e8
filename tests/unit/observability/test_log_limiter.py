"""Hush: a few lines in a second, and a count of the rest."""

from kafscale.observability.log_limiter import LINES_A_SECOND_MAX, RateLimitedLogger


def test_a_flood_becomes_a_few_lines_and_a_count():
    now_ms = 5_000
    hush = RateLimitedLogger(lambda: now_ms)
    told = sum(hush.allow() for _ in range(1_000))
    assert told == LINES_A_SECOND_MAX
    now_ms = 6_000
    assert hush.allow()
    assert hush.take_suppressed() == 1_000 - LINES_A_SECOND_MAX
    assert hush.take_suppressed() == 0
