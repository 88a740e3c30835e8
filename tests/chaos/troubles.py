"""What can happen to a cluster: each trouble knows how to begin, how to end, and what it is about.

Two troubles that are about the same thing must not be there at the same time, for the end of one
would be the end of both; `schedule` sees to that.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from services.cluster import Cluster
from services.link_fault import HEALTHY, Fault

CUT_S = 0.7
"""Between one cut of a connection and the next."""


class Trouble(Protocol):
    """Something bad that lasts for a while."""

    @property
    def kind(self) -> str:
        """A word for the table at the end."""

    @property
    def targets(self) -> frozenset[str]: ...
    def begin(self, cluster: Cluster) -> None: ...
    def end(self, cluster: Cluster) -> None: ...


# --- brokers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BrokerKill:
    """They lose power, and get it back."""

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
    """They stand still without noticing, as a machine does that is moved, and go on."""

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
    """They are asked to stop, as for an update, and started again."""

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


# --- links ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BadLinks:
    """Links that misbehave all in the same way."""

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
    """Connections are reset, again and again."""

    kind: str
    links: tuple[str, ...]
    _over: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.kind}: {', '.join(self.links)}"

    @property
    def targets(self) -> frozenset[str]:
        return frozenset(self.links)

    def begin(self, cluster: Cluster) -> None:
        def cut() -> None:
            while not self._over.wait(CUT_S):
                for link in self.links:
                    cluster.network.break_off(link)

        self._over.clear()
        threading.Thread(target=cut, daemon=True).start()

    def end(self, _cluster: Cluster) -> None:
        self._over.set()


# --- more at once ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Together:
    """Several troubles that belong together."""

    kind: str
    troubles: tuple[Trouble, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {'; '.join(map(str, self.troubles))}"

    @property
    def targets(self) -> frozenset[str]:
        return frozenset().union(*(trouble.targets for trouble in self.troubles))

    def begin(self, cluster: Cluster) -> None:
        for trouble in self.troubles:
            trouble.begin(cluster)

    def end(self, cluster: Cluster) -> None:
        for trouble in self.troubles:
            trouble.end(cluster)


def _brokers(broker_ids: Iterable[int]) -> frozenset[str]:
    return frozenset(f"broker {broker_id}" for broker_id in broker_ids)


def _members(members: Iterable[int]) -> frozenset[str]:
    return frozenset(f"etcd {member}" for member in members)
