"""What the operator that leads tells Prometheus about a cluster, read through its Service."""

import urllib.request

from services.kubernetes.installation import HOME
from services.waiting import wait_until

URL = f"http://kafscale-operator.{HOME}.svc.cluster.local:9093/metrics"
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
    """Of the one that leads; the Service leads to any."""
    answers: list[str] = []

    def is_answered() -> bool:
        try:
            with urllib.request.urlopen(URL, timeout=ANSWER_S) as answer:
                answers.append(answer.read().decode())
        except OSError:
            return False
        return LEADING in answers[-1].splitlines()

    wait_until(is_answered, "the operator that leads", seconds_max=30)
    return answers[-1]
