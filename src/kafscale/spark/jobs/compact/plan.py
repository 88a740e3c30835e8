"""Plans a run of compaction: what to read, what to rewrite, and which checkpoints to write.

Segments are numbered by their index among all targets, so that the rows of the shuffle are small. A
partition whose keys could not be read completely has a negative number in the counts, and is not
rewritten. Pure.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate

from kafscale.spark.jobs.compact.candidates import Candidate, groups
from kafscale.spark.jobs.compact.key_scan import KeyScan
from kafscale.spark.jobs.compact.segment_rewrite import SegmentRewrite
from kafscale.spark.jobs.compact.surviving_offsets import SurvivorStore, TargetSegment
from kafscale.spark.jobs.shared.segment_install import SwapOutcome
from kafscale.spark.jobs.shared.staging import SkippedGroup
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.plan.task_planner import plan as plan_tasks
from kafscale.spark.read.location import Location
from kafscale.text.topic_partition import TopicPartition

OpenProducers = Mapping[TopicPartition, Mapping[int, tuple[int, ...]]]
"""The producers that have an open transaction at some offsets of partitions."""

SurvivorCounts = Mapping[int, int]
"""The number of surviving records by the number of their segment."""


class CompactionPlan:
    """What a run does to the partitions that are due."""

    def __init__(
        self,
        location: Location,
        candidates: Sequence[Candidate],
        run_id: str,
        target_bytes: int = 0,
    ) -> None:
        """The partitions of the candidates have their aborted transactions."""
        self.candidates = candidates
        self._location = location
        self._run_id = run_id
        self._groups = {each.topic_partition: groups(each, target_bytes) for each in candidates}

    @cached_property
    def survivor_store(self) -> SurvivorStore:
        targets = [
            TargetSegment(group.topic, group.partition, source.start_offset, source.end_offset)
            for own in self._groups.values()
            for group in own
            for source in group.sources
        ]
        counts = (sum(len(group.sources) for group in own) for own in self._groups.values())
        firsts = list(accumulate(counts, initial=0))
        return SurvivorStore(self._location, self._run_id, targets, firsts)

    @property
    def group_starts(self) -> Mapping[TopicPartition, list[int]]:
        """The offsets at which groups begin."""
        return {key: [group.base_offset for group in own] for key, own in self._groups.items()}

    def key_scan(self, offset_map: OffsetMap, secret: bytes, now_ms: int) -> KeyScan:
        """Return what to read: all committed records, because keys in the head count too."""
        ranges = [
            OffsetRange(
                *each.topic_partition, each.partition.start_offset, each.partition.end_offset
            )
            for each in self.candidates
        ]
        numbers = {topic_partition: number for number, topic_partition in enumerate(self._groups)}
        return KeyScan(self._location, plan_tasks(offset_map, ranges), numbers, secret, now_ms)

    def incomplete(self, counts: SurvivorCounts) -> list[TopicPartition]:
        """Return the partitions that could not be read completely."""
        topic_partitions = list(self._groups)
        return sorted(topic_partitions[-1 - number] for number in counts if number < 0)

    def rewrites(self, counts: SurvivorCounts, opened: OpenProducers) -> list[SegmentRewrite]:
        """Return what tasks rewrite; `opened` says which transactions began before each group."""
        incomplete = set(self.incomplete(counts))
        candidates = {each.topic_partition: each for each in self.candidates}
        numbers = iter(range(len(self.survivor_store.targets)))
        rewrites = []
        for topic_partition, own in self._groups.items():
            for group in own:
                group_counts = tuple(counts.get(next(numbers), 0) for _ in group.sources)
                if topic_partition not in incomplete:
                    candidate = candidates[topic_partition]
                    rewrites.append(
                        SegmentRewrite(
                            group,
                            group_counts,
                            candidate.policy.delete_retention_ms,
                            candidate.partition.aborted_between(
                                group.base_offset, group.end_offset
                            ),
                            opened.get(topic_partition, {}).get(group.base_offset, ()),
                        )
                    )
        return rewrites

    def survivor_keys(self, counts: SurvivorCounts) -> list[str]:
        """Return the keys of the objects that hold surviving offsets."""
        survivors = self.survivor_store
        return [survivors.key(survivors.targets[number]) for number in counts if number >= 0]

    def clean_ends(
        self,
        counts: SurvivorCounts,
        outcomes: Sequence[SwapOutcome],
        skipped: Sequence[SkippedGroup],
    ) -> dict[str, dict[int, int]]:
        """Return the new clean end of each partition, by topic.

        A record that was kept only because a segment needs one may be obsolete, so it counts as
        dirty.
        """
        dirty = {*self.incomplete(counts), *(each.topic_partition for each in skipped)}
        dirty.update(each.staged.topic_partition for each in outcomes if not each.is_swapped)
        obsolete: dict[TopicPartition, int] = {}
        for outcome in outcomes:
            if outcome.is_swapped and not outcome.staged.has_survivors:
                base_offset = outcome.staged.group.base_offset
                known = obsolete.get(outcome.staged.topic_partition, base_offset)
                obsolete[outcome.staged.topic_partition] = min(known, base_offset)
        ends: dict[str, dict[int, int]] = defaultdict(dict)
        for each in self.candidates:
            if each.topic_partition not in dirty:
                clean_end = obsolete.get(each.topic_partition, each.cleanable_end)
                ends[each.partition.topic][each.partition.partition] = clean_end
        return ends
