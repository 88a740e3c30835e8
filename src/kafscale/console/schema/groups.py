"""Consumer groups: members, offsets, lag and resets."""

from typing import Literal

from kafscale.admin.cluster.listing import GroupSummary
from kafscale.admin.groups import reset
from kafscale.console.schema.base import RequestModel, ResponseModel, Series

ResetRow = reset.ResetRow


class Group(GroupSummary, frozen=True):
    """A group with the lag of its members."""

    topics: list[str]
    lag: int | None
    """Over all partitions with a committed offset."""


class GroupQuery(RequestModel):
    search: str = ""
    state: str = ""
    page: int = 1
    size: int = 50


class GroupPage(ResponseModel):
    as_of_ms: int
    total: int
    page: int
    size: int
    items: list[Group]


class Member(ResponseModel):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    topics: list[str]
    assignment: dict[str, list[int]]


class GroupOffset(ResponseModel):
    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    metadata: str | None
    member_id: str | None
    client_id: str | None
    host: str | None


class GroupDetail(ResponseModel):
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
    """One series per topic, as far back as the console remembers."""


class ResetTo(RequestModel):
    kind: Literal["earliest", "latest", "offset", "shift", "time", "current"]
    number: int = 0
    """The offset, the shift in records, or milliseconds since 1970."""


class Reset(RequestModel):
    to: ResetTo
    topics: dict[str, list[int]] | None = None
    """Topics with their partitions, none meaning all; null: all that the group has committed."""
    execute: bool = False


class ResetPlan(ResponseModel):
    executed: bool
    rows: list[ResetRow]


class DeleteGroup(RequestModel):
    confirm: str
