"""Every transaction has the results of Kafka's own coordinator, which a Java program runs.

Compared are the reply, the markers and the stored fields, for every kind of event in every state,
and for random sequences of events. What Kafka has not finished is not compared: with an epoch that
no client gets, it throws where a transaction here continues with another producer id, and it adds
partitions, although the outcome of the transaction cannot have a higher epoch.
"""

import itertools
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from kafscale.transactions.effects import (
    PartitionsAdded,
    PartitionsVerified,
    ProducerInitialized,
    Reply,
    TransactionEnded,
    WriteMarkers,
)
from kafscale.transactions.events import (
    AddPartitions,
    EndTransaction,
    Event,
    InitProducer,
    MarkersWritten,
    Tick,
    VerifyPartitions,
)
from kafscale.transactions.model import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    TransactionRecord,
    TransactionState,
    TransactionVersion,
)
from kafscale.transactions.transaction import Transaction
from kafscale.transactions.transitions import PREVIOUS_STATES
from services import java

PROGRAM = Path(__file__).with_name("Coordinator.java")
SECONDS_MAX = 60
WALKS = 400
STEPS = 40

PRODUCER, OTHER, NEXT, FRESH = 7, 8, 9, 10
NOW_MS = 1_000
TIMEOUT_MS = 100
EPOCHS = (0, 1, 5, EPOCH_MAX - 2, EPOCH_MAX - 1, EPOCH_MAX)
V0, _, V2 = TransactionVersion
STORED = [state for state in TransactionState if state.value not in {"PrepareEpochFence", "Dead"}]

pytestmark = [
    pytest.mark.skipif(not java.is_available(), reason="no Java here"),
    pytest.mark.timeout(2 * SECONDS_MAX),
]


