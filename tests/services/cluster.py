"""A whole Kafscale on this machine, with a link that can fail between any two of its parts.

    with Cluster(tmp_path, brokers=3, etcd_members=3, seed=1) as cluster:
        cluster.wait_until_serving()
        cluster.nodes[1].kill()
        cluster.network.set(s3_link(2), Fault(lost_share=0.2))

Brokers reach the bucket and every member of etcd over links of their own, and clients reach brokers
over one each. Without members of etcd there is one broker, which keeps its metadata in a file. A
broker that ends by itself is started again; what all of them logged is below `directory`.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from services.broker import HOST, BrokerProcess
from services.etcd_server import EtcdCluster
from services.network import Network
from services.node import Ending, Node
from services.s3_server import S3Server, broker_settings
from services.waiting import wait_until

ATTEND_S = 0.1
TRACEBACK_CHARACTERS_MAX = 3000


def s3_link(broker_id: int) -> str:
    """The name of a link, as the network knows it."""
    return f"broker {broker_id} to s3"


def etcd_link(broker_id: int, member: int) -> str:
    return f"broker {broker_id} to etcd {member}"


def client_link(broker_id: int) -> str:
    return f"clients to broker {broker_id}"


class Cluster:
    """Brokers, etcd, an S3 server and the network between them."""

    def __init__(
        self, directory: Path, *, brokers: int, etcd_members: int, seed: int, **settings: str
    ) -> None:
        """`settings` are those of all brokers, as in `broker.BrokerProcess`."""
        assert etcd_members or brokers == 1, "brokers that share no metadata are no cluster"
        self.directory = directory
        (directory / "s3").mkdir(parents=True)
        (directory / "etcd").mkdir()
        self.s3 = S3Server(directory / "s3")
        self.etcd = EtcdCluster(directory / "etcd", count=etcd_members)
        self.network = Network(directory, seed=seed)
        self.nodes: dict[int, Node] = {}
        self._broker_ids = range(1, brokers + 1)
        self._settings = settings
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.s3)
            stack.enter_context(self.etcd)
            stack.enter_context(self.network)
            for broker_id in self._broker_ids:
                node = self.nodes[broker_id] = self._node(broker_id)
                stack.callback(node.kill)
                node.start()
            stack.enter_context(self._attended())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        """Where clients find the brokers."""
        ports = [node.broker.settings["broker_advertised_port"] for node in self.nodes.values()]
        return ",".join(f"{HOST}:{port}" for port in ports)

    def reached_by(self) -> dict[str, str]:
        """The settings by which the console finds all parts but the bucket."""
        control = [f"{HOST}:{node.broker.metrics_port}" for node in self.nodes.values()]
        return {
            "bootstrap_servers": self.bootstrap,
            "control_servers": ",".join(control),
            "etcd_endpoints": ",".join(member.endpoint for member in self.etcd.members),
        }

    @property
    def endings(self) -> list[Ending]:
        """The brokers that ended by themselves."""
        return [ending for node in self.nodes.values() for ending in node.endings]

    def wait_until_serving(self, seconds_max: float = 60) -> None:
        nodes = self.nodes.values()
        wait_until(
            lambda: all(node.is_serving for node in nodes),
            "all brokers",
            seconds_max=seconds_max,
            seen=self.logged,
        )

    def restart(self) -> None:
        """Kill all brokers, and start them again: nothing is left but what is in the stores."""
        for node in self.nodes.values():
            node.kill()
        for node in self.nodes.values():
            node.start()
        self.wait_until_serving()

    def logged(self, bytes_max: int = 4000) -> str:
        """The ends of all logs."""
        logs = [node.broker.log for node in self.nodes.values()]
        return "\n".join(
            f"--- {path.parent.name}\n{path.read_text(errors='replace')[-bytes_max:]}"
            for path in logs
            if path.exists()
        )

    def tracebacks(self) -> list[str]:
        """What brokers logged of errors that nobody had thought of."""
        found = []
        for node in self.nodes.values():
            text = node.broker.log.read_text(errors="replace")
            found += [
                f"broker {node.broker_id}: Traceback{rest[:TRACEBACK_CHARACTERS_MAX]}"
                for rest in text.split("Traceback")[1:]
            ]
        return found

    def _node(self, broker_id: int) -> Node:
        s3_port = urlsplit(self.s3.bucket.endpoint).port
        assert s3_port is not None
        s3_port = self.network.link(s3_link(broker_id), s3_port, "http")
        settings = broker_settings(self.s3.bucket) | {
            "s3_endpoint": f"http://{HOST}:{s3_port}",
            "broker_id": str(broker_id),
        }
        if self.etcd.members:
            settings["etcd_endpoints"] = ",".join(
                f"{HOST}:{self._etcd_port(broker_id, index)}"
                for index in range(len(self.etcd.members))
            )
        broker = BrokerProcess(self.directory / f"broker-{broker_id}", **settings, **self._settings)
        port = self.network.link(client_link(broker_id), broker.port, "tcp")
        broker.settings |= {"broker_advertised_host": HOST, "broker_advertised_port": str(port)}
        return Node(broker_id, broker)

    def _etcd_port(self, broker_id: int, member: int) -> int:
        port = int(self.etcd.members[member].endpoint.rpartition(":")[2])
        return self.network.link(etcd_link(broker_id, member), port, "tcp")

    @contextmanager
    def _attended(self) -> Iterator[None]:
        """Start brokers again that end by themselves, as long as the block lasts."""
        is_over = threading.Event()

        def attend() -> None:
            while not is_over.wait(ATTEND_S):
                for node in self.nodes.values():
                    node.attend()

        thread = threading.Thread(target=attend)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()
