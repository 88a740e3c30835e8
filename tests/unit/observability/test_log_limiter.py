"""The rate-limited logger: a few lines per second, and a count of the rest."""

from kafscale.observability.log_limiter import LINES_PER_SECOND_MAX, RateLimitedLogger


def test_rate_limited_logger_allows_a_few_lines_per_second_and_counts_the_rest():
    now_ms = 5_000
    limited = RateLimitedLogger(lambda: now_ms)
    allowed = sum(limited.allow() for _ in range(1_000))
    assert allowed == LINES_PER_SECOND_MAX
    now_ms = 6_000
    assert limited.allow()
    assert limited.take_suppressed() == 1_000 - LINES_PER_SECOND_MAX
    assert limited.take_suppressed() == 0
