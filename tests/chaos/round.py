"""One round of trouble: clients work on a topic of their own while a schedule is carried out, and
what they wrote down is judged when all is over.

The last word has a reader that comes after all brokers were killed and started again, so that only
what is in the stores can help them.
"""

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from chaos.anomalies import Anomaly
from chaos.checker import check
from chaos.figures import Figures, figures
from chaos.history import read
from chaos.nemesis import Deed, Nemesis
from chaos.schedule import Shape, Step, plan
from chaos.workload import Scene, Workload
from services.cluster import Cluster
from services.node import UnexpectedExit

PARTITIONS = 6
CREATE_S_MAX = 60
RECOVER_S_MAX = 60


@dataclass
class Outcome:
    """What came of a round."""

    seed: int
    steps: list[Step]
    began_ns: int
    deeds: list[Deed]
    figures: Figures
    anomalies: list[Anomaly]
    complaints: list[str] = field(default_factory=list)
    """Of clients and brokers that ended as they should not."""
    unexpected_exits: list[UnexpectedExit] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.anomalies and not self.complaints

    def __str__(self) -> str:
        pause = self.figures.longest_pause
        began_s = (pause.began_ns - self.began_ns) / 1e9
        return (
            f"seed {self.seed}: {self.figures.operations:,} operations, {len(self.steps)} faults,"
            f" longest pause {pause.seconds:.1f} s in {pause.partition} from {began_s:.1f} s on,"
            f" {'good' if self.is_good else 'BAD'}"
        )


def play(
    cluster: Cluster, directory: Path, *, seed: int, duration_s: float, lease_s: float
) -> Outcome:
    """Play one round; nothing of it is left behind if it was good."""
    shape = Shape(tuple(cluster.nodes), len(cluster.etcd.members), lease_s)
    steps = plan(seed, duration_s, shape)
    topic = f"chaos-{seed}"
    workload = Workload(Scene(cluster.bootstrap, topic, PARTITIONS, directory, seed))
    exits_before = len(cluster.unexpected_exits)
    tracebacks_before = len(cluster.tracebacks())
    cluster.wait_until_serving()
    _create(cluster, topic)
    began_ns = time.monotonic_ns()
    nemesis = Nemesis(cluster, steps, is_over=lambda: False)
    with workload.working():
        nemesis.work(duration_s)
        cluster.wait_until_serving(RECOVER_S_MAX)
        workload.run("herald")
    cluster.restart()
    workload.run("final")
    outcome = Outcome(
        seed,
        steps,
        began_ns,
        nemesis.deeds,
        figures(read(workload.histories)),
        check(read(workload.histories)),
        workload.complaints + cluster.tracebacks()[tracebacks_before:],
        cluster.unexpected_exits[exits_before:],
    )
    if outcome.is_good:
        shutil.rmtree(directory)
    return outcome


def _create(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    created = admin.create_topics([NewTopic(topic, PARTITIONS)], request_timeout=CREATE_S_MAX)
    created[topic].result(CREATE_S_MAX)
