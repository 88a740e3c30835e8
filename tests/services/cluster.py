"""A Kafscale cluster on this machine, with a link that can fail between any two parts.

    with Cluster(tmp_path, brokers=3, etcd_members=3, seed=1) as cluster:
        cluster.wait_until_serving()
        cluster.nodes[1].kill()
        cluster.network.set(s3_link(2), Fault(lost_share=0.2))

Each broker has its own links to the bucket and to every etcd member, and clients reach each broker
over a link. Without etcd members there is one broker, which keeps its metadata in a file. A broker
that exits is restarted; all logs are below `directory`.
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
from services.node import Node, UnexpectedExit
from services.s3_server import S3Server, broker_settings
from services.waiting import wait_until

RESTART_CHECK_S = 0.1
TRACEBACK_CHARACTERS_MAX = 3000


def s3_link(broker_id: int) -> str:
    """The name of the link in the network."""
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
        assert etcd_members or brokers == 1, "several brokers need etcd"
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
            stack.enter_context(self._restarting_brokers())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers of clients."""
        ports = [node.broker.settings["broker_advertised_port"] for node in self.nodes.values()]
        return ",".join(f"{HOST}:{port}" for port in ports)

    def console_settings(self) -> dict[str, str]:
        """The settings with which the console reaches everything except the bucket."""
        control = [node.broker.control_address for node in self.nodes.values()]
        return {
            "bootstrap_servers": self.bootstrap,
            "control_servers": ",".join(control),
            "etcd_endpoints": ",".join(member.endpoint for member in self.etcd.members),
        }

    @property
    def unexpected_exits(self) -> list[UnexpectedExit]:
        """Exits of brokers that no test asked for."""
        return [
            unexpected_exit
            for node in self.nodes.values()
            for unexpected_exit in node.unexpected_exits
        ]

    def wait_until_serving(self, seconds_max: float = 60) -> None:
        nodes = self.nodes.values()
        wait_until(
            lambda: all(node.is_serving for node in nodes),
            "all brokers",
            seconds_max=seconds_max,
            seen=self.logged,
        )

    def restart(self) -> None:
        """Kill and start all brokers, so that only what is in the stores survives."""
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
        """The tracebacks in the logs of all brokers."""
        result = []
        for node in self.nodes.values():
            text = node.broker.log.read_text(errors="replace")
            result += [
                f"broker {node.broker_id}: Traceback{rest[:TRACEBACK_CHARACTERS_MAX]}"
                for rest in text.split("Traceback")[1:]
            ]
        return result

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
    def _restarting_brokers(self) -> Iterator[None]:
        """Restart brokers that exit, while the block runs."""
        is_over = threading.Event()

        def restart_if_exited() -> None:
            while not is_over.wait(RESTART_CHECK_S):
                for node in self.nodes.values():
                    node.restart_if_exited()

        thread = threading.Thread(target=restart_if_exited)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()
