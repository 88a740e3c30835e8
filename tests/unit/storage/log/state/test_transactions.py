"""The section of transactions: encoded, decoded, damaged and searched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import DamagedObjectError
from kafscale.storage.formats.index_section import encode_section
from kafscale.storage.log.state.transactions import (
    AbortedTransaction,
    MarkedProducer,
    OpenTransaction,
    TransactionSection,
    TransactionSpans,
)

OPEN = [OpenTransaction(7, 2, 40, 1000), OpenTransaction(2**40, 0, 55, -1)]
ABORTED = [AbortedTransaction(9, 3, 20), AbortedTransaction(7, 10, 21)]
MARKED = [MarkedProducer(7, 2, 5, 900), MarkedProducer(9, 1, 4, 800)]
SECTION = TransactionSection(OPEN, TransactionSpans.of(ABORTED), MARKED)
# The published format: a prefix of version and checksum, then the three lists.
BODY = bytes.fromhex(
    "00000002"
    "0000000000000007" "0002" "0000000000000028" "00000000000003e8"
    "0000010000000000" "0000" "0000000000000037" "ffffffffffffffff"
    "00000002"
    "0000000000000009" "0000000000000003" "0000000000000014"
    "0000000000000007" "000000000000000a" "0000000000000015"
    "00000002"
    "0000000000000007" "0002" "00000005" "0000000000000384"
    "0000000000000009" "0001" "00000004" "0000000000000320"
)  # fmt: skip


def test_the_section_is_encoded_as_published() -> None:
    assert SECTION.encode() == encode_section(1, BODY)
    decoded = TransactionSection.decode("key", SECTION.encode())
    assert (decoded.open, list(decoded.aborted), decoded.marked) == (OPEN, ABORTED, MARKED)
    assert decoded.first_open_offset == 40


def test_lists_are_sorted_when_they_are_encoded() -> None:
    section = TransactionSection(OPEN[::-1], TransactionSpans.of(ABORTED), MARKED[::-1])
    assert section.encode() == SECTION.encode()


def test_an_empty_section() -> None:
    empty = TransactionSection.empty()
    assert empty.is_empty
    assert empty.first_open_offset is None
    assert TransactionSection.decode("key", empty.encode()).is_empty


@pytest.mark.parametrize("cut", range(len(BODY)))
def test_a_truncated_section_is_damaged(cut: int) -> None:
    with pytest.raises(DamagedObjectError):
        TransactionSection.decode("key", encode_section(1, BODY[:cut]))


@pytest.mark.parametrize(
    ("version", "body", "reason"),
    [
        (2, BODY, "version 2"),
        (1, BODY + b"\0", "1 extra bytes"),
        (1, b"\xff\xff\xff\xff" + BODY[4:], "truncated"),
        (1, BODY[:4] + BODY[30:56] + BODY[4:30] + BODY[56:], "open transactions do not ascend"),
        (1, BODY[:60] + BODY[84:108] * 2 + BODY[108:], "aborted transactions do not ascend"),
    ],
)
def test_an_invalid_section_is_damaged(version: int, body: bytes, reason: str) -> None:
    with pytest.raises(DamagedObjectError, match=reason):
        TransactionSection.decode("key", encode_section(version, body))


@st.composite
def ended(draw: st.DrawFn) -> list[AbortedTransaction]:
    """Transactions of several blocks, most of them short, ascending by last offset."""
    count = draw(st.integers(0, 700))
    lengths = draw(st.lists(st.integers(1, 12) | st.integers(1, 2000), min_size=1, max_size=40))
    return [
        AbortedTransaction(number, max(2 * number - lengths[number % len(lengths)], 0), 2 * number)
        for number in range(1, count)
    ]


@given(ended(), st.integers(0, 1500), st.integers(0, 400), st.integers(0, 1500))
def test_a_search_finds_exactly_what_overlaps(
    transactions: list[AbortedTransaction], from_offset: int, length: int, dropped_to: int
) -> None:
    to_offset = from_offset + length
    spans = TransactionSpans.of(transactions)

    def expected(kept: list[AbortedTransaction]) -> list[AbortedTransaction]:
        return [
            each
            for each in kept
            if each.first_offset < to_offset and each.last_offset >= from_offset
        ]

    def found(searched: TransactionSpans) -> list[AbortedTransaction]:
        return [searched[number] for number in searched.overlapping(from_offset, to_offset)]

    assert found(spans) == expected(transactions)
    decoded = TransactionSection.decode("key", TransactionSection([], spans, []).encode())
    assert found(decoded.aborted) == expected(transactions)
    kept = [each for each in transactions if each.last_offset >= dropped_to]
    assert spans.drop_below(dropped_to) == len(transactions) - len(kept)
    assert list(spans) == kept
    assert found(spans) == expected(kept)
    end = max([0, *(each.last_offset for each in transactions)])
    kept.append(AbortedTransaction(1, 0, end + 1))
    spans.append(1, 0, end + 1)
    assert found(spans) == expected(kept)
