"""One run of compaction, planned: what is read, what may be rewritten, and what to make of answers.

Segments go by numbers, so that rows of a shuffle are small: by their places among all targets. A
partition whose keys could not be read completely is told as a negative number; nothing of it is
rewritten then. Pure.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate

from kafscale.spark.jobs.compact.candidates import Candidate, groups
from kafscale.spark.jobs.compact.key_scan import KeysWork
from kafscale.spark.jobs.compact.rewrite import Rewrite
from kafscale.spark.jobs.compact.surviving_offsets import SurvivorsWork, Target
from kafscale.spark.jobs.shared.staging import Skipped
from kafscale.spark.jobs.shared.swapping import Outcome
from kafscale.spark.plan.offset_map import OffsetMap, TopicPartition
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.plan.task_planner import plan as plan_tasks
from kafscale.spark.source.location import Location

Counts = Mapping[int, int]
"""How many records survive in which segment."""


class CompactionPlan:
    """What a run does to the partitions that were chosen."""

    def __init__(
        self, location: Location, candidates: Sequence[Candidate], run: str, target_bytes: int = 0
    ) -> None:
        self.candidates = candidates
        self._location = location
        self._run = run
        self._groups = {each.place: groups(each, target_bytes) for each in candidates}

    @cached_property
    def survivors_work(self) -> SurvivorsWork:
        targets = [
            Target(group.topic, group.partition, source.start_offset, source.end_offset)
            for several in self._groups.values()
            for group in several
            for source in group.sources
        ]
        counts = (sum(len(group.sources) for group in several) for several in self._groups.values())
        firsts = list(accumulate(counts, initial=0))
        return SurvivorsWork(self._location, self._run, targets, firsts)

    def keys_work(self, found: OffsetMap, secret: bytes, now_ms: int) -> KeysWork:
        """What is read: all that is visible, because the head counts, too."""
        ranges = [
            OffsetRange(*each.place, each.found.start_offset, each.found.end_offset)
            for each in self.candidates
        ]
        places = {place: number for number, place in enumerate(self._groups)}
        return KeysWork(self._location, plan_tasks(found, ranges), places, secret, now_ms)

    def incomplete(self, counts: Counts) -> list[TopicPartition]:
        """The partitions that could not be read completely."""
        places = list(self._groups)
        return sorted(places[-1 - number] for number in counts if number < 0)

    def rewrites(self, counts: Counts) -> list[Rewrite]:
        """What tasks rewrite."""
        left = set(self.incomplete(counts))
        policies = {each.place: each.policy for each in self.candidates}
        numbers = iter(range(len(self.survivors_work.targets)))
        rewrites = []
        for place, several in self._groups.items():
            for group in several:
                own = tuple(counts.get(next(numbers), 0) for _ in group.sources)
                if place not in left:
                    rewrites.append(Rewrite(group, own, policies[place].delete_retention_ms))
        return rewrites

    def kept_aside(self, counts: Counts) -> list[str]:
        """The objects that hold the survivors."""
        work = self.survivors_work
        return [work.key(work.targets[number]) for number in counts if number >= 0]

    def clean_ends(
        self, counts: Counts, outcomes: Sequence[Outcome], skipped: Sequence[Skipped]
    ) -> dict[str, dict[int, int]]:
        """Up to where each partition is clean now, by topic."""
        dirty = {*self.incomplete(counts), *(each.place for each in skipped)}
        dirty.update(each.staged.place for each in outcomes if not each.is_swapped)
        ends: dict[str, dict[int, int]] = defaultdict(dict)
        for each in self.candidates:
            if each.place not in dirty:
                ends[each.found.topic][each.found.partition] = each.cleanable_end
        return ends
