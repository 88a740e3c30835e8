"""How long failed logins wait for their answer."""

from kafscale.broker.security.login_backoff import FORGET_MS, HOSTS_COUNT_MAX, LoginBackoff


def test_every_failure_from_an_address_waits_longer_up_to_a_bound():
    backoff = LoginBackoff(100, 1_000)
    assert [backoff.failed("a", 0) for _ in range(6)] == [100, 200, 400, 800, 1_000, 1_000]
    assert backoff.failed("b", 0) == 100


def test_old_failures_are_forgotten():
    backoff = LoginBackoff(100, 1_000)
    backoff.failed("a", 0)
    backoff.failed("a", 0)
    assert backoff.failed("a", FORGET_MS + 1) == 100


def test_what_is_remembered_is_bounded_and_the_quietest_goes_first():
    backoff = LoginBackoff(100, 1_000)
    for number in range(HOSTS_COUNT_MAX):
        backoff.failed(str(number), 0)
    backoff.failed("0", 1)  # No longer the quietest.
    backoff.failed("new", 2)
    assert backoff.failed("0", 3) == 400
    assert backoff.failed("1", 3) == 100


def test_a_great_many_failures_do_no_harm():
    backoff = LoginBackoff(100, 1_000)
    assert {backoff.failed("a", 0) for _ in range(200)} == {100, 200, 400, 800, 1_000}
