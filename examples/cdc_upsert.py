"""Changes of a database's table become a table that is always as the database is.

    python examples/cdc_upsert.py

1. Changes of customers are produced as Debezium writes them with its transformation
   ExtractNewRecordState: the key is the row's key, the value is the row after the change, and
   a row that was deleted is a key without a value.
2. `kafscale spark lake --mode upsert` keeps one row a key: the last one, or none if it is deleted.
3. More changes come, some of them with a column that was not there before, and the job is run
   again. What it changes and how far it has come is one commit of the table, so that the job may
   be stopped at any time.
"""

# ruff: noqa: INP001, S311, T201 - examples are scripts that make data up, and talk.

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
    """A table of customers, and what happens to it."""

    def __init__(self, seed: int) -> None:
        self.rows: dict[int, Row] = {}
        self._dice = random.Random(seed)

    def changes(self, count: int, **columns: str) -> Iterator[tuple[int, Row | None]]:
        """So many inserts, updates and deletes: keys and rows, or None for a row that has gone."""
        for _ in range(count):
            number = self._dice.randrange(max(count // 5, 10))
            if number in self.rows and self._dice.random() < 0.2:
                del self.rows[number]
            else:
                balance = round(self._dice.uniform(0, 1000), 2)
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
    """The rows of the table, by key, without what the lake job has added."""
    catalog = SqlCatalog("kafscale", uri=f"sqlite:///{lake / 'catalog.db'}", warehouse=str(lake))
    try:
        rows = catalog.load_table(f"kafscale.{TOPIC}").scan().to_arrow().to_pylist()
    finally:
        catalog.engine.dispose()
    kept = (
        {name: value for name, value in row.items() if not name.startswith("_kafscale_")}
        for row in rows
    )
    found = {row["id"]: {name: value for name, value in row.items() if value is not None}
             for row in kept}  # fmt: skip
    assert len(found) == len(rows), "every key is there once"
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = sandbox.parser(__doc__)
    parser.add_argument("--lake", type=Path, help="where to put the table; else it is temporary")
    options = parser.parse_args(arguments)
    database = Database(seed=7)
    with sandbox.running(options) as kafscale, tempfile.TemporaryDirectory() as temporary:
        lake = options.lake or Path(temporary)
        to_table = (
            "spark", "lake", TOPIC, "--path", kafscale.path, "--to", str(lake),
            "--format", "json", "--mode", "upsert", "--once",
        )  # fmt: skip
        sandbox.create_topic(kafscale, TOPIC, 3)
        produce(kafscale, database.changes(options.records))
        sandbox.command(*to_table)
        produce(kafscale, database.changes(options.records // 4, email="someone@example.org"))
        sandbox.command(*to_table)
        table = read(lake)
    assert table == database.rows, "the table is as the database is"
    emails = sum("email" in row for row in table.values())
    print(f"\n{len(table):,} rows, as in the database; {emails:,} of them have the new column")
    return len(table)


if __name__ == "__main__":
    main()
