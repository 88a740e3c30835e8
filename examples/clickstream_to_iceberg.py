"""Writes clicks of a web shop to an Iceberg table, exactly once, and plots them.

    python examples/clickstream_to_iceberg.py --plot clicks.svg

1. Clicks of three days are produced as JSON, into a topic of three partitions.
2. `kafscale spark lake` writes them to a table, partitioned by day. The columns are inferred from
   the fields of the clicks.
3. It runs again after more clicks, and once more: the table has the offsets that it contains, so
   no click is missing or duplicated.
4. pyiceberg reads the table, as any Iceberg reader can, and the clicks are plotted by hour.
"""

# ruff: noqa: INP001, S311, T201 - examples are scripts that generate data and print.

import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import pyarrow as pa
import pyarrow.compute as pc
import sandbox
from confluent_kafka import Producer
from pyiceberg.catalog.sql import SqlCatalog

TOPIC = "clicks"
PAGES = ("/", "/search", "/product", "/cart", "/checkout")
WEIGHTS = (30, 25, 30, 10, 5)
DAY_MS = 86_400_000


def produce(kafscale: sandbox.Kafscale, count: int, since_ms: int, until_ms: int) -> None:
    """Produce clicks at random times, most of them near the end."""
    rng = random.Random(count)
    producer = Producer(
        {"bootstrap.servers": kafscale.bootstrap_servers, "compression.type": "zstd"}
    )
    for _ in range(count):
        time_ms = int(rng.triangular(since_ms, until_ms, until_ms - (until_ms - since_ms) // 6))
        user = rng.randrange(1000)
        click = {
            "user": user,
            "page": rng.choices(PAGES, WEIGHTS)[0],
            "country": rng.choice(("DE", "FR", "IT", "PL")),
            "load_ms": round(rng.lognormvariate(5, 0.5), 1),
        }
        producer.produce(TOPIC, json.dumps(click), key=str(user), timestamp=time_ms)
        producer.poll(0)
    producer.flush()


def read(lake: Path) -> pa.Table:
    """The table, from the catalog that the lake job has created beside it."""
    catalog = SqlCatalog("kafscale", uri=f"sqlite:///{lake / 'catalog.db'}", warehouse=str(lake))
    try:
        return catalog.load_table(f"kafscale.{TOPIC}").scan().to_arrow()
    finally:
        catalog.engine.dispose()


def plot(table: pa.Table, path: Path) -> None:
    """Plot the clicks by hour and page."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend is selected.

    hours = pc.floor_temporal(table["_kafscale_timestamp"], unit="hour")
    counted = (
        pa.table({"hour": hours, "page": table["page"]})
        .group_by(["hour", "page"])
        .aggregate([([], "count_all")])
        .sort_by("hour")
    )
    figure, axes = plt.subplots(figsize=(9, 4))
    for page in PAGES:
        of_page = counted.filter(pc.equal(counted["page"], page))
        axes.plot(of_page["hour"].to_pylist(), of_page["count_all"].to_pylist(), label=page)
    axes.set_ylabel("clicks per hour")
    axes.set_ylim(bottom=0)
    axes.legend(ncols=len(PAGES), frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    axes.spines[["top", "right"]].set_visible(False)
    figure.autofmt_xdate()
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = sandbox.parser(__doc__)
    parser.add_argument(
        "--lake", type=Path, help="the directory of the table; temporary by default"
    )
    parser.add_argument("--plot", type=Path, default=Path("clicks.svg"), help=".svg or .png")
    options = parser.parse_args(arguments)
    now_ms = int(time.time() * 1000)
    with sandbox.running(options) as kafscale, tempfile.TemporaryDirectory() as temporary:
        lake = options.lake or Path(temporary)
        to_table = ("spark", "lake", TOPIC, "--path", kafscale.path, "--to", str(lake))
        by_day = ("--format", "json", "--partition-by", "day", "--once")
        sandbox.create_topic(kafscale, TOPIC, 3)
        produce(kafscale, options.records, now_ms - 3 * DAY_MS, now_ms - DAY_MS)
        sandbox.command(*to_table, *by_day)
        produce(kafscale, options.records // 2, now_ms - DAY_MS, now_ms)
        sandbox.command(*to_table, *by_day)
        sandbox.command(*to_table, *by_day)
        table = read(lake)
    plot(table, options.plot)
    print(f"\n{table.num_rows:,} clicks are in the table; the plot is {options.plot}")
    return table.num_rows


if __name__ == "__main__":
    main()
