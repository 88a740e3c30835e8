"""Injects faults into a cluster on Kubernetes, at random but reproducibly.

    faults = FaultInjector(shop, random.Random(7))
    faults.inject(seconds=60)

Brokers, etcd members, operators and the bucket are killed, paused, partitioned and slowed down, one
at a time, so that no quorum is lost. Pauses and partitions end; killed processes restart, perhaps
during the next fault.
"""

import contextlib
import random
import time
from collections.abc import Callable

from kafscale.operator.kube.api import PODS
from services.kubernetes.deployed import DeployedCluster, is_ready
from services.kubernetes.installation import HOME
from services.waiting import wait_until

SHORT_S, LONG_S = 1.0, 8.0
"""The duration of a fault; a broker's lease is shorter than the longest."""
REST_S_MAX = 2.0
STUTTER_S = 0.25
"""How long a slow bucket stops, again and again."""
ETCD_S_MAX = 60

Fault = Callable[[], None]
Pod = tuple[str, str]
"""Namespace and name."""


class FaultInjector:
    """Injects faults into one cluster and the operators."""

    def __init__(self, deployed: DeployedCluster, generator: random.Random) -> None:
        self._deployed = deployed
        self._kube = deployed.kube
        self._kubelet = deployed.installation.kubelet
        self._s3 = deployed.installation.s3
        self._random = generator
        self.log_of_faults: list[str] = []
        """The injected faults, in order."""

    def inject(self, seconds: float) -> None:
        """Inject one fault after the other, each at least once if there is time."""
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            faults = self._faults()
            self._random.shuffle(faults)
            for each in faults:
                if time.monotonic() < ends_s:
                    each()
                    time.sleep(self._random.uniform(0, REST_S_MAX))

    def _faults(self) -> list[Fault]:
        broker, member = self._random_broker, self._random_etcd_member
        return [
            lambda: self._kill(broker()),
            lambda: self._delete(broker()),
            lambda: self._pause(broker()),
            lambda: self._partition(broker()),
            lambda: self._kill(member()),
            lambda: self._pause(member()),
            lambda: self._partition(member()),
            lambda: self._kill(self._leader_pod()),
            self._slow_bucket,
            self._stop_bucket,
        ]

    # --- faults -----------------------------------------------------------------------------------

    def _kill(self, pod: Pod) -> None:
        self._record(f"kill {pod[1]}")
        self._kubelet.kill(*pod)

    def _delete(self, pod: Pod) -> None:
        self._record(f"delete {pod[1]}")
        self._kube.delete(PODS, *pod)

    def _pause(self, pod: Pod) -> None:
        duration_s = self._duration(f"pause {pod[1]}")
        self._kubelet.pause(*pod)
        time.sleep(duration_s)
        # A pod that was paused for too long may have been killed.
        with contextlib.suppress(AssertionError):
            self._kubelet.resume(*pod)

    def _partition(self, pod: Pod) -> None:
        duration_s = self._duration(f"cut off {pod[1]}")
        self._kubelet.partition(*pod)
        time.sleep(duration_s)
        with contextlib.suppress(AssertionError):
            self._kubelet.heal(*pod)

    def _slow_bucket(self) -> None:
        ends_s = time.monotonic() + self._duration("slow down the bucket")
        while time.monotonic() < ends_s:
            self._s3.pause()
            time.sleep(STUTTER_S)
            self._s3.resume()
            time.sleep(STUTTER_S / 5)

    def _stop_bucket(self) -> None:
        duration_s = self._duration("stop the bucket", longest_s=3)
        self._s3.pause()
        time.sleep(duration_s)
        self._s3.resume()

    # --- targets ----------------------------------------------------------------------------------

    def _random_broker(self) -> Pod:
        return self._random_pod("kafscale-broker")

    def _random_etcd_member(self) -> Pod:
        """A member of etcd, once all of them are ready: two at once would cost the quorum."""
        labels = {"app": "kafscale-etcd", "cluster": self._deployed.name}

        def are_ready() -> bool:
            return all(map(is_ready, self._kube.list(PODS, self._deployed.namespace, labels)))

        wait_until(are_ready, "all members of etcd", seconds_max=ETCD_S_MAX)
        return self._random_pod("kafscale-etcd")

    def _random_pod(self, app: str) -> Pod:
        """A random ready pod."""
        space, labels = self._deployed.namespace, {"app": app, "cluster": self._deployed.name}
        ready: list[str] = []

        def is_any_ready() -> bool:
            pods = filter(is_ready, self._kube.list(PODS, space, labels))
            ready[:] = sorted(pod["metadata"]["name"] for pod in pods)
            return bool(ready)

        wait_until(is_any_ready, f"a ready {app}", seconds_max=ETCD_S_MAX)
        return space, self._random.choice(ready)

    def _leader_pod(self) -> Pod:
        installation = self._deployed.installation
        wait_until(lambda: installation.leader() in installation.operators(), "a leader")
        return HOME, installation.leader()

    def _duration(self, what: str, longest_s: float = LONG_S) -> float:
        duration_s = self._random.uniform(SHORT_S, longest_s)
        self._record(f"{what} for {duration_s:.1f} s")
        return duration_s

    def _record(self, what: str) -> None:
        self.log_of_faults.append(what)
