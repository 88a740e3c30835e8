"""Long responses are encoded piece by piece, to the same bytes."""

import pytest

from kafscale.broker.requests.sliced_encoding import RESULTS_AT_ONCE, encoded_response
from kafscale.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    ActiveProducer,
    DescribedPartition,
    DescribedTopic,
    DescribeProducersResponse,
)
from kafscale.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribedTransaction,
    DescribeTransactionsResponse,
    TopicInTransaction,
)
from kafscale.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    OffsetFetchResponse,
)

LONG = 3 * RESULTS_AT_ONCE + 1


def producers(count):
    return [ActiveProducer(producer_id=number) for number in range(count)]


def offsets(count):
    partitions = [
        FetchedPartition(number, number, metadata="é" * (number % 3)) for number in range(count)
    ]
    return [
        FetchedTopic("few", b"f" * 16, partitions[:3]),
        FetchedTopic("all", b"a" * 16, partitions),
        FetchedTopic("none", b"n" * 16),
    ]


RESPONSES = [
    (DESCRIBE_PRODUCERS, [0], DescribeProducersResponse()),
    (
        DESCRIBE_PRODUCERS,
        [0],
        DescribeProducersResponse(
            topics=[
                DescribedTopic("few", [DescribedPartition(7, 1, "é"), DescribedPartition(8)]),
                DescribedTopic(
                    "many",
                    [DescribedPartition(each, 0, None, producers(3)) for each in range(LONG)],
                ),
                DescribedTopic("one", [DescribedPartition(0, 0, None, producers(LONG))]),
                DescribedTopic(),
            ]
        ),
    ),
    (
        DESCRIBE_TRANSACTIONS,
        [0],
        DescribeTransactionsResponse(
            transactions=[
                DescribedTransaction(
                    transactional_id=str(number),
                    topics=[TopicInTransaction("t", list(range(number))), TopicInTransaction("u")],
                )
                for number in range(2000)
            ]
        ),
    ),
    (OFFSET_FETCH, range(8), OffsetFetchResponse(topics=offsets(LONG), error_code=3)),
    (
        OFFSET_FETCH,
        range(8, 11),
        OffsetFetchResponse(
            groups=[
                FetchedGroup("first", offsets(LONG), 5),
                *(FetchedGroup(f"group {number}", offsets(9)) for number in range(LONG // 10)),
            ]
        ),
    ),
]


@pytest.mark.parametrize(
    ("api", "version", "response"),
    [(api, version, response) for api, versions, response in RESPONSES for version in versions],
    ids=lambda value: getattr(value, "name", value if isinstance(value, int) else ""),
)
def test_pieces_together_are_the_encoded_message(api, version, response):
    steps = encoded_response(response, version, flexible=api.is_flexible(version))
    while True:
        try:
            assert next(steps) <= RESULTS_AT_ONCE
        except StopIteration as end:
            encoded = end.value
            break
    # The throttle time is known later than the rest.
    encoded.throttle_time_ms = response.throttle_time_ms = 1234
    whole = api.response_codec(version).encode_bytes(response)
    assert b"".join(encoded.encode()) == whole
    assert max(map(len, encoded.encode())) < max(len(whole), 1000)
