"""Pods and volume claims of a managed etcd, as the API server shows them, read. Pure."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kafscale.operator.etcd.view import PodView
from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests.brokers import pods
from kafscale.operator.manifests.etcd import pods as etcd_pods

RESTARTS_MIN: Final = 3
"""How often a container has to be started anew until that is no accident."""
_REASON_CHARACTERS_MAX: Final = 300
_TURNED_AWAY: Final = "couldn't find local name"
"""What etcd says without data, of a cluster that it is no member of: see `etcd_admission`."""


class _LogLine(msgspec.Struct):
    msg: str
    error: str = ""


def pod_view(pod: Manifest) -> PodView:
    """What matters of a pod."""
    is_ready = pods.is_ready(pod)
    containers = list(_containers(pod))
    reason = next(filter(None, map(_reason, containers)), "")
    return PodView(
        uid=pod["metadata"]["uid"],
        checksum=etcd_pods.checksum(pod),
        is_ready=is_ready,
        is_terminating=pods.is_terminating(pod),
        is_crashing=not is_ready and any(map(_is_crashing, containers)),
        reason=reason,
        is_turned_away=not is_ready and _TURNED_AWAY in reason,
    )


def has_volume(claim: Manifest | None) -> bool:
    """Whether there is a volume, or will be once the claim is bound."""
    return claim is not None and (claim.get("status") or {}).get("phase") != "Lost"


def _containers(pod: Manifest) -> Iterator[dict[str, Any]]:
    status = pod.get("status") or {}
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _is_crashing(container: dict[str, Any]) -> bool:
    waiting = (container.get("state") or {}).get("waiting") or {}
    is_delayed = waiting.get("reason") == "CrashLoopBackOff"
    return is_delayed or container.get("restartCount", 0) >= RESTARTS_MIN


def _reason(container: dict[str, Any]) -> str:
    """The last line that a container had to say, if it has failed."""
    for state in (container.get("state"), container.get("lastState")):
        ended = (state or {}).get("terminated") or {}
        if ended.get("exitCode"):
            said = _words((ended.get("message") or "").strip().rpartition("\n")[2])
            words: str = said or ended.get("reason") or f"exit code {ended['exitCode']}"
            return words[:_REASON_CHARACTERS_MAX]
    return ""


def _words(line: str) -> str:
    """What a line of a log says to people; etcd's are JSON.

    >>> _words('{"level":"fatal","msg":"discovery failed","error":"no name"}')
    'discovery failed: no name'
    """
    try:
        entry = msgspec.json.decode(line, type=_LogLine)
    except msgspec.MsgspecError:
        return line
    return ": ".join(filter(None, (entry.msg, entry.error)))
