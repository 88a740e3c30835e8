"""The faults of a cluster: each can begin and end, and has targets.

Two faults with a common target must not be active at the same time, because the end of one would
end both; `schedule` ensures that.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from services.cluster import Cluster
from services.link_fault import HEALTHY, Fault

CUT_S = 0.7
"""The time between two resets of a connection."""


class ClusterFault(Protocol):
    """A fault that lasts for a while."""

    @property
    def kind(self) -> str:
        """The name of the fault in the report."""

    @property
    def targets(self) -> frozenset[str]: ...
    def begin(self, cluster: Cluster) -> None: ...
    def end(self, cluster: Cluster) -> None: ...


# --- brokers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BrokerKill:
    """Brokers are killed, as by a loss of power, and started again."""

    broker_ids: tuple[int, ...]
    kind = "broker kill"

    def __str__(self) -> str:
        return f"{self.kind} {self.broker_ids}"

    @property
    def targets(self) -> frozenset[str]:
        return _brokers(self.broker_ids)

    def begin(self, cluster: Cluster) -> None:
        for broker_id in self.broker_ids:
            cluster.nodes[broker_id].kill()

    def end(self, cluster: Cluster) -> None:
        for broker_id in self.broker_ids:
            cluster.nodes[broker_id].start()


@dataclass(frozen=True)
class BrokerPause:
    """Brokers are paused without noticing, as when a virtual machine is migrated."""

    broker_ids: tuple[int, ...]
    kind = "broker pause"

    def __str__(self) -> str:
        return f"{self.kind} {self.broker_ids}"

    @property
    def targets(self) -> frozenset[str]:
        return _brokers(self.broker_ids)

    def begin(self, cluster: Cluster) -> None:
        for broker_id in self.broker_ids:
            cluster.nodes[broker_id].pause()

    def end(self, cluster: Cluster) -> None:
        for broker_id in self.broker_ids:
            cluster.nodes[broker_id].resume()


@dataclass(frozen=True)
class BrokerStop:
    """Brokers are stopped by SIGTERM, as for an update, and started again."""

    broker_ids: tuple[int, ...]
    kind = "broker stop"
    _stopping: list[threading.Thread] = field(default_factory=list, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.broker_ids}"

    @property
    def targets(self) -> frozenset[str]:
        return _brokers(self.broker_ids)

    def begin(self, cluster: Cluster) -> None:
        for broker_id in self.broker_ids:
            stopping = threading.Thread(target=cluster.nodes[broker_id].terminate)
            stopping.start()
            self._stopping.append(stopping)

    def end(self, cluster: Cluster) -> None:
        for broker_id, stopping in zip(self.broker_ids, self._stopping, strict=True):
            stopping.join()
            cluster.nodes[broker_id].start()
        self._stopping.clear()


# --- etcd -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EtcdKill:
    members: tuple[int, ...]
    kind = "etcd kill"

    def __str__(self) -> str:
        return f"{self.kind} {self.members}"

    @property
    def targets(self) -> frozenset[str]:
        return _members(self.members)

    def begin(self, cluster: Cluster) -> None:
        for index in self.members:
            cluster.etcd.members[index].kill()

    def end(self, cluster: Cluster) -> None:
        for index in self.members:
            cluster.etcd.members[index].start(wait=False)


@dataclass(frozen=True)
class EtcdPause:
    members: tuple[int, ...]
    kind = "etcd pause"

    def __str__(self) -> str:
        return f"{self.kind} {self.members}"

    @property
    def targets(self) -> frozenset[str]:
        return _members(self.members)

    def begin(self, cluster: Cluster) -> None:
        for index in self.members:
            cluster.etcd.members[index].pause()

    def end(self, cluster: Cluster) -> None:
        for index in self.members:
            cluster.etcd.members[index].resume()


# --- S3 -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class S3Kill:
    """The S3 server refuses connections."""

    kind = "s3 kill"

    def __str__(self) -> str:
        return self.kind

    @property
    def targets(self) -> frozenset[str]:
        return frozenset({"s3"})

    def begin(self, cluster: Cluster) -> None:
        cluster.s3.kill()

    def end(self, cluster: Cluster) -> None:
        cluster.s3.start()


@dataclass(frozen=True)
class S3Pause:
    """The S3 server accepts connections, but does not respond."""

    kind = "s3 pause"

    def __str__(self) -> str:
        return self.kind

    @property
    def targets(self) -> frozenset[str]:
        return frozenset({"s3"})

    def begin(self, cluster: Cluster) -> None:
        cluster.s3.pause()

    def end(self, cluster: Cluster) -> None:
        cluster.s3.resume()


# --- links ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FaultyLinks:
    """Links with the same fault."""

    kind: str
    links: tuple[str, ...]
    fault: Fault

    def __str__(self) -> str:
        return f"{self.kind}: {', '.join(self.links)}, {self.fault}"

    @property
    def targets(self) -> frozenset[str]:
        return frozenset(self.links)

    def begin(self, cluster: Cluster) -> None:
        for link in self.links:
            cluster.network.set(link, self.fault)

    def end(self, cluster: Cluster) -> None:
        for link in self.links:
            cluster.network.set(link, HEALTHY)


@dataclass(frozen=True)
class CutLinks:
    """Connections are reset periodically."""

    kind: str
    links: tuple[str, ...]
    _stopped: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.kind}: {', '.join(self.links)}"

    @property
    def targets(self) -> frozenset[str]:
        return frozenset(self.links)

    def begin(self, cluster: Cluster) -> None:
        def cut() -> None:
            while not self._stopped.wait(CUT_S):
                for link in self.links:
                    cluster.network.reset_connections(link)

        self._stopped.clear()
        threading.Thread(target=cut, daemon=True).start()

    def end(self, _cluster: Cluster) -> None:
        self._stopped.set()


# --- combinations ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CombinedFault:
    """Several faults at the same time."""

    kind: str
    faults: tuple[ClusterFault, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {'; '.join(map(str, self.faults))}"

    @property
    def targets(self) -> frozenset[str]:
        return frozenset().union(*(fault.targets for fault in self.faults))

    def begin(self, cluster: Cluster) -> None:
        for fault in self.faults:
            fault.begin(cluster)

    def end(self, cluster: Cluster) -> None:
        for fault in self.faults:
            fault.end(cluster)


def _brokers(broker_ids: Iterable[int]) -> frozenset[str]:
    return frozenset(f"broker {broker_id}" for broker_id in broker_ids)


def _members(members: Iterable[int]) -> frozenset[str]:
    return frozenset(f"etcd {member}" for member in members)
