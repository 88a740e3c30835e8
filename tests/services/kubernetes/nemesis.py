"""Somebody who troubles a cluster on Kubernetes, by chance and yet the same way every time.

    nemesis = Nemesis(shop, random.Random(7))
    nemesis.trouble(seconds=60)

Brokers, members of etcd, operators and the bucket are killed, paused, cut off and slowed, one at a
time, so that nobody ever loses a majority. Whatever is paused or cut off is let go again; whoever
is killed comes back by himself, and perhaps meets the next trouble on his way.
"""

import contextlib
import random
import time
from collections.abc import Callable

from kafscale.operator.kube.kinds import PODS
from services.kubernetes.deployed import Deployed, is_ready
from services.kubernetes.installation import HOME
from services.waiting import wait_until

SHORT_S, LONG_S = 1.0, 8.0
"""How long a trouble lasts; a broker's lease does not last as long as the longest."""
REST_S_MAX = 2.0
STUTTER_S = 0.25
"""How long the bucket says nothing, again and again, when it is slow."""
ETCD_S_MAX = 60

Trouble = Callable[[], None]
Pod = tuple[str, str]
"""By its namespace and name."""


class Nemesis:
    """Troubles one cluster, and the operators."""

    def __init__(self, deployed: Deployed, chance: random.Random) -> None:
        self._deployed = deployed
        self._kube = deployed.kube
        self._kubelet = deployed.installation.kubelet
        self._s3 = deployed.installation.s3
        self._chance = chance
        self.story: list[str] = []
        """What was done, in order."""

    def trouble(self, seconds: float) -> None:
        """Do one thing after the other, each at least once if there is time."""
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            troubles = self._troubles()
            self._chance.shuffle(troubles)
            for each in troubles:
                if time.monotonic() < ends_s:
                    each()
                    time.sleep(self._chance.uniform(0, REST_S_MAX))

    def _troubles(self) -> list[Trouble]:
        broker, member = self._some_broker, self._some_member
        return [
            lambda: self._kill(broker()),
            lambda: self._delete(broker()),
            lambda: self._pause(broker()),
            lambda: self._cut_off(broker()),
            lambda: self._kill(member()),
            lambda: self._pause(member()),
            lambda: self._cut_off(member()),
            lambda: self._kill(self._leading_operator()),
            self._slow_bucket,
            self._silence_bucket,
        ]

    # --- troubles ---------------------------------------------------------------------------------

    def _kill(self, pod: Pod) -> None:
        self._tell(f"kill {pod[1]}")
        self._kubelet.kill(*pod)

    def _delete(self, pod: Pod) -> None:
        self._tell(f"delete {pod[1]}")
        self._kube.delete(PODS, *pod)

    def _pause(self, pod: Pod) -> None:
        lasts_s = self._moment(f"pause {pod[1]}")
        self._kubelet.pause(*pod)
        time.sleep(lasts_s)
        # Whoever was paused for too long may have been killed for it.
        with contextlib.suppress(AssertionError):
            self._kubelet.resume(*pod)

    def _cut_off(self, pod: Pod) -> None:
        lasts_s = self._moment(f"cut off {pod[1]}")
        self._kubelet.partition(*pod)
        time.sleep(lasts_s)
        with contextlib.suppress(AssertionError):
            self._kubelet.heal(*pod)

    def _slow_bucket(self) -> None:
        ends_s = time.monotonic() + self._moment("slow down the bucket")
        while time.monotonic() < ends_s:
            self._s3.pause()
            time.sleep(STUTTER_S)
            self._s3.resume()
            time.sleep(STUTTER_S / 5)

    def _silence_bucket(self) -> None:
        lasts_s = self._moment("silence the bucket", longest_s=3)
        self._s3.pause()
        time.sleep(lasts_s)
        self._s3.resume()

    # --- victims ----------------------------------------------------------------------------------

    def _some_broker(self) -> Pod:
        return self._some("kafscale-broker")

    def _some_member(self) -> Pod:
        """A member of etcd, once all of them are well: two at once would be most of them."""
        labels = {"app": "kafscale-etcd", "cluster": self._deployed.name}

        def are_well() -> bool:
            return all(map(is_ready, self._kube.list(PODS, self._deployed.namespace, labels)))

        wait_until(are_well, "all members of etcd", seconds_max=ETCD_S_MAX)
        return self._some("kafscale-etcd")

    def _some(self, app: str) -> Pod:
        """One that serves, by chance."""
        space, labels = self._deployed.namespace, {"app": app, "cluster": self._deployed.name}
        ready: list[str] = []

        def is_found() -> bool:
            pods = filter(is_ready, self._kube.list(PODS, space, labels))
            ready[:] = sorted(pod["metadata"]["name"] for pod in pods)
            return bool(ready)

        wait_until(is_found, f"any {app} that is ready", seconds_max=ETCD_S_MAX)
        return space, self._chance.choice(ready)

    def _leading_operator(self) -> Pod:
        installation = self._deployed.installation
        wait_until(lambda: installation.leader() in installation.operators(), "a leader")
        return HOME, installation.leader()

    def _moment(self, what: str, longest_s: float = LONG_S) -> float:
        lasts_s = self._chance.uniform(SHORT_S, longest_s)
        self._tell(f"{what} for {lasts_s:.1f} s")
        return lasts_s

    def _tell(self, what: str) -> None:
        self.story.append(what)
