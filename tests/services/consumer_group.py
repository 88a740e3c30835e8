"""Test harness: the members of one consumer group, including those that have left.

    with ConsumerGroup(client, options, directory, partitions=12) as consumers:
        first, second = consumers.start_members(2)
        consumers.wait_until_stable()

Members that still run when the block ends are killed.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec

from services.group_history import MemberHistory, committed, is_caught_up, problems
from services.group_member import Client, Member
from services.member_events import Committed, Lost, Read, Revoked
from services.members.options import BATCH_RECORDS_MAX, MemberOptions
from services.waiting import wait_until


class ConsumerGroup:
    """Members of one group on one topic; all use `client` unless `start_members` names another."""

    def __init__(
        self, client: Client, options: MemberOptions, directory: Path, *, partitions: int
    ) -> None:
        self.client = client
        self.group = options.group
        self.members: list[Member] = []
        self._options = options
        self._directory = directory
        self._partitions = set(range(partitions))
        self._stack = ExitStack()
        self._revoked_counts_before: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def running(self) -> list[Member]:
        return [member for member in self.members if member.is_running]

    @property
    def histories(self) -> list[MemberHistory]:
        return [member.history for member in self.members]

    def start_members(
        self, count: int = 1, *, client: Client | None = None, instance_id: str | None = None
    ) -> list[Member]:
        """Start new members; static members replace the one with the same instance id."""
        client = client or self.client
        options = msgspec.structs.replace(
            self._options, strategy=client.strategy, instance_id=instance_id
        )
        started = []
        for _ in range(count):
            name = f"member-{len(self.members)}"
            member = Member(client, name, options, self._directory)
            started.append(self._stack.enter_context(member))
            self.members.append(member)
        return started

    def wait_until_stable(self, seconds_max: float = 40) -> float:
        """Wait until shares are even and each partition has one owner; return the seconds."""
        return wait_until(self._is_stable, "a stable group", seconds_max=seconds_max, seen=self)

    def wait_for_commits_beyond(self, ends: dict[int, int]) -> None:
        """Wait for commits beyond `ends`, so that commits rejected by a rebalance were retried."""
        wait_until(
            lambda: all(committed(self.histories).get(p, 0) > end for p, end in ends.items()),
            f"commits beyond {ends}",
            seen=self,
        )

    def wait_until_caught_up(self, ends: dict[int, int]) -> None:
        """Wait until everything is read and, except for rejected commits, committed."""
        wait_until(lambda: is_caught_up(self.histories, ends), f"commits up to {ends}", seen=self)

    def stop_all(self) -> None:
        """Stop all running members at the same time."""
        leaving = self.running
        for member in leaving:
            member.send_stop_signal()
        for member in leaving:
            member.wait_until_left()

    def problems(self, ends: dict[int, int], *, may_rewind: bool = False) -> list[str]:
        return problems(
            self.histories,
            ends,
            batch_records_max=BATCH_RECORDS_MAX,
            finishes_before_revoke=self.client.finishes_before_revoke,
            may_rewind=may_rewind,
        )

    def reset_moved_count(self) -> None:
        """Make `count_moved` count from now on."""
        self._revoked_counts_before = self._revoked_counts()

    def count_moved(self) -> int:
        """Count the partitions revoked from running members since `reset_moved_count`."""
        now, before = self._revoked_counts(), self._revoked_counts_before
        return sum(now[member.name] - before.get(member.name, 0) for member in self.running)

    def _is_stable(self) -> bool:
        shares = [member.owned for member in self.running]
        sizes = [len(share) for share in shares]
        return (
            sum(sizes) == len(self._partitions)
            and set().union(*shares) == self._partitions
            and max(sizes) - min(sizes) <= 1
        )

    def _revoked_counts(self) -> dict[str, int]:
        return {
            history.name: sum(
                len(event.partitions)
                for event in history.events
                if isinstance(event, Revoked | Lost)
            )
            for history in self.histories
        }

    def __str__(self) -> str:
        return "; ".join(
            f"{member.name} {'owns' if member.is_running else 'owned'} {sorted(member.owned)}"
            for member in self.members
        )

    def describe(self) -> str:
        """Describe all events except reads and commits, and the logs, for failed tests."""
        lines = {
            f"{event.at_ms % 1_000_000:06} {history.name} {str(event)[:150]}"
            for history in self.histories
            for event in history.events
            if not isinstance(event, Read | Committed)
        }
        logs = [f"--- {member.name}\n{member.logged()}" for member in self.members]
        return "\n".join([*sorted(lines), *logs])
