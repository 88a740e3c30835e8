"""Scripts with golden output: what happens to a group, and what it answers, for everybody to read.

A script is made of blocks. A block has commands, a line `----`, what they brought about, and how
the group stands afterwards. Lines that begin with `#` are for the reader. The commands:

    group [setting=number ...]            a new group
    join TICKET MEMBER [fresh=ID] [instance=ID] [offers=name:metadata,...] [type=...]
         [session=ms] [rebalance=ms] [must_know_id] [can_skip] [reason=word]
    sync TICKET MEMBER GENERATION [instance=ID] [type=...] [protocol=...] [assign=member:bytes,...]
    heartbeat TICKET MEMBER GENERATION [instance=ID]
    leave TICKET MEMBER[/INSTANCE] ...
    commit MEMBER GENERATION [instance=ID]
    at MS                                 time passes; ticks come when they are due
    tick                                  one comes too early
    restore [setting=number ...]          another coordinator goes on from the record
    dismiss                               this coordinator gives the group up
    show                                  the record

A member that has no id is written `-`. To write what the groups of today answer into all scripts:

    python -m unit.groups.classic.script                               (with `tests` on the path)
"""

from collections.abc import Iterator
from pathlib import Path

from kafscale.errors import KafscaleError, MemberIdRequiredError, NotCoordinatorError
from kafscale.groups.classic import ClassicGroup, State
from kafscale.groups.classic.step import Step
from kafscale.groups.config import GroupSettings
from kafscale.groups.effects import Effect, Rebalanced, Reply, Save
from kafscale.groups.events import Event, Heartbeat, Join, Leave, Leaver, Sync, Tick
from kafscale.groups.responses import Alive, Answer, Joined, Left, Synced

SCRIPTS = sorted((Path(__file__).parents[1] / "scripts").glob("classic_*.txt"))
ARROW = "----"


def rewritten(script: str) -> str:
    """The script with what its commands bring about today."""
    return replayed(script, Stage())


def replayed(script: str, stage: "Stage") -> str:
    blocks = []
    for block in script.strip("\n").split("\n\n"):
        before, arrow, _ = block.partition(f"\n{ARROW}")
        if arrow:
            commands = [line for line in before.splitlines() if not line.startswith("#")]
            after = [line for command in commands for line in stage.play(command)]
            blocks.append("\n".join([before, ARROW, *after, stage.standing()]))
        else:
            blocks.append(block)
    return "\n\n".join(blocks) + "\n"


