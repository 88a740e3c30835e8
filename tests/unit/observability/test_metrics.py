"""Metrics: what is declared is emitted, what is emitted is declared, and tests share nothing."""

from prometheus_client.parser import text_string_to_metric_families

import kafscale
from kafscale.observability import documentation
from kafscale.observability.metrics import Metrics


def scrape(metrics):
    return list(text_string_to_metric_families(metrics.exposition().decode()))


def test_the_version_is_told():
    [build] = [family for family in scrape(Metrics()) if family.name == "kafscale_build_info"]
    [sample] = build.samples
    assert (sample.labels, sample.value) == ({"version": kafscale.__version__}, 1)


def test_a_scrape_shows_exactly_what_is_declared():
    metrics = Metrics()
    shown = {(family.name, family.type, family.documentation) for family in scrape(metrics)}
    assert shown == {(d.name, d.type, d.meaning) for d in metrics.declarations}


def test_two_sets_of_metrics_do_not_know_each_other():
    one, other = Metrics(), Metrics()
    one.build_info.labels(version="other").set(1)
    assert b'version="other"' in one.exposition()
    assert b'version="other"' not in other.exposition()


def test_the_page_names_every_metric_with_its_labels():
    page = documentation.page()
    for declared in Metrics().declarations:
        labels = ", ".join(f"`{label}`" for label in declared.labels)
        row = f"| `{declared.name}` | {declared.type} | {labels} | {declared.meaning} |\n"
        assert row in page
