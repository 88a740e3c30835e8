"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A shared machine pauses whenever it likes: pytest's time-out is the only clock for tests.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
