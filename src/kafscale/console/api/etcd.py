"""The members of etcd, and its snapshots.

What cannot be read is reported beside the rest, so that the page can always show something.
"""

import asyncio
from typing import Final

import msgspec

from kafscale.admin.etcd import members as etcd_members
from kafscale.admin.etcd.backups import listing
from kafscale.admin.etcd.backups.listing import PREFIX, SnapshotInfo, SnapshotLocation
from kafscale.admin.etcd.members import MemberInfo
from kafscale.config import Config
from kafscale.console.api.route import ApiContext, ApiRequest, Route
from kafscale.console.schema.cluster import EtcdMember, EtcdState, Snapshot, TakeSnapshot
from kafscale.errors import (
    ConfigError,
    DuplicateResourceError,
    InvalidRequestError,
    KafscaleError,
    ObjectExistsError,
)

SECONDS_MAX: Final = 10.0
SNAPSHOTS_MAX: Final = 500


async def show(context: ApiContext, _: ApiRequest) -> EtcdState:
    config = context.config
    if not config.etcd.endpoints:
        return EtcdState(
            is_configured=False, members=[], snapshots=[], snapshots_at=None, problem=None
        )
    (members, problem), (snapshots, snapshot_problem) = await asyncio.gather(
        _members(config), _snapshots(config)
    )
    return EtcdState(
        is_configured=True,
        members=members,
        snapshots=snapshots,
        snapshots_at=_snapshots_url(config),
        problem=problem or snapshot_problem,
    )


async def take(context: ApiContext, request: ApiRequest) -> Snapshot:
    body: TakeSnapshot = request.body
    if body.retain < 0:
        raise InvalidRequestError(
            "retain must not be negative: it is the number of snapshots to keep; 0 keeps all"
        )
    if not context.config.etcd.endpoints:
        raise ConfigError("there is no etcd: this broker keeps its metadata in a file")
    try:
        created = await listing.take_snapshot(
            context.config, SnapshotLocation(), body.retain, lambda *_: None
        )
    except ObjectExistsError:
        raise DuplicateResourceError(
            "a snapshot of the same revision was already taken in this second; see the list"
        ) from None
    return _snapshot(created)


async def _members(config: Config) -> tuple[list[EtcdMember], str | None]:
    try:
        async with asyncio.timeout(SECONDS_MAX):
            status = await etcd_members.status(config.etcd)
    except TimeoutError:
        return [], f"etcd did not respond within {SECONDS_MAX:.0f} seconds"
    except KafscaleError as error:
        return [], str(error)
    return [_member(each) for each in status.members], None


async def _snapshots(config: Config) -> tuple[list[Snapshot], str | None]:
    if not config.s3.bucket:
        return [], None
    try:
        async with asyncio.timeout(SECONDS_MAX):
            snapshots = await listing.list_snapshots(
                config, SnapshotLocation(), verify=False, progress=lambda *_: None
            )
    except TimeoutError:
        return [], f"the snapshots could not be listed within {SECONDS_MAX:.0f} seconds"
    except KafscaleError as error:
        return [], str(error)
    return [_snapshot(each) for each in snapshots[: -SNAPSHOTS_MAX - 1 : -1]], None


def _snapshots_url(config: Config) -> str | None:
    s3 = config.s3
    return f"s3://{s3.bucket}/{PREFIX}/{s3.namespace}" if s3.bucket else None


def _member(member: MemberInfo) -> EtcdMember:
    problem = "; ".join(member.problems) or None
    return msgspec.convert(msgspec.to_builtins(member) | {"problem": problem}, EtcdMember)


def _snapshot(info: SnapshotInfo) -> Snapshot:
    return msgspec.convert(msgspec.to_builtins(info), Snapshot)


ROUTES: Final = (
    Route("GET", "/etcd", show, response=EtcdState),
    Route("POST", "/etcd/snapshots", take, body=TakeSnapshot, response=Snapshot, tags=("slow",)),
)
