"""Parses the metrics that a broker serves at /metrics."""


def sample(exposition: str, beginning: str) -> float:
    """The sum of the samples whose name and labels start with `beginning`, without `kafscale_`."""
    return sum(
        float(line.rpartition(" ")[2])
        for line in exposition.splitlines()
        if line.startswith(f"kafscale_{beginning}")
    )
