"""Tables of `kafscale cluster`: brokers, partitions and moves."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from kafscale.admin.cluster.broker import BrokerStatus, ServedPartition
from kafscale.admin.cluster.operations import (
    ClusterStatus,
    FlushedPartition,
    PartitionMove,
    PartitionName,
)
from kafscale.cli.output import Part, print_line, print_table
from kafscale.text.formatting import format_age, format_size, pluralize

NAMES_MAX: Final = 5
"""The number of partitions that are named in a message."""
_COLOURS: Final = {"ready": "green", "online": "green", "draining": "yellow", "moving": "yellow"}


def print_status(status: ClusterStatus) -> None:
    brokers = status.brokers
    controller = status.controller
    leadership = "no controller" if controller is None else f"broker {controller} is the controller"
    print_line((status.cluster_id, "bold"), f": {pluralize(len(brokers), 'broker')}, {leadership}")
    print_line()
    print_table(
        (
            "broker",
            "state",
            "address",
            "control",
            "rack",
            "partitions",
            "shards",
            "moving",
            "store",
            "up",
            "version",
        ),
        map(_broker, brokers),
    )
    for broker in brokers:
        for subject, reason in broker.problems.items():
            print_line((f"broker {broker.id}: ", "yellow"), f"{subject}: {reason}")
    if status.partitions is not UNSET:
        print_line()
        print_partitions(status.partitions)


def print_partitions(partitions: Sequence[ServedPartition]) -> None:
    if not partitions:
        print_line("no partitions are served")
        return
    print_table(
        ("topic", "partition", "broker", "state", "epoch", "start", "rolled", "end", "size"),
        (
            (
                (each.topic, "bold"),
                str(each.partition),
                str(each.broker),
                _partition_state(each),
                str(each.leader_epoch),
                str(each.start_offset),
                str(each.rolled_offset),
                str(each.end_offset),
                format_size(each.size_bytes),
            )
            for each in partitions
        ),
    )


def print_flushed(flushed: Sequence[FlushedPartition]) -> None:
    if not flushed:
        print_line("there was nothing to flush")
        return
    print_table(
        ("broker", "partitions"),
        (
            (str(broker), str(count))
            for broker, count in sorted(Counter(each.broker for each in flushed).items())
        ),
    )
    print_line(f"{pluralize(len(flushed), 'partition')} fully rolled into segments")


def print_moves(moves: Sequence[PartitionMove]) -> None:
    if not moves:
        print_line("the cluster is balanced; no partition moves")
        return
    print_table(
        ("partition", "from", "to", "state"),
        (
            (
                (f"{move.topic}/{move.partition}", "bold"),
                str(move.source),
                str(move.target),
                ("moved", "green") if move.done else ("moving", "yellow"),
            )
            for move in moves
        ),
    )


def format_names(partitions: Sequence[PartitionName]) -> str:
    """The names of the first few partitions.

    >>> format_names([PartitionName("orders", number) for number in range(7)])
    'orders/0, orders/1, orders/2, orders/3, orders/4 and 2 more'
    """
    named = [f"{each.topic}/{each.partition}" for each in partitions]
    rest = len(named) - NAMES_MAX
    return ", ".join(named[:NAMES_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _broker(broker: BrokerStatus) -> tuple[Part, ...]:
    mark = " *" if broker.is_controller else ""
    uptime_ms = broker.uptime_ms
    return (
        (f"{broker.id}{mark}", "bold"),
        (broker.state, _COLOURS.get(broker.state, "red")),
        broker.address or "-",
        broker.control or "-",
        broker.rack or "-",
        str(broker.partition_count),
        str(broker.shard_count),
        str(broker.moving_count),
        broker.store_health or "-",
        "-" if uptime_ms is None else format_age(uptime_ms),
        broker.version,
    )


def _partition_state(partition: ServedPartition) -> Part:
    state = partition.state
    target = f" to {partition.moving_to}" if partition.moving_to is not None else ""
    return f"{state}{target}", _COLOURS.get(state, "yellow")
