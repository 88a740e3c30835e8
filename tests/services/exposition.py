"""Parses the metrics that a broker serves at /metrics."""


def sample(exposition: str, beginning: str) -> float:
    """The sum of the samples whose names, with labels, begin so; the common prefix is left out."""
    return sum(
        float(line.rpartition(" ")[2])
        for line in exposition.splitlines()
        if line.startswith(f"kafscale_{beginning}")
    )
