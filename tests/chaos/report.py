"""What a run has to say at its end: a table, and everything that is needed to play it again."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from chaos.round import Outcome

SHOWN_MAX = 20
"""Of each kind of anomaly, so many are shown."""
LINE_CHARACTERS_MAX = 300


def table(outcomes: Sequence[Outcome]) -> Table:
    """One column for each round would be too many: sums, and the worst."""
    counts: Counter[str] = Counter()
    troubles: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.figures.counts)
        troubles.update(step.trouble.kind for step in outcome.steps)
    longest = max(outcome.figures.longest_pause for outcome in outcomes)
    anomalies = Counter(each.name.value for outcome in outcomes for each in outcome.anomalies)
    lines = Table(show_header=False, box=None)
    lines.add_row("rounds", _seeds(outcomes))
    lines.add_row("operations", f"{counts.total():,}")
    for name, count in counts.items():
        lines.add_row(f"  {name}", f"{count:,}")
    lines.add_row("faults", f"{troubles.total():,}")
    for name, count in troubles.most_common():
        lines.add_row(f"  {name}", f"{count:,}")
    lines.add_row(
        "brokers that ended by themselves", str(sum(len(o.unexpected_exits) for o in outcomes))
    )
    lines.add_row("longest pause of acks", f"{longest.seconds:.1f} s, {longest.partition}")
    lines.add_row("anomalies", _counted(anomalies.items()))
    lines.add_row("complaints", str(sum(len(o.complaints) for o in outcomes)))
    return lines


def show(outcome: Outcome, console: Console) -> None:
    """Everything about one round that went wrong."""
    console.print(f"seed {outcome.seed}", style="bold")
    console.print("the schedule was", style="bold")
    for step in outcome.steps:
        console.print(str(step), markup=False, highlight=False)
    console.print("what was done", style="bold")
    for deed in outcome.deeds:
        console.print(f"{_seconds(outcome, deed.time_ns)}  {deed.what}", markup=False)
    for unexpected_exit in outcome.unexpected_exits:
        at = _seconds(outcome, unexpected_exit.time_ns)
        console.print(
            f"{at}  broker {unexpected_exit.broker_id} ended by itself with {unexpected_exit.code}"
        )
    console.print("anomalies", style="bold")
    shown: Counter[str] = Counter()
    for anomaly in outcome.anomalies:
        shown[anomaly.name] += 1
        if shown[anomaly.name] <= SHOWN_MAX:
            console.print(str(anomaly)[:LINE_CHARACTERS_MAX], markup=False)
    console.print(_counted(shown.items()))
    for complaint in outcome.complaints[:SHOWN_MAX]:
        console.print(complaint, markup=False, highlight=False)


def _counted(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in counts) or "none"


def _seeds(outcomes: Sequence[Outcome]) -> str:
    return f"{len(outcomes)}, seeds {outcomes[0].seed}-{outcomes[-1].seed}"


def _seconds(outcome: Outcome, time_ns: int) -> str:
    return f"{(time_ns - outcome.began_ns) / 1e9:7.1f} s"
