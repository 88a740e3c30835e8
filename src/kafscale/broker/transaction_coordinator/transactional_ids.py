"""`TransactionalIds`: the transactional ids of this broker's shards.

There may be a million, as applications may take a new id for every transaction (Flink does). So an
id that is not used has nothing but its record, and what concerns all ids is done in turns of a few
milliseconds.

Invariant: ids belong to a shard session, and are forgotten with it.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

from kafscale.aio.pacer import Pacer
from kafscale.broker.shards.pending_replies import PendingReplies
from kafscale.broker.shards.shard_session import ShardSession
from kafscale.broker.transaction_coordinator.marker_sender import MarkerSender
from kafscale.broker.transaction_coordinator.runtime import RuntimeContext, TransactionRuntime
from kafscale.observability.metrics.counters import TransactionCounters
from kafscale.transactions.model import TransactionState
from kafscale.transactions.transaction import Transaction

IDS_PER_TURN: Final = 500
"""How many ids are visited before the event loop runs other tasks: a few milliseconds, with what
the visitor does."""


class ShardIds:
    """The transactional ids of one shard session."""

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context
        self.runtimes: dict[str, TransactionRuntime] = {}

    @property
    def session(self) -> ShardSession:
        return self._context.session

    @property
    def states(self) -> Counter[TransactionState]:
        """How many ids are in each state."""
        return self._context.states

    def add(self, transaction: Transaction) -> TransactionRuntime:
        runtime = TransactionRuntime(transaction, self._context)
        self.runtimes[runtime.name] = runtime
        self._context.states[transaction.state] += 1
        return runtime

    def remove(self, runtime: TransactionRuntime) -> None:
        if self.runtimes.get(runtime.name) is runtime:
            runtime.close()
            self._context.states[runtime.transaction.state] -= 1
            del self.runtimes[runtime.name]


class TransactionalIds:
    """The transactional ids of all shard sessions."""

    def __init__(
        self, markers: MarkerSender, counters: TransactionCounters, *, clock: Callable[[], int]
    ) -> None:
        self.replies = PendingReplies()
        self._markers = markers
        self._counters = counters
        self._clock = clock
        self._by_session: dict[ShardSession, ShardIds] = {}

    def __len__(self) -> int:
        return sum(len(ids.runtimes) for ids in self._by_session.values())

    def __contains__(self, session: ShardSession) -> bool:
        return session in self._by_session

    def __iter__(self) -> Iterator[TransactionRuntime]:
        for ids in list(self._by_session.values()):
            yield from list(ids.runtimes.values())

    async def in_turns(self) -> AsyncIterator[TransactionRuntime]:
        """All ids; other tasks have their turn meanwhile, and may change, add and remove some."""
        pacer = Pacer(IDS_PER_TURN)
        for session, ids in list(self._by_session.items()):
            for runtime in list(ids.runtimes.values()):
                if self._by_session.get(session) is ids:
                    yield runtime
                await pacer.step()

    def state_counts(self) -> Counter[TransactionState]:
        """How many ids are in each state."""
        counts: Counter[TransactionState] = Counter()
        for ids in self._by_session.values():
            counts.update(ids.states)
        return +counts

    def new_shard(self, session: ShardSession) -> ShardIds:
        """The ids of a session, to be filled; they are not served yet."""
        context = RuntimeContext(
            session, self.replies, self._markers, self._counters, self._clock, Counter()
        )
        return ShardIds(context)

    def put_shard(self, ids: ShardIds) -> None:
        """Serve the ids of a session."""
        self._by_session[ids.session] = ids

    def remove_shard(self, session: ShardSession) -> None:
        """Forget the ids of a session; their timers stop."""
        ids = self._by_session.pop(session, None)
        if ids is not None:
            for runtime in ids.runtimes.values():
                runtime.close()

    def get(self, session: ShardSession, name: str) -> TransactionRuntime | None:
        ids = self._by_session.get(session)
        return None if ids is None else ids.runtimes.get(name)

    def add(self, session: ShardSession, transaction: Transaction) -> TransactionRuntime:
        return self._by_session[session].add(transaction)

    def remove(self, runtime: TransactionRuntime) -> None:
        ids = self._by_session.get(runtime.session)
        if ids is not None:
            ids.remove(runtime)
