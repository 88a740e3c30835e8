"""A cluster for benches: brokers, one etcd and an S3 server, connected directly.

    with DirectCluster(tmp_path, brokers=3) as cluster:
        topic = cluster.new_topic(100)
        cluster.nodes[1].kill()

Unlike `services.cluster` it has no links for faults, which would use CPU time, and it does not
restart brokers that exit. Without an S3 server the bench is skipped.
"""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bench.process_usage import cpu_seconds
from kafscale.control_plane.client import ControlClient
from kafscale.metadata.schema.keys import CLUSTER_ID
from services.broker import BrokerProcess
from services.etcd_server import EtcdServer
from services.exposition import sample
from services.node import Node
from services.s3_server import S3Server, broker_settings, is_available
from services.waiting import wait_until

CREATE_S_MAX = 60
SERVING_S_MAX = 60
STATISTICS_S = 1.2
"""After this time, metrics include all earlier events: some are copied once a second."""
IDLE_S = 3
"""A cluster that has written nothing to etcd for this time is stable."""
SETTLED_S_MAX = 120


class DirectCluster:
    """Brokers, numbered from 1, on stores of their own."""

    def __init__(self, directory: Path, *, brokers: int, **settings: str) -> None:
        """`settings` are those of all brokers, as in `services.broker.BrokerProcess`."""
        for name in ("s3", "etcd"):
            (directory / name).mkdir(parents=True)
        self.s3 = S3Server(directory / "s3")
        self.etcd = EtcdServer(directory / "etcd")
        stores = broker_settings(self.s3.bucket) | {
            "etcd_endpoints": ",".join(member.endpoint for member in self.etcd.members)
        }
        self.nodes = {
            number: Node(
                number,
                BrokerProcess(
                    directory / f"broker-{number}", broker_id=str(number), **stores, **settings
                ),
            )
            for number in range(1, brokers + 1)
        }
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if not is_available():
            pytest.skip("an S3 server needs Go to be built")
        with ExitStack() as stack:
            stack.enter_context(self.s3)
            stack.enter_context(self.etcd)
            for node in self.nodes.values():
                stack.callback(node.kill)
                node.start()
            self.wait_until_serving()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def addresses(self) -> Mapping[int, str]:
        return {number: node.broker.address for number, node in self.nodes.items()}

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses.values())

    def wait_until_serving(self) -> None:
        for number, node in self.nodes.items():
            wait_until(
                lambda node=node: node.is_serving,
                f"broker {number}",
                seconds_max=SERVING_S_MAX,
                seen=lambda node=node: node.broker.logged()[-2000:],
            )

    def wait_until_settled(self) -> None:
        """Wait until all assignments are done and all brokers know them."""
        deadline = time.monotonic() + SETTLED_S_MAX
        seen = -1
        while (revision := self.revision()) != seen:
            assert time.monotonic() < deadline, "idle brokers write to etcd"
            seen = revision
            time.sleep(IDLE_S)

    def new_topic(self, partitions: int) -> str:
        name = f"bench-{uuid4()}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        created = admin.create_topics(
            [NewTopic(name, partitions)],
            operation_timeout=CREATE_S_MAX,
            request_timeout=CREATE_S_MAX,
        )
        created[name].result(CREATE_S_MAX)
        return name

    def roll_segments(self) -> None:
        """Have all brokers roll their tails into segments."""

        async def flush(node: Node) -> None:
            async with ControlClient(node.broker.control_address) as client:
                await client.flush()

        async def flush_all() -> None:
            await asyncio.gather(*map(flush, self.nodes.values()))

        asyncio.run(flush_all())

    def restart(self) -> None:
        """Restart all brokers gracefully, which empties their caches."""
        for node in self.nodes.values():
            node.terminate()
        for node in self.nodes.values():
            node.start()
        self.wait_until_serving()

    # --- measurements -------------------------------------------------------------------------

    def cpu_seconds(self) -> float:
        """The CPU time of all brokers."""
        running = [node.process_id for node in self.nodes.values() if node.process_id is not None]
        return sum(map(cpu_seconds, running))

    def revision(self) -> int:
        """The revision of etcd: the number of transactions that changed something."""
        output = self.etcd.control("get", "--write-out", "json", CLUSTER_ID)
        return int(json.loads(output)["header"]["revision"])

    def samples(self, *beginnings: str) -> list[float]:
        """The sums of metrics over all brokers, by the beginning of their names."""
        time.sleep(STATISTICS_S)
        metrics = [node.broker.http("/metrics")[1] for node in self.nodes.values()]
        return [sum(sample(each, beginning) for each in metrics) for beginning in beginnings]


def machine_seconds() -> tuple[float, float]:
    """The busy and the total CPU time of this machine since its start."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    ticks = [int(field) / os.sysconf("SC_CLK_TCK") for field in fields]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)
