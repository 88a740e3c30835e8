"""Other implementations decode Kafscale's messages and encode the same bytes."""

from hypothesis import HealthCheck, given, settings

from conformance.protocol.cases import Case, every_case
from conformance.protocol.reference_codecs import REFERENCE_CODECS
from conformance.protocol.values import messages

thorough = settings(
    max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@every_case
def test_messages_round_trip_through_other_implementations(case: Case):
    references = {
        name: rewrite
        for name, reference in REFERENCE_CODECS.items()
        if (rewrite := reference(case))
    }
    assert references, "no reference implementation supports this message"

    @thorough
    @given(messages(case.message, case.version))
    def compare(message):
        encoded = case.codec.encode_bytes(message)
        assert case.codec.decode(encoded) == message
        for name, rewrite in references.items():
            assert rewrite(encoded) == encoded, name

    compare()
