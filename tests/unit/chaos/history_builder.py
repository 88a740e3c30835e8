"""Builds histories for tests; every event is later than the one before."""

from chaos.history import (
    AnyEvent,
    Commit,
    CommitRead,
    Consumer,
    EndRead,
    Failure,
    Kind,
    Move,
    Poll,
    Producer,
    Send,
    TopicDeletion,
)

PARTITION = "topic/0"
STEP_NS = 1000


class HistoryBuilder:
    """A history that begins with three producers, two readers, a group and the final reader."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.now_ns = 0
        self.add(Producer("idempotent", self.later(), is_idempotent=True, keeps_order=True))
        self.add(Producer("plain", self.later(), keeps_order=True))
        self.add(Producer("reordering", self.later()))
        self.add(Consumer("reader", self.later()))
        self.add(Consumer("other", self.later()))
        self.add(Consumer("first", self.later(), group="group"))
        self.add(Consumer("second", self.later(), group="group"))
        self.add(Consumer("final", self.later(), is_final=True))

    def later(self) -> int:
        self.now_ns += STEP_NS
        return self.now_ns

    def add(self, event: AnyEvent) -> None:
        self.events.append(event)

    def invoke(self, process: str, value: str, partition: str = PARTITION) -> None:
        self.add(Send(process, self.later(), "invoke", partition, value))

    def done(
        self, process: str, kind: Kind, value: str, offset: int = -1, partition: str = PARTITION
    ) -> None:
        self.add(Send(process, self.later(), kind, partition, value, offset))

    def sent(self, process: str, kind: Kind, value: str, offset: int = -1) -> None:
        self.invoke(process, value)
        self.done(process, kind, value, offset)

    def acknowledged(self, *values: str, process: str = "idempotent", start: int = 0) -> None:
        """Add sends that are acknowledged, one after the other."""
        for offset, value in enumerate(values, start):
            self.sent(process, "ok", value, offset)

    def read(self, process: str, *records: tuple[int, str], partition: str = PARTITION) -> None:
        self.add(Poll(process, self.later(), {partition: list(records)}))

    def moved(self, process: str) -> None:
        self.add(Move(process, self.later(), (PARTITION,)))

    def committed(self, process: str, offset: int, kind: Kind = "ok") -> None:
        self.add(Commit(process, self.later(), kind, "group", PARTITION, offset))

    def commit_read(self, offset: int, *, began_ns: int | None = None) -> None:
        began_ns = self.later() if began_ns is None else began_ns
        self.add(CommitRead("other", self.later(), began_ns, "group", PARTITION, offset))

    def end_read(self, offset: int, *, began_ns: int | None = None) -> None:
        began_ns = self.later() if began_ns is None else began_ns
        self.add(EndRead("other", self.later(), began_ns, PARTITION, offset))

    def topic_deleted(self, partition: str = PARTITION) -> None:
        self.add(TopicDeletion("idempotent", self.later(), (partition,)))

    def failed(self, process: str, error: str) -> None:
        self.add(Failure(process, self.later(), error))
