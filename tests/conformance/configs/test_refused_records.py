"""Records that a topic refuses: which ones a response names, and in which words (KIP-467)."""

import re
import time

import pytest

from kafscale.records import Codec, Record, build

pytestmark = pytest.mark.timeout(120)

KEY = b"key"
EARLY_MS, LATE_MS = -200_000, 200_000
LIMITS = {"message_timestamp_before_max_ms": "100000", "message_timestamp_after_max_ms": "100000"}
BATCHES = {
    "good": [(KEY, 0)],
    "one without a key": [(None, 0)],
    "some without a key": [(KEY, 0), (None, 0), (KEY, 0), (None, 0)],
    "many without a key": [(None, 0)] * 20,
    "too late and too early": [(KEY, 0), (KEY, LATE_MS), (KEY, EARLY_MS), (KEY, 0)],
    "both": [(KEY, 0), (None, LATE_MS), (None, 0), (KEY, EARLY_MS), (KEY, 0)],
    "without a key and too late": [(None, LATE_MS), (KEY, 0)],
}


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4], ids=lambda codec: codec.name)
@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete"])
def test_refused_records_are_named(same, policy, codec):
    topic = f"refusing-{policy.replace(',', '-')}-{codec.name}"
    now_ms = time.time_ns() // 1_000_000

    def conversation(player):
        player.create(topic, cleanup_policy=policy, **LIMITS)
        results = {}
        for name, records in BATCHES.items():
            batch = build(
                [
                    Record(index, now_ms + age_ms, key, b"value")
                    for index, (key, age_ms) in enumerate(records)
                ],
                codec=codec,
            )
            for version in (7, 8, 11):
                produced = player.produce(topic, batch, version=version)
                results[name, version] = (
                    produced.error_code,
                    produced.base_offset,
                    produced.error_message,
                    [(each.batch_index, _without_limits(each)) for each in produced.record_errors],
                )
        return results

    same(conversation)


def _without_limits(error) -> str:
    """The text of a record error without the limits, which depend on when the broker got it."""
    return re.sub(r"within \[.*\]", "within []", error.message)
