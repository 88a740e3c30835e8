"""The coordinator's settings, from the broker's."""

import msgspec
import pytest

from kafscale.broker.component_settings import group_settings, offset_settings
from kafscale.config import Config, load
from kafscale.config.sections.groups import Group, Offsets
from kafscale.groups.group import GroupSettings


def test_group_settings_default_to_kafkas():
    assert group_settings(Config()) == GroupSettings()


def test_group_settings_copy_every_setting():
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
def test_migration_policy_sets_upgrades_and_downgrades(policy, upgrades, downgrades):
    config = load({"KAFSCALE_GROUP_CONSUMER_MIGRATION_POLICY": policy})
    settings = group_settings(config)
    assert (settings.upgrades, settings.downgrades) == (upgrades, downgrades)


def test_offset_settings_copy_every_setting_and_retention_is_in_minutes():
    config = Config(
        offsets=Offsets(
            retention_minutes=2, retention_check_interval_ms=700, group_metadata_bytes_max=3
        )
    )
    assert msgspec.structs.astuple(offset_settings(config)) == (120_000, 700, 3)
