"""What the plan of a query shows: which columns of our sources it needs, and how often it reads.

Spark's Python sources are not told which columns a query needs, and cannot be trusted with its
conditions: in Spark 4.2, all scans of one `load` share what a condition left to read, so that a
second scan in the same query would read too little. The plan that Spark has made without either
tells both. It is asked through Java, as there is no other way; where there is none, in a session
over the network, every column is needed and nothing is certain.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Reads(NamedTuple):
    """What a query reads from sources of one name."""

    topics: tuple[str, ...]
    """One for every scan."""
    columns: frozenset[str]
    """As the source calls them."""

    @property
    def are_distinct(self) -> bool:
        """Whether no topic is read twice."""
        return len(set(self.topics)) == len(self.topics)


def reads_of(planned: "DataFrame", source: str) -> Reads | None:
    """What the optimized plan of a query reads; None if it cannot be known."""
    java = getattr(planned, "_jdf", None)
    if java is None:
        return None
    topics = []
    ours: dict[int, str] = {}
    needed: set[int] = set()
    for node in _nodes(java.queryExecution().optimizedPlan()):
        if _is_scan(node, source):
            topics.append(str(node.relation().options().get("subscribe")))
            ours |= {_identity(column): column.name() for column in _sequence(node.output())}
        else:
            # A view renames all columns of its source, so that whatever is needed of them, some
            # node refers to.
            needed |= {_identity(column) for column in _sequence(node.references().toSeq())}
    return Reads(tuple(topics), frozenset(name for one, name in ours.items() if one in needed))


def _nodes(plan: Any) -> Iterator[Any]:
    """All nodes of a plan, those of its subqueries included."""
    yield plan
    for child in _sequence(plan.children()):
        yield from _nodes(child)
    for subquery in _sequence(plan.subqueries()):
        yield from _nodes(subquery)


def _is_scan(node: Any, source: str) -> bool:
    is_scan = node.getClass().getSimpleName() == "DataSourceV2ScanRelation"
    return is_scan and str(node.relation().table().name()) == source


def _identity(column: Any) -> int:
    return int(column.exprId().id())


def _sequence(values: Any) -> list[Any]:
    return [values.apply(index) for index in range(values.size())]