def kafka(commands: list[str]) -> list[str]:
    """The answer of Kafka's coordinator to each command."""
    done = subprocess.run(  # noqa: S603 - the program is our own.
        ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{java.jars()}/*", PROGRAM],  # noqa: S607
        input="".join(f"{line}\n" for line in commands),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    return done.stdout.splitlines()


# --- commands and answers ------------------------------------------------------------------------


def written(partitions) -> str:
    return ",".join(str(number) for _, number in sorted(partitions)) or "-"


def described(record: TransactionRecord) -> str:
    previous = record.previous_producer_id
    return (
        f"{record.state} {record.producer_id}"
        # Kafka allocates the first producer id before the first event.
        f" {record.producer_id if previous == NO_PRODUCER_ID else previous}"
        f" {record.next_producer_id} {record.epoch} {record.last_epoch} {record.timeout_ms}"
        f" {written(record.partitions)} {record.started_ms} {record.updated_ms} {record.version}"
    )


def command(event: Event, now_ms: int) -> str:
    match event:
        case InitProducer():
            return (
                f"init {event.fresh_producer_id} {now_ms} {event.timeout_ms}"
                f" {event.producer_id} {event.epoch}"
            )
        case AddPartitions():
            return (
                f"add {now_ms} {event.producer_id} {event.epoch} {event.version}"
                f" {written(event.partitions)}"
            )
        case VerifyPartitions():
            return f"verify {now_ms} {event.producer_id} {event.epoch} {written(event.partitions)}"
        case EndTransaction():
            return (
                f"end {event.fresh_producer_id} {now_ms} {event.producer_id} {event.epoch}"
                f" {'commit' if event.is_commit else 'abort'} {event.version}"
            )
        case MarkersWritten():
            return f"markers {now_ms} {written(event.partitions)}"
        case Tick():
            return f"tick {now_ms}"


def answer(transaction: Transaction, event: Event, now_ms: int) -> str:
    parts = []
    for effect in transaction.handle(event, now_ms):
        match effect:
            case Reply():
                parts.append(replied(event, effect))
            case WriteMarkers():
                parts.append(
                    f"markers {effect.producer_id} {effect.epoch}"
                    f" {'commit' if effect.is_commit else 'abort'} {written(effect.partitions)}"
                )
    return " | ".join([*parts, described(transaction.record())])


def replied(event: Event, reply: Reply) -> str:
    match reply.response:
        case ProducerInitialized(producer_id=producer_id, epoch=epoch):
            return f"0 {producer_id} {epoch}"
        case TransactionEnded(producer_id=producer_id, epoch=epoch):
            return f"0 {producer_id} {epoch}"
        case PartitionsAdded():
            return "0"
        case PartitionsVerified(errors):
            codes = ((number, error.code if error else 0) for (_, number), error in errors.items())
            return "{" + ",".join(f"{number}={code}" for number, code in sorted(codes)) + "}"
        case error:
            is_pair = isinstance(event, InitProducer | EndTransaction)
            return f"{error.code} -1 -1" if is_pair else f"{error.code}"


def comparable(line: str) -> str:
    """Without the time of completion: Kafka keeps that of the decision."""
    *parts, record = line.split(" | ")
    fields = record.split(" ")
    if fields[0].startswith("Complete"):
        fields[9] = "*"
    return " | ".join([*parts, " ".join(fields)])


class Step(NamedTuple):
    before: TransactionRecord | None
    event: Event
    now_ms: int
    ours: str


def compare(steps: list[Step], answers: list[str]) -> int:
    """Compare all answers; the number of those that Kafka does not have."""
    missing = 0
    for step, kafkas in zip(steps, answers, strict=True):
        if kafkas.startswith("thrown"):
            assert step.before is not None
            assert step.before.epoch >= EPOCH_MAX - 1, (step, kafkas)
            missing += 1
        elif is_unfinished(step.event):
            assert step.before is not None
            assert step.ours.endswith(described(step.before)), "it was refused"
            missing += 1
        else:
            assert comparable(step.ours) == comparable(kafkas), step
    return missing


def is_unfinished(event: Event) -> bool:
    """Whether it uses the epoch that only fences."""
    return isinstance(event, AddPartitions | VerifyPartitions) and event.epoch == EPOCH_MAX


# --- every event in every state ------------------------------------------------------------------


def partitions(*numbers: int) -> frozenset[tuple[str, int]]:
    return frozenset(("t", number) for number in numbers)


def records() -> Iterator[TransactionRecord]:
    for state, epoch, version in itertools.product(STORED, EPOCHS, (V0, V2)):
        for last_epoch, previous in itertools.product({NO_EPOCH, epoch - 1}, (PRODUCER, OTHER)):
            has_partitions = state is TransactionState.ONGOING or state.is_prepared
            record = TransactionRecord(
                transactional_id="id",
                producer_id=PRODUCER,
                previous_producer_id=previous,
                epoch=epoch,
                last_epoch=last_epoch,
                timeout_ms=TIMEOUT_MS,
                state=state,
                partitions=partitions(1, 2) if has_partitions else frozenset(),
                started_ms=NO_TIME if state is TransactionState.EMPTY else NOW_MS,
                updated_ms=NOW_MS,
                version=version,
            )
            yield record
            if state.is_prepared and version is V2:
                yield replace(record, next_producer_id=NEXT)
    # The producer id has just changed.
    for state, last_epoch in itertools.product(STORED, (NO_EPOCH, EPOCH_MAX - 1, EPOCH_MAX)):
        yield replace(
            record, state=state, epoch=0, last_epoch=last_epoch, version=V2, partitions=partitions()
        )


def events(record: TransactionRecord) -> Iterator[Event]:
    epochs = {0, record.epoch - 1, record.epoch, record.epoch + 1, EPOCH_MAX - 1} - {-1, -2}
    producers = list(itertools.product((PRODUCER, OTHER, FRESH), sorted(epochs)))
    for producer_id, epoch in [(NO_PRODUCER_ID, NO_EPOCH), *producers]:
        yield InitProducer(
            reply_token=1,
            timeout_ms=2 * TIMEOUT_MS,
            producer_id=producer_id,
            epoch=min(epoch, EPOCH_MAX),
            fresh_producer_id=FRESH,
        )
    for producer_id, epoch in producers:
        producer = {"reply_token": 1, "producer_id": producer_id, "epoch": min(epoch, EPOCH_MAX)}
        for added, version in itertools.product(((), (1,), (1, 3)), (V0, V2)):
            yield AddPartitions(**producer, partitions=partitions(*added), version=version)
        yield VerifyPartitions(**producer, partitions=partitions(1, 3))
        for is_commit, version in itertools.product((True, False), TransactionVersion):
            yield EndTransaction(
                **producer, is_commit=is_commit, version=version, fresh_producer_id=FRESH
            )
    for numbers in ((1,), (1, 2), (3,)):
        yield MarkersWritten(
            producer_id=PRODUCER, epoch=record.epoch, partitions=partitions(*numbers)
        )
    yield Tick()


def test_every_event_in_every_state():
    commands, steps = [], []
    for record in records():
        for event, now_ms in itertools.product(events(record), (NOW_MS + 1, NOW_MS + 101)):
            commands += [f"load {described(record)}", command(event, now_ms)]
            ours = answer(Transaction.restore(record), event, now_ms)
            steps.append(Step(record, event, now_ms, ours))
    missing = compare(steps, kafka(commands)[1::2])
    assert 0 < missing < len(steps) / 10


# --- sequences of events -------------------------------------------------------------------------


def random_event(rng: random.Random, record: TransactionRecord, fresh: int) -> Event:
    """Mostly an event of the present producer; also of earlier and unknown ones."""
    producer_id = rng.choice([record.producer_id] * 8 + [record.previous_producer_id, fresh])
    epoch = max(0, record.epoch - rng.choice([0] * 6 + [1, 1, 2]))
    if record.state.is_complete and record.epoch == 0 and rng.random() < 0.3:
        producer_id, epoch = record.previous_producer_id, EPOCH_MAX - 1
    producer = {"reply_token": 1, "producer_id": producer_id, "epoch": epoch}
    version = rng.choice([V0, V2, V2])
    some = partitions(*rng.sample(range(4), rng.randint(0, 3)))
    if record.state.is_prepared and rng.random() < 0.5:
        written_to = rng.choice([some, record.partitions])
        return MarkersWritten(
            producer_id=record.producer_id, epoch=record.epoch, partitions=written_to
        )
    match rng.choice(
        ["init", "init again", *["add"] * 4, "verify", *["end"] * 4, "markers", "tick"]
    ):
        case "init":
            return InitProducer(reply_token=1, timeout_ms=TIMEOUT_MS, fresh_producer_id=fresh)
        case "init again":
            return InitProducer(**producer, timeout_ms=TIMEOUT_MS, fresh_producer_id=fresh)
        case "add":
            return AddPartitions(**producer, partitions=some, version=version)
        case "verify":
            return VerifyPartitions(**producer, partitions=some)
        case "end":
            is_commit = rng.random() < 0.6
            return EndTransaction(
                **producer, is_commit=is_commit, version=version, fresh_producer_id=fresh
            )
        case "markers":
            return MarkersWritten(
                producer_id=record.producer_id, epoch=record.epoch, partitions=some
            )
    return Tick()


def beginnings() -> list[TransactionRecord]:
    """Those of new transactional ids, and those whose epochs are nearly exhausted."""
    new = next(records())
    return [new] * 3 + [record for record in records() if record.epoch == EPOCH_MAX - 2]


def test_random_sequences_of_events():
    rng = random.Random(20)
    commands, walks = [], []
    begun = beginnings()
    for _ in range(WALKS):
        transaction = Transaction.restore(rng.choice(begun))
        now_ms, fresh = NOW_MS, FRESH
        commands.append(f"load {described(transaction.record())}")
        walk = []
        for _ in range(STEPS):
            now_ms += rng.choice([1, 10, 60])
            fresh += 1
            before = transaction.record()
            event = random_event(rng, before, fresh)
            commands.append(command(event, now_ms))
            walk.append(Step(before, event, now_ms, answer(transaction, event, now_ms)))
        walks.append(walk)
    answers = iter(kafka(commands))
    for walk in walks:
        next(answers)
        them = list(itertools.islice(answers, STEPS))
        ends = [
            number
            for number, (step, line) in enumerate(zip(walk, them, strict=True))
            if line.startswith("thrown") or is_unfinished(step.event)
        ]
        end = ends[0] + 1 if ends else STEPS
        compare(walk[:end], them[:end])


def test_transitions_equal_kafka():
    *states, _ = kafka(["transitions"])[0].split(" | ")
    assert set(states) == {
        f"{state} {','.join(sorted(previous))}" for state, previous in PREVIOUS_STATES.items()
    }
