"""Injects faults for a given time: `make chaos`.

Rounds run on one cluster, one after the other, each with its own seed, until the time is over or a
round fails. The first rounds begin with an outage of etcd and one of S3: a sixth of the whole time
each, at most ten minutes.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from chaos.report import show, table
from chaos.round import Outcome, run_round
from chaos.schedule import Outage
from chaos.settings import SETTINGS
from services.cluster import Cluster

ROUND_S = 120
OUTAGE_SHARE = 1 / 6
OUTAGE_S_MAX = 600


def main() -> int:
    arguments = _arguments()
    console = Console(soft_wrap=True)
    directory = Path(tempfile.mkdtemp(prefix="kafscale-chaos-"))
    console.print(f"{arguments.seconds} s from seed {arguments.seed} on, in {directory}")
    outcomes: list[Outcome] = []
    settings = dict(SETTINGS)
    if arguments.etcd_members:
        settings["broker_lease_ttl_ms"] = str(int(arguments.lease * 1000))
    until_s = time.monotonic() + arguments.seconds
    with Cluster(
        directory / "cluster",
        brokers=arguments.brokers,
        etcd_members=arguments.etcd_members,
        seed=arguments.seed,
        **settings,
    ) as cluster:
        while (left_s := until_s - time.monotonic()) > 0:
            seed = arguments.seed + len(outcomes)
            outages = _outages(len(outcomes), arguments)
            round_s = ROUND_S + sum(outage.lasts_s for outage in outages)
            outcome = run_round(
                cluster,
                directory / f"round-{seed}",
                seed=seed,
                lease_s=arguments.lease,
                duration_s=min(round_s, max(left_s, 10)),
                outages=outages,
            )
            outcomes.append(outcome)
            console.print(str(outcome))
            if not outcome.is_ok:
                break
    console.print(table(outcomes))
    if outcomes[-1].is_ok:
        return 0
    show(outcomes[-1], console)
    console.print(f"logs and histories are in {directory}")
    return 1


def _outages(index: int, arguments: argparse.Namespace) -> tuple[Outage, ...]:
    """The outages of a round: one in each of the first two, or both if there is only one round."""
    lasts_s = min(arguments.seconds * OUTAGE_SHARE, OUTAGE_S_MAX)
    outages = [Outage("s3", lasts_s)]
    if arguments.etcd_members:
        outages.insert(0, Outage("etcd", lasts_s))
    if arguments.seconds < 2 * ROUND_S:
        return tuple(outages) if index == 0 else ()
    return tuple(outages[index : index + 1])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--etcd-members", type=int, default=3)
    parser.add_argument("--lease", type=float, default=5, help="seconds")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
