"""Tables of `kafscale transaction`: transactions, hanging ones, and producers."""

from collections.abc import Iterable, Sequence

from kafscale.admin.transactions.hanging import HangingTransaction
from kafscale.admin.transactions.producers import PartitionProducer
from kafscale.admin.transactions.transactions import TransactionDetail, TransactionInfo
from kafscale.cli.commands.group.tables import format_assignment
from kafscale.cli.output import Part, print_line, print_table
from kafscale.text.formatting import format_age
from kafscale.text.units import show_duration

_STATE_STYLES = {
    "Empty": "dim",
    "CompleteCommit": "dim",
    "CompleteAbort": "dim",
    "Ongoing": "green",
}


def print_transactions(listed: Sequence[TransactionInfo], *, is_filtered: bool) -> None:
    if not listed:
        if is_filtered:
            print_line("no transaction matches; list all with: kafscale transaction list")
        else:
            print_line("there are no transactional ids; producers with a transactional.id have one")
        return
    print_table(
        ("transactional id", "state", "producer id", "coordinator"),
        (
            (
                (each.transactional_id, "bold"),
                _state(each.state),
                str(each.producer_id),
                str(each.coordinator),
            )
            for each in listed
        ),
    )


def print_descriptions(described: Iterable[TransactionDetail], now_ms: int) -> None:
    for index, each in enumerate(described):
        if index:
            print_line()
        print_line((each.transactional_id, "bold"), ": ", _state(each.state))
        print_line()
        print_table(
            ("producer id", "epoch", "coordinator", "timeout", "open for", "partitions"),
            [
                (
                    str(each.producer_id),
                    str(each.producer_epoch),
                    str(each.coordinator),
                    show_duration(each.timeout_ms),
                    _age(each.started_ms, now_ms),
                    format_assignment({one.topic: one.partitions for one in each.topics}) or "-",
                )
            ],
        )


def describe_abort(before: TransactionDetail) -> str:
    """What the abort of a transactional id did, from its state before."""
    name = before.transactional_id
    match before.state:
        case "Ongoing":
            return f"aborted the transaction of {name}, and fenced its producer"
        case "PrepareAbort":
            return f"fenced the producer of {name}, whose transaction was already being aborted"
        case "PrepareCommit":
            return (
                f"fenced the producer of {name}; its transaction had already been decided: it is"
                " committed"
            )
        case _:
            return f"fenced the producer of {name}, which had no open transaction"


def print_hanging(hanging: Sequence[HangingTransaction], now_ms: int) -> None:
    if not hanging:
        print_line("no transaction hangs")
        return
    print_table(
        ("topic", "partition", "start offset", "producer id", "epoch", "id", "last written"),
        (
            (
                (each.topic, "bold"),
                str(each.partition),
                (str(each.start_offset), "bold"),
                str(each.producer_id),
                str(each.producer_epoch),
                each.transactional_id or "-",
                _ago(each.last_written_ms, now_ms),
            )
            for each in hanging
        ),
    )
    first = hanging[0]
    print_line()
    print_line(
        f"abort one with: kafscale transaction abort {first.topic} --partition {first.partition}"
        f" --start-offset {first.start_offset}"
    )


def print_producers(producers: Sequence[PartitionProducer], now_ms: int) -> None:
    if not producers:
        print_line("no idempotent or transactional producer has written lately")
        return
    print_table(
        (
            "topic",
            "partition",
            "producer id",
            "epoch",
            "last sequence",
            "last written",
            "coordinator epoch",
            "transaction start",
        ),
        (
            (
                each.topic,
                str(each.partition),
                str(each.producer_id),
                str(each.producer_epoch),
                _number(each.last_sequence),
                _ago(each.last_timestamp_ms, now_ms),
                _number(each.coordinator_epoch),
                (_number(each.transaction_start_offset), "bold"),
            )
            for each in producers
        ),
    )


def _state(state: str) -> Part:
    return state, _STATE_STYLES.get(state, "yellow")


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _age(since_ms: int | None, now_ms: int) -> str:
    return "-" if since_ms is None else format_age(max(0, now_ms - since_ms))


def _ago(time_ms: int | None, now_ms: int) -> str:
    return "-" if time_ms is None else f"{_age(time_ms, now_ms)} ago"
