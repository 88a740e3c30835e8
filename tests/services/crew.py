"""All members of one consumer group, those included that have gone.

    with Crew(client, orders, directory, partitions=12) as crew:
        first, second = crew.hire(2)
        crew.settle()

Whoever is still there when the block ends is killed.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec

from services.group_history import Life, committed, is_caught_up, problems
from services.group_member import Client, Member
from services.member_events import Committed, Lost, Read, Revoked
from services.members.orders import BATCH_RECORDS_MAX, Orders
from services.waiting import wait_until


class Crew:
    """Members of one client library, unless another is asked for, in one group on one topic."""

    def __init__(self, client: Client, orders: Orders, directory: Path, *, partitions: int) -> None:
        self.client = client
        self.group = orders.group
        self.members: list[Member] = []
        self._orders = orders
        self._directory = directory
        self._partitions = set(range(partitions))
        self._stack = ExitStack()
        self._given_up_before: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def present(self) -> list[Member]:
        return [member for member in self.members if member.is_running]

    @property
    def lives(self) -> list[Life]:
        return [member.life for member in self.members]

    def hire(
        self, count: int = 1, *, client: Client | None = None, instance_id: str | None = None
    ) -> list[Member]:
        """Start new members; with an instance id, each comes in place of the one before."""
        client = client or self.client
        orders = msgspec.structs.replace(
            self._orders, strategy=client.strategy, instance_id=instance_id
        )
        hired = []
        for _ in range(count):
            name = f"member-{len(self.members)}"
            member = Member(client, name, orders, self._directory)
            hired.append(self._stack.enter_context(member))
            self.members.append(member)
        return hired

    def settle(self, seconds_max: float = 40) -> float:
        """Wait until all partitions are shared out evenly, each to one; the seconds it took."""
        return wait_until(self._is_settled, "a settled group", seconds_max=seconds_max, seen=self)

    def get_on(self, ends: dict[int, int]) -> None:
        """Wait until more than this is committed: what a rebalance had refused is behind them."""
        wait_until(
            lambda: all(committed(self.lives).get(p, 0) > end for p, end in ends.items()),
            f"commits beyond {ends}",
            seen=self,
        )

    def catch_up(self, ends: dict[int, int]) -> None:
        """Wait until everything is read and, but for what was refused, committed."""
        wait_until(lambda: is_caught_up(self.lives, ends), f"commits up to {ends}", seen=self)

    def disband(self) -> None:
        """Everybody leaves, all at the same time."""
        leaving = self.present
        for member in leaving:
            member.begin_to_leave()
        for member in leaving:
            member.finish_leaving()

    def problems(self, ends: dict[int, int], *, may_rewind: bool = False) -> list[str]:
        return problems(
            self.lives,
            ends,
            batch_records_max=BATCH_RECORDS_MAX,
            is_orderly=self.client.is_orderly,
            may_rewind=may_rewind,
        )

    def mark(self) -> None:
        """From here on, `moved` counts."""
        self._given_up_before = self._given_up()

    def moved(self) -> int:
        """How many partitions were taken, since the mark, from members that are still there."""
        now, before = self._given_up(), self._given_up_before
        return sum(now[member.name] - before.get(member.name, 0) for member in self.present)

    def _is_settled(self) -> bool:
        shares = [member.owned for member in self.present]
        sizes = [len(share) for share in shares]
        return (
            sum(sizes) == len(self._partitions)
            and set().union(*shares) == self._partitions
            and max(sizes) - min(sizes) <= 1
        )

    def _given_up(self) -> dict[str, int]:
        return {
            life.name: sum(
                len(event.partitions) for event in life.events if isinstance(event, Revoked | Lost)
            )
            for life in self.lives
        }

    def __str__(self) -> str:
        return "; ".join(
            f"{member.name} {'has' if member.is_running else 'had'} {sorted(member.owned)}"
            for member in self.members
        )

    def told(self) -> str:
        """Everything but the records, for whoever wants to know what went wrong."""
        lines = {
            f"{event.at_ms % 1_000_000:06} {life.name} {str(event)[:150]}"
            for life in self.lives
            for event in life.events
            if not isinstance(event, Read | Committed)
        }
        logs = [f"--- {member.name}\n{member.logged()}" for member in self.members]
        return "\n".join([*sorted(lines), *logs])
