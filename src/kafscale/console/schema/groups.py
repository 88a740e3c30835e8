"""Consumer groups: who reads, how far they are, and moving them."""

from typing import Literal

from kafscale.console.schema.base import Asked, Series, View


class Group(View):
    group: str
    type: str
    state: str
    protocol_type: str
    member_count: int | None
    topics: list[str]
    lag: int | None
    """Over all partitions that it has committed something of."""


class GroupQuery(Asked):
    search: str = ""
    state: str = ""
    page: int = 1
    size: int = 50


class GroupPage(View):
    as_of_ms: int
    total: int
    page: int
    size: int
    items: list[Group]


class Member(View):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    topics: list[str]
    assignment: dict[str, list[int]]


class GroupOffset(View):
    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    metadata: str | None
    member_id: str | None
    client_id: str | None
    host: str | None


class GroupDetail(View):
    group: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    epoch: int | None
    lag: int | None
    members: list[Member]
    offsets: list[GroupOffset]
    lag_history: list[Series]
    """One line a topic, as far back as the console remembers."""


class ResetTo(Asked):
    kind: Literal["earliest", "latest", "offset", "shift", "time", "current"]
    number: int = 0
    """The offset, how many to shift by, or milliseconds since 1970."""


class Reset(Asked):
    to: ResetTo
    topics: dict[str, list[int]] | None = None
    """Topics with some of their partitions, none meaning all; null: all that it committed."""
    execute: bool = False


class ResetRow(View):
    topic: str
    partition: int
    before: int | None
    after: int
    start_offset: int
    end_offset: int
    note: str | None


class ResetPlan(View):
    executed: bool
    rows: list[ResetRow]


class DeleteGroup(Asked):
    confirm: str
