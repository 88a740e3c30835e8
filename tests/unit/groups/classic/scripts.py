"""Scripts with golden output: commands to a group, and its responses, readable by people.

A script consists of blocks. A block has commands, a line `----`, their output, and the state of the
group after them. Lines that begin with `#` are comments. The commands:

    group [setting=number ...]            a new group
    join TOKEN MEMBER [new_id=ID] [instance=ID] [offers=name:metadata,...] [type=...]
         [session=ms] [rebalance=ms] [requires_id] [can_skip] [reason=word]
    sync TOKEN MEMBER GENERATION [instance=ID] [type=...] [protocol=...] [assign=member:bytes,...]
    heartbeat TOKEN MEMBER GENERATION [instance=ID]
    leave TOKEN MEMBER[/INSTANCE] ...
    commit MEMBER GENERATION [instance=ID]
    at MS                                 time passes; ticks come when they are due
    tick                                  an early tick
    restore [setting=number ...]          another coordinator restores the record
    abort                                 this coordinator releases the group
    show                                  the record

A member without an id is written `-`. To rewrite all scripts with the current output:

    python -m unit.groups.classic.scripts                               (with `tests` on the path)
"""

from collections.abc import Iterator
from pathlib import Path

from kafscale.errors import KafscaleError, MemberIdRequiredError, NotCoordinatorError
from kafscale.groups.classic import ClassicGroup, State
from kafscale.groups.classic.group_state import Step
from kafscale.groups.effects import (
    Alive,
    Effect,
    Joined,
    Left,
    Rebalanced,
    Reply,
    Response,
    Save,
    Synced,
)
from kafscale.groups.events import Event, Heartbeat, Join, Leave, MemberIdentity, Sync, Tick
from kafscale.groups.group import GroupSettings

SCRIPTS = sorted((Path(__file__).parents[1] / "scripts").glob("classic_*.txt"))
ARROW = "----"


def replay_script(script: str) -> str:
    """The script with the current output of its commands."""
    return replay(script, ScriptRunner())


def replay(script: str, runner: "ScriptRunner") -> str:
    blocks = []
    for block in script.strip("\n").split("\n\n"):
        before, arrow, _ = block.partition(f"\n{ARROW}")
        if arrow:
            commands = [line for line in before.splitlines() if not line.startswith("#")]
            after = [line for command in commands for line in runner.run(command)]
            blocks.append("\n".join([before, ARROW, *after, runner.state_line()]))
        else:
            blocks.append(block)
    return "\n\n".join(blocks) + "\n"


class ScriptRunner:
    """One group, the time, and the commands."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.group = ClassicGroup("group", GroupSettings(), 0)
        self.covered: set[tuple[State, Step, State]] = set()
        """The transitions that were covered."""
        self.pending_member_ids: set[str] = set()

    def run(self, command: str) -> Iterator[str]:
        verb, *words = command.split()
        names = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        yield from getattr(self, f"do_{verb}")(names, options)

    def state_line(self) -> str:
        record = self.group.record()
        due = "no deadline" if self.group.deadline_ms is None else f"{self.group.deadline_ms} ms"
        members = " ".join(record.members) or "no members"
        return f"= {self.group.state}, generation {record.generation}: {members}; {due}"

    def handle(self, event: Event) -> Iterator[str]:
        before, step = State(self.group.state), self.step(event)
        effects = self.group.handle(event, self.now_ms)
        self.covered.add((before, step, State(self.group.state)))
        return map(describe, effects)

    def step(self, event: Event) -> Step:
        """The step of an event, found independently of the group's own code."""
        if not isinstance(event, Join):
            return Step[type(event).__name__.upper()]
        members = self.group.record().members
        if event.instance_id in {each.instance_id for each in members.values()} - {None}:
            return Step.REJOIN if event.member_id else Step.STATIC_REJOIN
        is_known = event.member_id and event.member_id not in self.pending_member_ids
        return Step.REJOIN if is_known else Step.NEW_MEMBER

    def do_group(self, _names, options):
        settings = GroupSettings(**{name: int(value) for name, value in options.items()})
        self.group = ClassicGroup("group", settings, self.now_ms)
        yield from ()

    def do_join(self, names, options):
        reply_token, member_id, *flags = names
        session_ms = int(options.get("session", 10_000))
        event = Join(
            reply_token=int(reply_token),
            member_id=named(member_id),
            new_member_id=options.get("new_id", "new"),
            instance_id=options.get("instance"),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
            protocol_type=options.get("type", "consumer"),
            protocols=pairs(options.get("offers", "range:r")),
            requires_known_member_id="requires_id" in flags,
            supports_skipping_assignment="can_skip" in flags,
            reason=options.get("reason", ""),
        )
        yield from self.handle(event)
        if event.requires_known_member_id:
            self.pending_member_ids.add(event.new_member_id)

    def do_sync(self, names, options):
        reply_token, member_id, generation = names
        event = Sync(
            reply_token=int(reply_token),
            member_id=named(member_id),
            instance_id=options.get("instance"),
            generation=int(generation),
            protocol_type=options.get("type"),
            protocol=options.get("protocol"),
            assignments=dict(pairs(options.get("assign", ""))),
        )
        yield from self.handle(event)

    def do_heartbeat(self, names, options):
        reply_token, member_id, generation = names
        event = Heartbeat(
            reply_token=int(reply_token),
            member_id=named(member_id),
            instance_id=options.get("instance"),
            generation=int(generation),
        )
        yield from self.handle(event)

    def do_leave(self, names, _options):
        reply_token, *who = names
        leavers = []
        for each in who:
            member_id, _, instance_id = each.partition("/")
            leavers.append(
                MemberIdentity(member_id=named(member_id), instance_id=instance_id or None)
            )
        event = Leave(reply_token=int(reply_token), members=tuple(leavers))
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
            yield f"{who}: allowed"

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

    def do_abort(self, _names, _options):
        yield from map(describe, self.group.abort(NotCoordinatorError(), self.now_ms))

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
    result = (each.partition(":") for each in text.split(",") if each)
    return tuple((name, value.encode()) for name, _, value in result)


def describe(effect: Effect) -> str:
    match effect:
        case Save():
            return "save"
        case Rebalanced(generation, count, reason):
            return f"generation {generation} of {count}, because {reason}"
        case Reply(reply_token, response, is_durable):
            return f"{reply_token} <- {on_response(response)}{' (durable)' if is_durable else ''}"


def on_response(response: Response | KafscaleError) -> str:
    match response:
        case MemberIdRequiredError():
            return f"MemberIdRequiredError {response.member_id}"
        case KafscaleError():
            return type(response).__name__
        case Joined():
            shown = ",".join(
                f"{each.member_id}:{each.metadata.decode()}" for each in response.members
            )
            return (
                f"joined as {response.member_id} in {response.generation}, {response.protocol_type}"
                f" {response.protocol}, led by {response.leader}"
                f"{f', of {shown}' if shown else ''}{', skip' if response.skip_assignment else ''}"
            )
        case Synced():
            assignment = response.assignment.decode()
            return f"synced {response.protocol_type} {response.protocol} {assignment!r}"
        case Alive():
            return "alive"
        case Left():
            gone = (
                f"{member_id or '-'}{f'/{instance_id}' if instance_id else ''}"
                f"{f' {type(error).__name__}' if error else ''}"
                for member_id, instance_id, error in response.members
            )
            return f"left: {', '.join(gone)}"
    raise AssertionError(response)


def main() -> None:
    for path in SCRIPTS:
        path.write_text(replay_script(path.read_text()))


if __name__ == "__main__":
    main()
