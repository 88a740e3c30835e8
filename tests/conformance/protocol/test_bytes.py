"""Bytes: what we write, others read and write again the same, and we read what we meant."""

from hypothesis import HealthCheck, given, settings

from conformance.protocol.cases import Case, every_case
from conformance.protocol.judges import JUDGES
from conformance.protocol.values import messages

thorough = settings(
    max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@every_case
def test_others_read_and_write_the_same_bytes(case: Case):
    judges = {name: rewrite for name, judge in JUDGES.items() if (rewrite := judge(case))}
    assert judges, "nobody can judge this message"

    @thorough
    @given(messages(case.message, case.version))
    def compare(message):
        encoded = case.codec.encode_bytes(message)
        assert case.codec.decode(encoded) == message
        for name, rewrite in judges.items():
            assert rewrite(encoded) == encoded, name

    compare()
