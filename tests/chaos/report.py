"""The report of a run: a table, and everything that is needed to repeat a failed round."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from chaos.round import Outcome

SHOWN_MAX = 20
"""How many anomalies of each kind are shown."""
LINE_CHARACTERS_MAX = 300


def table(outcomes: Sequence[Outcome]) -> Table:
    """The totals and extremes of all rounds."""
    counts: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    injected: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.statistics.counts)
        faults.update(step.fault.kind for step in outcome.steps)
        injected.update(outcome.injected)
    longest = max(outcome.statistics.longest_pause for outcome in outcomes)
    anomalies = Counter(each.name.value for outcome in outcomes for each in outcome.anomalies)
    lines = Table(show_header=False, box=None)
    lines.add_row("rounds", _seeds(outcomes))
    lines.add_row("operations", f"{counts.total():,}")
    for name, count in counts.items():
        lines.add_row(f"  {name}", f"{count:,}")
    seconds = sum(outcome.duration_s for outcome in outcomes)
    lines.add_row("throughput", f"{counts['acknowledged'] / seconds:,.0f} records/s acknowledged")
    lines.add_row("faults", f"{faults.total():,}")
    for name, count in faults.most_common():
        lines.add_row(f"  {name}", f"{count:,}")
    lines.add_row("injected", "")
    for name, count in injected.most_common():
        lines.add_row(f"  {name}", f"{count:,}")
    lines.add_row(
        "unexpected exits of brokers", str(sum(len(o.unexpected_exits) for o in outcomes))
    )
    lines.add_row("longest pause of acks", f"{longest.seconds:.1f} s, {longest.partition}")
    lines.add_row("anomalies", _format_counts(anomalies.items()))
    lines.add_row("failures", str(sum(len(o.failures) for o in outcomes)))
    return lines


def show(outcome: Outcome, console: Console) -> None:
    """Print everything about a failed round."""
    console.print(f"seed {outcome.seed}", style="bold")
    console.print("schedule", style="bold")
    for step in outcome.steps:
        console.print(str(step), markup=False, highlight=False)
    console.print("actions", style="bold")
    for action in outcome.actions:
        console.print(f"{_seconds(outcome, action.time_ns)}  {action.what}", markup=False)
    for unexpected_exit in outcome.unexpected_exits:
        at = _seconds(outcome, unexpected_exit.time_ns)
        console.print(
            f"{at}  broker {unexpected_exit.broker_id} exited with {unexpected_exit.code}"
        )
    console.print("anomalies", style="bold")
    shown: Counter[str] = Counter()
    for anomaly in outcome.anomalies:
        shown[anomaly.name] += 1
        if shown[anomaly.name] <= SHOWN_MAX:
            console.print(str(anomaly)[:LINE_CHARACTERS_MAX], markup=False)
    console.print(_format_counts(shown.items()))
    for message in outcome.failures[:SHOWN_MAX]:
        console.print(message, markup=False, highlight=False)


def _format_counts(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in counts) or "none"


def _seeds(outcomes: Sequence[Outcome]) -> str:
    return f"{len(outcomes)}, seeds {outcomes[0].seed}-{outcomes[-1].seed}"


def _seconds(outcome: Outcome, time_ns: int) -> str:
    return f"{(time_ns - outcome.began_ns) / 1e9:7.1f} s"
