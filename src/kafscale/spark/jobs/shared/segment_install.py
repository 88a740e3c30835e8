"""Segments made on Spark and swapped in by their owners: what merging and compacting share.

The steps, in each of which a run may be cut short without harm:

    clear    what an earlier run has staged for the same partitions is removed
    stage    tasks make segments, one each, and stage them
    swap     owners swap them in, in the order of each partition's log
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from kafscale.config.sections.security import ClientTls
from kafscale.errors import DamagedObjectError, OffsetOutOfRangeError
from kafscale.observability.logging import get_logger
from kafscale.spark.jobs.shared import staging
from kafscale.spark.jobs.shared.owners import Owners
from kafscale.spark.jobs.shared.staging import Skipped, Staged
from kafscale.spark.jobs.shared.swapping import Outcome, swap_in
from kafscale.spark.plan.offset_map import TopicPartition
from kafscale.spark.runtime.parallel_map import parallel_map
from kafscale.spark.source.location import Location
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_logger(__name__)

Item = TypeVar("Item")


def nowhere(_step: str) -> None:
    """Nobody to tell which step is about to be taken."""


@dataclass(frozen=True, kw_only=True)
class Installer:
    """One run of a job that changes segments."""

    location: Location
    control: tuple[str, ...]
    """Addresses of brokers on the control plane."""
    control_tls: ClientTls | None = None
    """The files to ask them with, where the control plane is encrypted."""
    kind: str
    run: str
    """What tells this run from others."""
    progress: bool = True
    reached: Callable[[str], None] = nowhere
    """Told each step before it is taken."""

    def check(self, store: BlockingObjectStore) -> None:
        """Raise unless there are brokers that could swap something in."""

        async def look(_store: ObjectStore) -> None:
            async with Owners(self.control, self.control_tls):
                pass

        store.run(look)

    def clear(self, store: BlockingObjectStore, places: Sequence[TopicPartition]) -> None:
        self.reached("clear")
        left = staging.clear(store, self.location.namespace, self.kind, frozenset(places))
        if left:
            log.info("staged objects of an earlier run removed", count=len(left), first=left[0])

    def stage(
        self,
        spark: "SparkSession",
        items: Sequence[Item],
        make: Callable[[Item], Staged | None],
        place_of: Callable[[Item], TopicPartition],
    ) -> tuple[list[Staged], list[Skipped]]:
        """Have segments made and staged, and what was left out for which reason.

        What would become the same again is in neither list.
        """
        self.reached("stage")
        made = parallel_map(
            spark,
            items,
            partial(attempt, make, place_of),
            description="making segments",
            progress=self.progress,
        )
        return (
            [each for each in made if isinstance(each, Staged)],
            [each for each in made if isinstance(each, Skipped)],
        )

    def swap(self, store: BlockingObjectStore, staged: Sequence[Staged]) -> list[Outcome]:
        """Have everything swapped in that is staged."""
        self.reached("swap")
        if not staged:
            return []
        console = Console(stderr=True)
        with Progress(
            "swapping segments in",
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not (self.progress and console.is_terminal),
        ) as bar:
            task = bar.add_task("", total=len(staged))

            async def swap(objects: ObjectStore) -> list[Outcome]:
                async with Owners(self.control, self.control_tls) as owners:
                    return await swap_in(
                        objects,
                        owners,
                        staged,
                        on_done=lambda _outcome: bar.advance(task),
                        reached=self.reached,
                    )

            return store.run(swap)


def attempt(
    make: Callable[[Item], Staged | None], place_of: Callable[[Item], TopicPartition], item: Item
) -> Staged | Skipped | None:
    """Make a segment; one that cannot be made is no reason to make no others."""
    try:
        return make(item)
    except OffsetOutOfRangeError as error:
        return Skipped(place_of(item), str(error), is_outdated=True)
    except DamagedObjectError as error:
        return Skipped(place_of(item), str(error), is_outdated=False)
