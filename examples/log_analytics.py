"""Queries logs of services with SQL, directly in the topic, without loading them into a table.

    python examples/log_analytics.py

1. Log lines of one hour are produced as JSON, into a topic with four partitions.
2. `kafscale sql` runs queries to diagnose an incident. Fields are columns; the filter on
   `_timestamp` limits the segments that are read.
"""

# ruff: noqa: INP001, S311 - examples are scripts that generate data.

import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import sandbox
from confluent_kafka import Producer

TOPIC = "app-logs"
HOUR_MS = 3_600_000
SERVICES = ("gateway", "orders", "payments", "search")
QUERIES = """
-- Which services have errors?
select service, count(*) as lines, count_if(level = 'ERROR') as errors,
       round(100 * count_if(level = 'ERROR') / count(*), 1) as percent
from `app-logs` group by service order by errors desc;

-- Since when? Reads only the last half hour.
select date_trunc('MINUTE', _timestamp) as minute, count(*) as errors,
       round(percentile_approx(took_ms, 0.99)) as p99_ms
from `app-logs`
where _timestamp > current_timestamp() - interval 30 minutes and level = 'ERROR'
group by minute order by errors desc limit 5;

-- Which messages?
select message, count(*) as times, max(_timestamp) as last, any_value(http.path) as example
from `app-logs` where level = 'ERROR' group by message order by times desc;
"""


def produce(kafscale: sandbox.Kafscale, count: int) -> None:
    """Produce log lines of one hour; ten minutes ago, payments had an outage."""
    rng = random.Random(count)
    now_ms = int(time.time() * 1000)
    producer = Producer(
        {"bootstrap.servers": kafscale.bootstrap_servers, "compression.type": "lz4"}
    )
    for number in range(count):
        time_ms = now_ms - HOUR_MS + HOUR_MS * number // count
        service = rng.choice(SERVICES)
        has_outage = service == "payments" and 10 <= (now_ms - time_ms) / 60_000 < 13
        is_error = rng.random() < (0.6 if has_outage else 0.01)
        error = "bank does not respond" if has_outage else "request failed"
        line = {
            "service": service,
            "level": "ERROR" if is_error else rng.choice(("INFO", "INFO", "INFO", "WARN")),
            "message": error if is_error else "request done",
            "took_ms": round(rng.lognormvariate(3, 1) * (20 if is_error else 1), 1),
            "http": {
                "path": f"/{service}/{rng.randrange(100)}",
                "status": 500 if is_error else 200,
            },
        }
        producer.produce(TOPIC, json.dumps(line), key=service, timestamp=time_ms)
        producer.poll(0)
    producer.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    options = sandbox.parser(__doc__).parse_args(arguments)
    with sandbox.running(options) as kafscale, tempfile.TemporaryDirectory() as temporary:
        sandbox.create_topic(kafscale, TOPIC, 4)
        produce(kafscale, options.records)
        queries = Path(temporary) / "queries.sql"
        queries.write_text(QUERIES, encoding="utf-8")
        sandbox.command("sql", "--path", kafscale.path, "--file", str(queries))


if __name__ == "__main__":
    main()
