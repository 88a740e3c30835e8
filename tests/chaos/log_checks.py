"""Is every partition one log, that holds what was acknowledged, once, and nothing else?"""

from collections.abc import Iterator

from chaos.anomalies import Anomaly, Name
from chaos.history import Send
from chaos.story import ANYWHERE, Partition, Story

LISTED_MAX = 100
"""Of offsets that the final read did not reach, so many are listed for each partition."""


def log_anomalies(story: Story) -> Iterator[Anomaly]:
    for partition in story.partitions.values():
        yield from _misplaced(partition)
        yield from _strangers(partition)
        yield from _doubled(story, partition)
        yield from _clashing(partition)
        yield from _beyond_the_final_read(story, partition)
        yield from _disordered(story, partition)


def _misplaced(partition: Partition) -> Iterator[Anomaly]:
    """Acknowledged, and not read where it should be."""
    read = partition.read
    end = max(read, default=-1) + 1
    for value, done in partition.done.items():
        if done.kind != "ok" or read.get(done.offset) == value:
            continue
        told = f"{value} was acknowledged at {done.offset} to {done.process}"
        other, place = read.get(done.offset), partition.places.get(value)
        if other is not None:
            yield Anomaly(Name.INCONSISTENT, partition.name, f"{told}, where {other} was read")
        elif done.offset >= end:
            evidence = f"{told}, and nobody read further than {end - 1}"
            yield Anomaly(Name.UNSEEN, partition.name, evidence)
        elif place is not None:
            yield Anomaly(Name.INCONSISTENT, partition.name, f"{told} and read at {place} instead")
        if place is None and done.offset < end:
            evidence = f"{told} and never read, though others were up to {end - 1}"
            yield Anomaly(Name.LOST, partition.name, evidence)


def _strangers(partition: Partition) -> Iterator[Anomaly]:
    """Read, and never sent or surely refused."""
    for value in sorted(partition.places.keys() - partition.invoked.keys()):
        evidence = f"{value} was read at {partition.places[value]}, and nobody sent it there"
        yield Anomaly(Name.NEVER_SENT, partition.name, evidence)
    for value, done in partition.done.items():
        if done.kind == "fail" and value in partition.places:
            evidence = (
                f"{value} was read at {partition.places[value]},"
                f" though {done.process} was told: {done.error}"
            )
            yield Anomaly(Name.ABORTED, partition.name, evidence)


def _doubled(story: Story, partition: Partition) -> Iterator[Anomaly]:
    for value, offset in partition.repeats:
        send = partition.invoked.get(value)
        if send is None or not _is_idempotent(story, send):
            continue
        evidence = f"{value} of {send.process} is at {partition.places[value]} and at {offset}"
        yield Anomaly(Name.DUPLICATE, partition.name, evidence)


def _clashing(partition: Partition) -> Iterator[Anomaly]:
    for clash in partition.clashes:
        evidence = f"{clash.process} read {clash.value} at {clash.offset}, others {clash.other}"
        yield Anomaly(Name.INCONSISTENT, partition.name, evidence)


def _beyond_the_final_read(story: Story, partition: Partition) -> Iterator[Anomaly]:
    """What was read once can be read again."""
    if story.final is None:
        return
    end = max(story.cursors.get((story.final, partition.name), 0), ANYWHERE + 1)
    if max(partition.read, default=-1) < end:
        return
    beyond = sorted(offset for offset in partition.read if offset >= end)
    for offset in beyond[:LISTED_MAX]:
        evidence = (
            f"{partition.read[offset]} was read at {offset}, and {story.final} ended at {end}"
        )
        yield Anomaly(Name.UNSEEN, partition.name, evidence)


def _disordered(story: Story, partition: Partition) -> Iterator[Anomaly]:
    """Values of one producer, in the order of their sends, are at ever higher offsets."""
    last: dict[str, tuple[int, str]] = {}
    for value, send in partition.invoked.items():
        producer = story.producers[send.process]
        offset = _offset(partition, value, is_sought=producer.is_idempotent)
        if offset is None or not (producer.keeps_order or producer.is_idempotent):
            continue
        before = last.get(send.process)
        if before is not None and offset <= before[0]:
            evidence = (
                f"{send.process} sent {value} after {before[1]},"
                f" and they are at {offset} and {before[0]}"
            )
            yield Anomaly(Name.DISORDER, partition.name, evidence)
        last[send.process] = (offset, value)


def _offset(partition: Partition, value: str, *, is_sought: bool) -> int | None:
    """Where a value is, by its acknowledgement, or by what was read if it `is_sought`."""
    done = partition.done.get(value)
    if done is not None and done.kind == "ok":
        return done.offset
    return partition.places.get(value) if is_sought else None


def _is_idempotent(story: Story, send: Send) -> bool:
    return story.producers[send.process].is_idempotent
