"""Short rounds of fault injection with fixed seeds.

`make chaos` runs longer ones.
"""

from pathlib import Path

import pytest
from rich.console import Console

from chaos.report import show
from chaos.round import run_round
from chaos.settings import SETTINGS
from services import s3_server
from services.cluster import Cluster

pytestmark = pytest.mark.timeout(300)

ROUND_S = 30
LEASE_S = 4

ONE_BROKER_SEED = 502
CLUSTER_SEED = 12756
"""Seeds whose schedules contain all kinds of faults that the tests expect."""


@pytest.fixture(autouse=True)
def _s3() -> None:
    if not s3_server.is_available():
        pytest.skip("needs Go to build the S3 server")


def check_round(cluster: Cluster, directory: Path, *, seed: int, expected: frozenset[str]) -> None:
    """Run a round, which must succeed and contain at least the expected kinds of faults."""
    outcome = run_round(cluster, directory, seed=seed, duration_s=ROUND_S, lease_s=LEASE_S)
    if not outcome.is_ok:
        show(outcome, Console(width=200))
        print(cluster.logged(20_000))  # noqa: T201 - shown where the test failed.
    assert outcome.is_ok
    assert expected <= {step.fault.kind for step in outcome.steps}
    assert outcome.statistics.counts["acknowledged"] > 100
    late = {kind for kind in expected if kind.endswith(" late")}
    work = {"merges", "topic deletions", "compacted records", "commits", "aborts"}
    assert late | work <= outcome.injected.keys()


@pytest.mark.long
def test_one_broker_survives_faults(tmp_path):
    with Cluster(tmp_path / "cluster", brokers=1, etcd_members=0, seed=1, **SETTINGS) as cluster:
        check_round(
            cluster,
            tmp_path / "round",
            seed=ONE_BROKER_SEED,
            expected=frozenset({"broker kill", "clients cut off", "s3 answers lost", "s3 late"}),
        )


def test_three_brokers_survive_faults(tmp_path):
    settings = SETTINGS | {"broker_lease_ttl_ms": str(LEASE_S * 1000)}
    with Cluster(tmp_path / "cluster", brokers=3, etcd_members=3, seed=1, **settings) as cluster:
        check_round(
            cluster,
            tmp_path / "round",
            seed=CLUSTER_SEED,
            expected=frozenset(
                {"broker kill", "clients cut off", "etcd late", "isolation, late writes", "s3 late"}
            ),
        )
