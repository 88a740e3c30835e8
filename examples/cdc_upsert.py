"""Replicates a database table to an Iceberg table, from its change events.

    python examples/cdc_upsert.py

1. Changes of customers are produced in the format of Debezium's transformation
   ExtractNewRecordState: the key is the row's key, the value is the row after the change, and a
   deleted row is a key without a value (a tombstone).
2. `kafscale spark lake --mode upsert` keeps the last row of each key, or none if it was deleted.
3. More changes are produced, some of them with a new column, and the job runs again. Rows and
   offsets are one commit of the table, so the job may be stopped at any time.
"""

# ruff: noqa: INP001, S311, T201 - examples are scripts that generate data and print.

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sandbox
from confluent_kafka import Producer
from pyiceberg.catalog.sql import SqlCatalog

TOPIC = "customers"
Row = dict[str, Any]


class Database:
    """A table of customers that changes at random."""

    def __init__(self, seed: int) -> None:
        self.rows: dict[int, Row] = {}
        self._random = random.Random(seed)

    def changes(self, count: int, **columns: str) -> Iterator[tuple[int, Row | None]]:
        """Insert, update and delete rows; yield the keys and rows, or None for a deleted row."""
        for _ in range(count):
            number = self._random.randrange(max(count // 5, 10))
            if number in self.rows and self._random.random() < 0.2:
                del self.rows[number]
            else:
                balance = round(self._random.uniform(0, 1000), 2)
                self.rows[number] = {
                    "id": number,
                    "name": f"n{number}",
                    "balance": balance,
                } | columns
            yield number, self.rows.get(number)


def produce(kafscale: sandbox.Kafscale, changes: Iterator[tuple[int, Row | None]]) -> None:
    producer = Producer(
        {"bootstrap.servers": kafscale.bootstrap_servers, "enable.idempotence": True}
    )
    for number, row in changes:
        value = None if row is None else json.dumps(row)
        producer.produce(TOPIC, value, key=json.dumps({"id": number}))
        producer.poll(0)
    producer.flush()


def read(lake: Path) -> dict[int, Row]:
    """The rows of the table by key, without the columns that the lake job adds."""
    catalog = SqlCatalog("kafscale", uri=f"sqlite:///{lake / 'catalog.db'}", warehouse=str(lake))
    try:
        rows = catalog.load_table(f"kafscale.{TOPIC}").scan().to_arrow().to_pylist()
    finally:
        catalog.engine.dispose()
    by_key = {
        row["id"]: {
            name: value
            for name, value in row.items()
            if value is not None and not name.startswith("_kafscale_")
        }
        for row in rows
    }
    assert len(by_key) == len(rows), "a key occurs more than once"
    return by_key


def main(arguments: Sequence[str] | None = None) -> int:
    parser = sandbox.parser(__doc__)
    parser.add_argument(
        "--lake", type=Path, help="the directory of the table; temporary by default"
    )
    options = parser.parse_args(arguments)
    database = Database(seed=7)
    with sandbox.running(options) as kafscale, tempfile.TemporaryDirectory() as temporary:
        lake = options.lake or Path(temporary)
        upsert = ("--format", "json", "--mode", "upsert", "--once")
        to_table = ("spark", "lake", TOPIC, "--path", kafscale.path, "--to", str(lake))
        sandbox.create_topic(kafscale, TOPIC, 3)
        produce(kafscale, database.changes(options.records))
        sandbox.command(*to_table, *upsert)
        produce(kafscale, database.changes(options.records // 4, email="user@example.org"))
        sandbox.command(*to_table, *upsert)
        table = read(lake)
    assert table == database.rows, "the table differs from the database"
    emails = sum("email" in row for row in table.values())
    print(f"\n{len(table):,} rows, equal to the database; {emails:,} of them have the new column")
    return len(table)


if __name__ == "__main__":
    main()
