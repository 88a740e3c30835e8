"""Metrics of the leading operator about a cluster, scraped through its Service."""

import socket
import urllib.request

from services.kubernetes.installation import HOME
from services.waiting import wait_until

HOST = f"kafscale-operator.{HOME}.svc.cluster.local"
PORT = 9093
LEADER_SAMPLE = "kafscale_operator_leader 1"
TIMEOUT_S = 5


def read_metrics(namespace: str, cluster: str) -> dict[str, float]:
    """All metrics of a cluster, by name without `kafscale_operator_`."""
    label = f'{{namespace="{namespace}",cluster="{cluster}"}} '
    lines = (line.partition(label) for line in _scrape_leader().splitlines())
    return {
        name.removeprefix("kafscale_operator_"): float(value)
        for name, resolved, value in lines
        if resolved
    }


def _scrape_leader() -> str:
    """The metrics of the leader; the Service resolves to all operators."""
    leader_metrics: list[str] = []

    def is_scraped() -> bool:
        try:
            resolved = socket.getaddrinfo(HOST, PORT, type=socket.SOCK_STREAM)
            addresses = {address[4][0] for address in resolved}
            scrapes = [_scrape(address) for address in addresses]
        except OSError:
            return False
        leader_metrics[:] = [
            scraped for scraped in scrapes if LEADER_SAMPLE in scraped.splitlines()
        ]
        return bool(leader_metrics)

    wait_until(is_scraped, "the leading operator", seconds_max=30)
    return leader_metrics[0]


def _scrape(address: str) -> str:
    url = f"http://{address}:{PORT}/metrics"
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as scraped:
        return scraped.read().decode()
