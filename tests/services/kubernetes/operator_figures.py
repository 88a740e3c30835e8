"""What the operator that leads tells Prometheus about a cluster, read through its Service."""

import socket
import urllib.request

from services.kubernetes.installation import HOME
from services.waiting import wait_until

HOST = f"kafscale-operator.{HOME}.svc.cluster.local"
PORT = 9093
LEADING = "kafscale_operator_leader 1"
ANSWER_S = 5


def figures(namespace: str, cluster: str) -> dict[str, float]:
    """All figures of a cluster, by their names without `kafscale_operator_`."""
    label = f'{{namespace="{namespace}",cluster="{cluster}"}} '
    lines = (line.partition(label) for line in _exposition().splitlines())
    return {
        name.removeprefix("kafscale_operator_"): float(value)
        for name, found, value in lines
        if found
    }


def _exposition() -> str:
    """Of the one that leads; the Service names all of them."""
    led: list[str] = []

    def is_answered() -> bool:
        try:
            found = socket.getaddrinfo(HOST, PORT, type=socket.SOCK_STREAM)
            addresses = {address[4][0] for address in found}
            answers = [_asked(address) for address in addresses]
        except OSError:
            return False
        led[:] = [answer for answer in answers if LEADING in answer.splitlines()]
        return bool(led)

    wait_until(is_answered, "the operator that leads", seconds_max=30)
    return led[0]


def _asked(address: str) -> str:
    url = f"http://{address}:{PORT}/metrics"
    with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
        return answer.read().decode()
