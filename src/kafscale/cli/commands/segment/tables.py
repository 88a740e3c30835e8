"""Tables of `kafscale segment`: summaries, contents and the result of a verification."""

from collections.abc import Iterable, Sequence
from typing import Any

from kafscale.cli.output import Part, print_error, print_line, print_table
from kafscale.text.formatting import format_time, pluralize


def print_summaries(summaries: Iterable[dict[str, Any]]) -> None:
    print_table(
        ("object", "kind", "content", "bytes", "created"),
        (
            (
                (summary["path"], "bold"),
                summary["kind"],
                _describe_content(summary),
                f"{summary['sizeBytes']:,}",
                _time(summary.get("createdMs")),
            )
            for summary in summaries
        ),
    )


def print_verdict(
    count: int, damaged: Sequence[dict[str, str]], without_index: Sequence[str]
) -> None:
    for each in damaged:
        print_error(f"{each['path']}: {each['reason']}")
    for path in without_index:
        print_line((path, "bold"), ": the index file is missing; it can be rebuilt")
    verdict = (
        ("no damage found", "green") if not damaged else (f"{len(damaged)} damaged", "bold red")
    )
    print_line(f"{pluralize(count, 'object')}: ", verdict)


def print_content(content: dict[str, Any]) -> None:
    print_line((content["path"], "bold"))
    print_line(_describe_content(content), indent=2)
    for label, key in (("created", "createdMs"), ("max timestamp", "maxTimestampMs")):
        if key in content:
            print_line((f"{label} ", "dim"), _time(content[key]), indent=2)
    for label in ("flags", "checksum"):
        if label in content:
            print_line((f"{label} ", "dim"), str(content[label]), indent=2)
    for magic, size_bytes in content.get("sections", {}).items():
        print_line(("section ", "dim"), f"{magic}, {size_bytes:,} bytes", indent=2)
    print_line()
    if "entries" in content:
        _print_entries(content["entries"])
    if "batches" in content:
        _print_batches(content["batches"])
    for each in content.get("ranges", ()):
        print_line((f"{each['topic']}-{each['partition']}", "bold"), f"  {_offsets(each)}")
        _print_batches(each["batches"])


def _print_entries(entries: Iterable[dict[str, Any]]) -> None:
    print_table(
        ("offset", "position", "max timestamp"),
        (
            (str(entry["offset"]), str(entry["position"]), _time(entry["maxTimestampMs"]))
            for entry in entries
        ),
    )
    print_line()


def _print_batches(batches: Sequence[dict[str, Any]]) -> None:
    print_table(
        (
            "position",
            "offsets",
            "records",
            "bytes",
            "codec",
            "first timestamp",
            "max timestamp",
            "producer",
            "leader epoch",
            "",
        ),
        (_batch_row(batch) for batch in batches),
    )
    print_line()
    records = [record for batch in batches for record in batch.get("records", ())]
    if records:
        print_table(
            ("offset", "timestamp", "key", "value", "headers"),
            (_record_row(record) for record in records),
        )
        print_line()


def _batch_row(batch: dict[str, Any]) -> tuple[str, ...]:
    producer = "-"
    if batch["producerId"] >= 0:
        producer = (
            f"{batch['producerId']}, epoch {batch['producerEpoch']},"
            f" sequence {batch['baseSequence']}"
        )
    flags = [flag for flag in ("transactional", "control") if batch[flag]]
    flags += ["append time"] * (batch["timestampType"] == "log_append_time")
    return (
        str(batch["position"]),
        f"{batch['baseOffset']} to {batch['lastOffset']}",
        str(batch["recordCount"]),
        f"{batch['sizeBytes']:,}",
        batch["codec"],
        _time(batch["baseTimestampMs"]),
        _time(batch["maxTimestampMs"]),
        producer,
        str(batch["leaderEpoch"]),
        ", ".join(flags),
    )


def _record_row(record: dict[str, Any]) -> tuple[Part, ...]:
    headers = ", ".join(
        f"{_text(each['key'])}={_text(each['value'])}" for each in record["headers"]
    )
    return (
        str(record["offset"]),
        _time(record["timestampMs"]),
        _text(record["key"]),
        _text(record["value"]),
        headers,
    )


def _text(value: str | dict[str, str] | None) -> str:
    """A key or value on one line."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return f"base64:{value['base64']}"
    return value if value.isprintable() else repr(value)


def _describe_content(summary: dict[str, Any]) -> str:
    """A short description of the content of an object."""
    if "baseOffset" not in summary and "rangeCount" not in summary:
        return f"damaged: {summary['damage']}"
    match summary["kind"]:
        case "segment":
            return f"{_offsets(summary)}, {pluralize(summary['recordCount'], 'record')}"
        case "index":
            entries = pluralize(summary["entryCount"], "entry", "entries")
            return f"{entries} from offset {summary['baseOffset']}"
        case _:
            sequence = "broker {brokerId}, epoch {epoch}, sequence {sequence}".format_map(summary)
            if summary["fence"]:
                return f"{sequence}: fence"
            return f"{sequence}: {pluralize(summary['rangeCount'], 'partition')}"


def _offsets(span: dict[str, Any]) -> str:
    return f"offsets {span['baseOffset']} to {span['lastOffset']}"


def _time(time_ms: int | None) -> str:
    if time_ms is None or time_ms == -1:
        return "-"
    return format_time(time_ms).replace("T", " ").removesuffix("Z")
