"""One round: clients work on their own topic while faults are injected, and their histories are
checked when all faults have ended.

The final reader runs after all brokers were killed and started again, so that it reads only what
is in the stores.
"""

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from chaos.anomalies import Anomaly
from chaos.checker import check
from chaos.history import read
from chaos.history_statistics import Statistics, statistics
from chaos.nemesis import FaultAction, Nemesis
from chaos.schedule import ClusterShape, Step, plan
from chaos.workload import Workload, WorkloadOptions
from services.cluster import Cluster
from services.node import UnexpectedExit

PARTITIONS = 6
CREATE_S_MAX = 60
RECOVER_S_MAX = 60


@dataclass
class Outcome:
    """The result of a round."""

    seed: int
    steps: list[Step]
    began_ns: int
    actions: list[FaultAction]
    statistics: Statistics
    anomalies: list[Anomaly]
    failures: list[str] = field(default_factory=list)
    """Clients that exited with an error, and tracebacks of brokers."""
    unexpected_exits: list[UnexpectedExit] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return not self.anomalies and not self.failures

    def __str__(self) -> str:
        pause = self.statistics.longest_pause
        began_s = (pause.began_ns - self.began_ns) / 1e9
        return (
            f"seed {self.seed}: {self.statistics.operations:,} operations,"
            f" {len(self.steps)} faults,"
            f" longest pause {pause.seconds:.1f} s in {pause.partition} from {began_s:.1f} s on,"
            f" {'ok' if self.is_ok else 'FAILED'}"
        )


def run_round(
    cluster: Cluster, directory: Path, *, seed: int, duration_s: float, lease_s: float
) -> Outcome:
    """Run one round; delete its files if it was successful."""
    shape = ClusterShape(tuple(cluster.nodes), len(cluster.etcd.members), lease_s)
    steps = plan(seed, duration_s, shape)
    topic = f"chaos-{seed}"
    workload = Workload(WorkloadOptions(cluster.bootstrap, topic, PARTITIONS, directory, seed))
    exits_before = len(cluster.unexpected_exits)
    tracebacks_before = len(cluster.tracebacks())
    cluster.wait_until_serving()
    _create(cluster, topic)
    began_ns = time.monotonic_ns()
    nemesis = Nemesis(cluster, steps, should_stop=lambda: False)
    with workload.running_clients():
        nemesis.work(duration_s)
        cluster.wait_until_serving(RECOVER_S_MAX)
        workload.run("recovery-check")
    cluster.restart()
    workload.run("final")
    outcome = Outcome(
        seed,
        steps,
        began_ns,
        nemesis.actions,
        statistics(read(workload.histories)),
        check(read(workload.histories)),
        workload.failures + cluster.tracebacks()[tracebacks_before:],
        cluster.unexpected_exits[exits_before:],
    )
    if outcome.is_ok:
        shutil.rmtree(directory)
    return outcome


def _create(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    created = admin.create_topics([NewTopic(topic, PARTITIONS)], request_timeout=CREATE_S_MAX)
    created[topic].result(CREATE_S_MAX)