class Stage:
    """One group, the time, and the commands."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.group = ClassicGroup("group", GroupSettings(), 0)
        self.walked: set[tuple[State, Step, State]] = set()
        """Which ways of the table of transitions were gone."""
        self.promised: set[str] = set()

    def play(self, command: str) -> Iterator[str]:
        verb, *words = command.split()
        names = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        yield from getattr(self, f"do_{verb}")(names, options)

    def standing(self) -> str:
        record = self.group.record()
        due = "nothing is due" if self.group.deadline_ms is None else f"{self.group.deadline_ms} ms"
        members = " ".join(record.members) or "nobody"
        return f"= {self.group.state}, generation {record.generation}: {members}; {due}"

    def handle(self, event: Event) -> Iterator[str]:
        before, step = State(self.group.state), self.step(event)
        effects = self.group.handle(event, self.now_ms)
        self.walked.add((before, step, State(self.group.state)))
        return map(told, effects)

    def step(self, event: Event) -> Step:
        """What the event means, by another way than the group's own."""
        if not isinstance(event, Join):
            return Step[type(event).__name__.upper()]
        members = self.group.record().members
        if event.instance_id in {each.instance_id for each in members.values()} - {None}:
            return Step.REJOIN if event.member_id else Step.RETURN
        is_known = event.member_id and event.member_id not in self.promised
        return Step.REJOIN if is_known else Step.NEWCOMER

    def do_group(self, _names, options):
        settings = GroupSettings(**{name: int(value) for name, value in options.items()})
        self.group = ClassicGroup("group", settings, self.now_ms)
        yield from ()

    def do_join(self, names, options):
        ticket, member_id, *flags = names
        session_ms = int(options.get("session", 10_000))
        event = Join(
            ticket=int(ticket),
            member_id=named(member_id),
            fresh_id=options.get("fresh", "fresh"),
            instance_id=options.get("instance"),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
            protocol_type=options.get("type", "consumer"),
            protocols=pairs(options.get("offers", "range:r")),
            must_know_id="must_know_id" in flags,
            can_skip_assignment="can_skip" in flags,
            reason=options.get("reason", ""),
        )
        yield from self.handle(event)
        if event.must_know_id:
            self.promised.add(event.fresh_id)

    def do_sync(self, names, options):
        ticket, member_id, generation = names
        event = Sync(
            ticket=int(ticket),
            member_id=named(member_id),
            instance_id=options.get("instance"),
            generation=int(generation),
            protocol_type=options.get("type"),
            protocol=options.get("protocol"),
            assignments=dict(pairs(options.get("assign", ""))),
        )
        yield from self.handle(event)

    def do_heartbeat(self, names, options):
        ticket, member_id, generation = names
        event = Heartbeat(
            ticket=int(ticket),
            member_id=named(member_id),
            instance_id=options.get("instance"),
            generation=int(generation),
        )
        yield from self.handle(event)

    def do_leave(self, names, _options):
        ticket, *who = names
        leavers = []
        for each in who:
            member_id, _, instance_id = each.partition("/")
            leavers.append(Leaver(member_id=named(member_id), instance_id=instance_id or None))
        event = Leave(ticket=int(ticket), members=tuple(leavers))
        yield from self.handle(event)

    def do_commit(self, names, options):
        member_id, generation = names
        who = f"commit of {member_id} in {generation}"
        try:
            self.group.check_commit(
                named(member_id), options.get("instance"), int(generation), self.now_ms
            )
        except KafscaleError as error:
            yield f"{who}: {type(error).__name__}"
        else:
            yield f"{who}: may be"

    def do_at(self, names, _options):
        until_ms = int(names[0])
        assert until_ms >= self.now_ms
        while self.group.deadline_ms is not None and self.group.deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, self.group.deadline_ms)
            for line in self.handle(Tick()):
                yield f"{self.now_ms} ms: {line}"
        self.now_ms = until_ms

    def do_tick(self, _names, _options):
        yield from self.handle(Tick())

    def do_restore(self, _names, options):
        settings = GroupSettings(**{name: int(value) for name, value in options.items()})
        self.group = ClassicGroup.restored(self.group.record(), settings, self.now_ms)
        yield from ()

    def do_dismiss(self, _names, _options):
        yield from map(told, self.group.dismiss(NotCoordinatorError(), self.now_ms))

    def do_show(self, _names, _options):
        record = self.group.record()
        yield f"{record.state} since {record.state_since_ms} ms, leader {record.leader or 'none'}"
        yield f"protocol {record.protocol_type or 'none'} {record.protocol or 'none'}"
        for member in record.members.values():
            offers = ",".join(f"{name}:{data.decode()}" for name, data in member.protocols)
            instance = f" instance {member.instance_id}" if member.instance_id else ""
            yield f"{member.member_id}{instance} offers {offers} has {member.assignment.decode()!r}"


def named(member_id: str) -> str:
    return "" if member_id == "-" else member_id


def pairs(text: str) -> tuple[tuple[str, bytes], ...]:
    found = (each.partition(":") for each in text.split(",") if each)
    return tuple((name, value.encode()) for name, _, value in found)


def told(effect: Effect) -> str:
    match effect:
        case Save():
            return "save"
        case Rebalanced(generation, count, reason):
            return f"generation {generation} of {count}, because {reason}"
        case Reply(ticket, answer, durable):
            return f"{ticket} <- {answered(answer)}{' (durable)' if durable else ''}"


def answered(answer: Answer | KafscaleError) -> str:
    match answer:
        case MemberIdRequiredError():
            return f"MemberIdRequiredError {answer.member_id}"
        case KafscaleError():
            return type(answer).__name__
        case Joined():
            shown = ",".join(
                f"{each.member_id}:{each.metadata.decode()}" for each in answer.members
            )
            return (
                f"joined as {answer.member_id} in {answer.generation}, {answer.protocol_type}"
                f" {answer.protocol}, led by {answer.leader}"
                f"{f', of {shown}' if shown else ''}{', skip' if answer.skip_assignment else ''}"
            )
        case Synced():
            return f"synced {answer.protocol_type} {answer.protocol} {answer.assignment.decode()!r}"
        case Alive():
            return "alive"
        case Left():
            gone = (
                f"{member_id or '-'}{f'/{instance_id}' if instance_id else ''}"
                f"{f' {type(error).__name__}' if error else ''}"
                for member_id, instance_id, error in answer.members
            )
            return f"left: {', '.join(gone)}"
    raise AssertionError(answer)


def main() -> None:
    for path in SCRIPTS:
        path.write_text(rewritten(path.read_text()))


if __name__ == "__main__":
    main()
