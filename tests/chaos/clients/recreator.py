"""Deletes a topic and creates it again under load.

Each generation of the topic is a topic of its own to the checker, with its own partition names.
Records are sent to random brokers by the topic's name, without retries, also while the topic is
deleted and created. A send belongs to a generation if it began after the creation of the topic was
acknowledged and was acknowledged before its deletion was requested. A request without a response
may be executed at any time later, so its record may be in all later generations; a record whose
send got a response must not.

Records are read by the topic's id and by its name. All acknowledged records of a generation are
read before it is deleted.
"""

import itertools
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from chaos import history
from chaos.clients.options import ClientOptions, StopSignal, decode_value, encode_value
from chaos.clients.recreated_topic import Brokers, TopicRequests
from chaos.history import Failure, Journal, Poll, Send, TopicDeletion, now_ns
from services.wire import batch_of, records_of

LIVES_S = (1, 8)
SEND_PAUSE_S = 0.01
READ_PAUSE_S = 0.1
WAIT_S_MAX = 60
"""How long a creation, a deletion or a read may take after the last fault."""
GENERATION_FILE = "generation"


class Generation(NamedTuple):
    """One topic among those that have the same name one after the other."""

    number: int
    topic_id: UUID


class Sends:
    """Sends records, and assigns them to generations; any thread may use it."""

    def __init__(self, options: ClientOptions, journal: Journal, brokers: Brokers) -> None:
        self._options = options
        self._journal = journal
        self._brokers = brokers
        self._rng = random.Random(f"{options.seed} sends")
        self._lock = threading.Lock()
        self._generation = 0
        self._is_live = False
        self._unanswered: dict[str, int] = {}
        """The partition of each value whose request got no response."""
        self._count = 0
        self.ends: dict[int, int] = {}
        """The offsets after the last acknowledged record of this generation, by partition."""
        journal.write(history.Producer(journal.process, now_ns()))

    def begin(self) -> None:
        """The creation of the generation was acknowledged."""
        with self._lock:
            self._is_live = True

    def delete(self) -> None:
        """The deletion of the generation will be requested: unanswered sends may reach the next."""
        with self._lock:
            names = tuple(
                partition_name(self._options, self._generation, index)
                for index in range(self._options.partitions)
            )
            self._journal.write(TopicDeletion(self._journal.process, now_ns(), names))
            self._generation, self._is_live, self.ends = self._generation + 1, False, {}
            for value, index in self._unanswered.items():
                self._invoke(self._generation, index, value)

    def send(self) -> None:
        """Send one record to a random broker."""
        index = self._rng.randrange(self._options.partitions)
        with self._lock:
            generation, was_live = self._generation, self._is_live
            value = f"{self._journal.process}:{self._count}"
            self._count += 1
            self._unanswered[value] = index
            self._invoke(generation, index, value)
        batch = batch_of([encode_value(value, self._rng)])
        response = self._brokers.call(
            lambda wire: wire.produce(self._options.topic, batch, partition=index)
        )
        if response is None:
            return
        with self._lock:
            del self._unanswered[value]
            is_same = was_live and self._is_live and generation == self._generation
            is_ok = response.error_code == 0 and is_same
            kind: history.Kind = "ok" if is_ok else "info"
            offset = response.base_offset if is_ok else -1
            name = partition_name(self._options, generation, index)
            error = "" if is_ok else str(response.error_code)
            self._journal.write(
                Send(self._journal.process, now_ns(), kind, name, value, offset, error)
            )
            if is_ok:
                self.ends[index] = max(self.ends.get(index, 0), offset + 1)

    def _invoke(self, generation: int, index: int, value: str) -> None:
        name = partition_name(self._options, generation, index)
        self._journal.write(Send(self._journal.process, now_ns(), "invoke", name, value))


