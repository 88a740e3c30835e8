"""The tables of `kafscale transaction`."""

import pytest

from kafscale.admin.transactions.hanging import HangingTransaction
from kafscale.admin.transactions.producers import PartitionProducer
from kafscale.admin.transactions.transactions import (
    TopicPartitions,
    TransactionDetail,
    TransactionInfo,
)
from kafscale.cli.commands.transaction import tables

NOW_MS = 10_000_000


def printed_rows(capsys):
    """The printed lines as lists of words, without rules."""
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line and not set("".join(line)) <= {"─", " "}]


def test_listed_transactions(capsys):
    tables.print_transactions([TransactionInfo("billing", 2, 4000, "Ongoing")], is_filtered=False)
    assert printed_rows(capsys)[-1] == ["billing", "Ongoing", "4000", "2"]
    tables.print_transactions([], is_filtered=True)
    assert "no transaction matches" in capsys.readouterr().out
    tables.print_transactions([], is_filtered=False)
    assert "no transactional ids" in capsys.readouterr().out


def test_descriptions(capsys):
    open_one = TransactionDetail(
        transactional_id="billing",
        coordinator=2,
        producer_id=4000,
        state="Ongoing",
        producer_epoch=7,
        timeout_ms=60_000,
        started_ms=NOW_MS - 61_000,
        topics=[TopicPartitions("orders", [0, 1, 2]), TopicPartitions("users", [5])],
    )
    tables.print_descriptions([open_one], NOW_MS)
    heading, _, row = printed_rows(capsys)
    assert heading == ["billing:", "Ongoing"]
    assert " ".join(row) == "4000 7 2 1m 1m 1s orders 0-2; users 5"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("Ongoing", "aborted the transaction"),
        ("PrepareAbort", "already being aborted"),
        ("PrepareCommit", "it is committed"),
        ("CompleteCommit", "no open transaction"),
    ],
)
def test_an_abort_says_what_became_of_the_transaction(state, expected):
    before = TransactionDetail(
        transactional_id="billing",
        coordinator=2,
        producer_id=4000,
        state=state,
        producer_epoch=7,
        timeout_ms=60_000,
        started_ms=None,
        topics=[],
    )
    assert expected in tables.describe_abort(before)


def test_hanging_transactions_are_shown_with_the_command_that_aborts_one(capsys):
    hanging = HangingTransaction("orders", 3, 1042, 4001, 0, None, NOW_MS - 3_600_000)
    tables.print_hanging([hanging], NOW_MS)
    _, row, hint = printed_rows(capsys)
    assert " ".join(row) == "orders 3 1042 4001 0 - 1h 0m ago"
    assert " ".join(hint).endswith(
        "kafscale transaction abort orders --partition 3 --start-offset 1042"
    )
    tables.print_hanging([], NOW_MS)
    assert capsys.readouterr().out == "no transaction hangs\n"


def test_producers(capsys):
    producer = PartitionProducer("orders", 3, 4001, 0, None, NOW_MS - 5_000, None, 1042)
    tables.print_producers([producer], NOW_MS)
    assert " ".join(printed_rows(capsys)[-1]) == "orders 3 4001 0 - 5s ago - 1042"
