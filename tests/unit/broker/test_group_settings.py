"""The settings of a broker reach its groups, each where it belongs."""

import msgspec
import pytest

from kafscale.broker.group_settings import group_settings, offset_retention
from kafscale.config import Config, load
from kafscale.config.sections.groups import Group, Offsets
from kafscale.groups.config import GroupSettings


def test_groups_have_kafkas_defaults_where_nothing_is_set():
    assert group_settings(Config()) == GroupSettings()


def test_every_setting_reaches_the_groups():
    config = Config(
        group=Group(
            initial_rebalance_delay_ms=1,
            session_timeout_ms_min=2,
            session_timeout_ms_max=3,
            size_max=4,
            consumer_session_timeout_ms=5,
            consumer_heartbeat_interval_ms=6,
            consumer_size_max=7,
            consumer_assignors=("range",),
            consumer_migration_policy="disabled",
        )
    )
    settings = group_settings(config)
    assert msgspec.structs.astuple(settings) == (1, 2, 3, 4, 5, 6, 7, ("range",), False, False)


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades"),
    [
        ("bidirectional", True, True),
        ("upgrade", True, False),
        ("downgrade", False, True),
        ("disabled", False, False),
    ],
)
def test_a_policy_says_which_ways_are_open(policy, upgrades, downgrades):
    config = load({"KAFSCALE_GROUP_CONSUMER_MIGRATION_POLICY": policy})
    settings = group_settings(config)
    assert (settings.upgrades, settings.downgrades) == (upgrades, downgrades)


def test_offsets_are_kept_for_minutes():
    config = Config(offsets=Offsets(retention_minutes=2, retention_check_interval_ms=700))
    retention = offset_retention(config)
    assert (retention.retention_ms, retention.check_interval_ms) == (120_000, 700)