class GenerationReader:
    """Reads one generation from its start, by id and by name."""

    def __init__(
        self,
        options: ClientOptions,
        journal: Journal,
        generation: Generation,
        requests: TopicRequests,
        *,
        is_final: bool = False,
    ) -> None:
        self._options = options
        self._journal = journal
        self._generation = generation
        self._requests = requests
        self._rng = random.Random(options.seed + generation.number)
        self.positions = dict.fromkeys(range(options.partitions), 0)
        journal.write(history.Consumer(journal.process, now_ns(), is_final=is_final))

    def read(self) -> None:
        """Read the next records of all partitions from random brokers."""
        for index, position in self.positions.items():
            by_id = self._rng.random() < 0.5
            topic_id = self._generation.topic_id if by_id else None
            fetched = self._requests.fetch(topic_id, index, position)
            if fetched is None or fetched.error_code:
                continue
            records = [
                (record.offset, decode_value(record.value or b""))
                for record in records_of(fetched)
                if record.offset >= position
            ]
            if records:
                name = partition_name(self._options, self._generation.number, index)
                self._journal.write(Poll(self._journal.process, now_ns(), {name: records}))
                self.positions[index] = records[-1][0] + 1

    def read_to(self, ends: dict[int, int], should_wait: Callable[[], bool]) -> None:
        """Read up to these offsets, which were acknowledged."""
        while any(self.positions[index] < end for index, end in ends.items()):
            if not should_wait():
                error = f"read only up to {self.positions} of {ends} in {self._generation}"
                self._journal.write(Failure(self._journal.process, now_ns(), error))
                return
            self.read()
            time.sleep(READ_PAUSE_S)


class Recreation:
    """Creates, uses and deletes the topic until the end; the last generation stays."""

    def __init__(self, options: ClientOptions, stop_signal: StopSignal) -> None:
        self._options = options
        self._stop_signal = stop_signal
        self._stopped_s = 0.0
        self._rng = random.Random(options.seed)
        self._requests = TopicRequests(
            options, Brokers(options, self._rng.getrandbits(32)), self._should_wait
        )
        self._journal = options.journal(0)
        brokers = Brokers(options, self._rng.getrandbits(32))
        self._sends = Sends(options, self._journal, brokers)

    def work(self) -> None:
        is_over = threading.Event()

        def keep_sending() -> None:
            while not is_over.wait(SEND_PAUSE_S):
                self._sends.send()

        sending = threading.Thread(target=keep_sending)
        sending.start()
        try:
            generation, reader = self._recreate()
        except TimeoutError as error:
            is_over.set()
            sending.join()
            what = f"{error} within {WAIT_S_MAX} s after the last fault"
            self._journal.write(Failure(self._journal.process, now_ns(), what))
        else:
            is_over.set()
            sending.join()
            reader.read_to(self._sends.ends, self._should_wait)
            live = f"{generation.number} {generation.topic_id}"
            (Path(self._options.directory) / GENERATION_FILE).write_text(live)
        self._journal.close()

    def _recreate(self) -> tuple[Generation, GenerationReader]:
        for number in itertools.count():
            generation = Generation(number, self._requests.create())
            self._sends.begin()
            journal = self._options.journal(number + 1)
            reader = GenerationReader(self._options, journal, generation, self._requests)
            until_s = time.monotonic() + self._rng.uniform(*LIVES_S)
            while self._stop_signal.continues_until(until_s):
                reader.read()
                self._stop_signal.wait(READ_PAUSE_S)
            if self._stop_signal.is_set:
                break
            reader.read_to(dict(self._sends.ends), self._should_wait)
            journal.close()
            self._sends.delete()
            self._requests.delete(generation.topic_id)
        return generation, reader

    def _should_wait(self) -> bool:
        """True while faults may be injected, and for a while after the end."""
        if self._stop_signal.is_set and not self._stopped_s:
            self._stopped_s = time.monotonic()
        return not self._stopped_s or time.monotonic() - self._stopped_s < WAIT_S_MAX


def recreate(options: ClientOptions, stop_signal: StopSignal) -> None:
    Recreation(options, stop_signal).work()


def read_live(options: ClientOptions, _stop_signal: StopSignal) -> None:
    """Read the last generation from start to end, if it could be created."""
    path = Path(options.directory) / GENERATION_FILE
    if not path.exists():
        return
    number, topic_id = path.read_text().split()
    until_s = time.monotonic() + WAIT_S_MAX

    def should_wait() -> bool:
        return time.monotonic() < until_s

    requests = TopicRequests(options, Brokers(options, options.seed), should_wait)
    journal = options.journal(0)
    generation = Generation(int(number), UUID(topic_id))
    reader = GenerationReader(options, journal, generation, requests, is_final=True)
    reader.read_to(requests.ends(), should_wait)
    journal.close()


def partition_name(options: ClientOptions, generation: int, index: int) -> str:
    return f"{options.topic}#{generation}/{index}"
