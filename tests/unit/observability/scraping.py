"""Parses an exposition as Prometheus does."""

from prometheus_client.parser import text_string_to_metric_families


def scrape(metrics):
    return list(text_string_to_metric_families(metrics.exposition().decode()))


def values(metrics, name):
    """Every series of a metric: what it is worth, by the values of its labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in scrape(metrics)
        for sample in family.samples
        if sample.name == name
    }
