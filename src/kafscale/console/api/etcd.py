"""The members of etcd, and the snapshots of it, over `admin.etcd` and `admin.snapshots`.

What is out of reach is told beside what is not: a page about trouble has to show something.
"""

import asyncio
from typing import Any, Final

from kafscale.admin.etcd import members as etcd_members
from kafscale.admin.etcd.backups import listing
from kafscale.admin.etcd.backups.location import PREFIX, Place
from kafscale.config import Config
from kafscale.console.api.route import Call, Route
from kafscale.console.context import Room
from kafscale.console.schema.etcd import EtcdMember, EtcdState, Snapshot, TakeSnapshot
from kafscale.errors import (
    ConfigError,
    DuplicateResourceError,
    InvalidRequestError,
    KafscaleError,
    ObjectExistsError,
)

SECONDS_MAX: Final = 10.0
SNAPSHOTS_MAX: Final = 500


async def show(room: Room, _: Call) -> EtcdState:
    config = room.config
    if not config.etcd.endpoints:
        return EtcdState(
            is_configured=False, members=[], snapshots=[], snapshots_at=None, problem=None
        )
    (members, problem), (snapshots, other) = await asyncio.gather(
        _members(config), _snapshots(config)
    )
    return EtcdState(
        is_configured=True,
        members=members,
        snapshots=snapshots,
        snapshots_at=_place(config),
        problem=problem or other,
    )


async def take(room: Room, call: Call) -> Snapshot:
    asked: TakeSnapshot = call.body
    if asked.retain < 0:
        raise InvalidRequestError("retain is how many snapshots to keep; 0 keeps all")
    if not room.config.etcd.endpoints:
        raise ConfigError("there is no etcd: the metadata of this broker are in a file beside it")
    try:
        taken = await listing.take(room.config, Place(), asked.retain, lambda *_: None)
    except ObjectExistsError:
        raise DuplicateResourceError(
            "a snapshot was taken in this very second, of the same revision; it is in the list"
        ) from None
    return _snapshot(taken)


async def _members(config: Config) -> tuple[list[EtcdMember], str | None]:
    try:
        async with asyncio.timeout(SECONDS_MAX):
            found = await etcd_members.status(config.etcd)
    except TimeoutError:
        return [], f"etcd did not answer within {SECONDS_MAX:.0f} seconds"
    except KafscaleError as error:
        return [], str(error)
    return [_member(each) for each in found["members"]], None


async def _snapshots(config: Config) -> tuple[list[Snapshot], str | None]:
    if not config.s3.bucket:
        return [], None
    try:
        async with asyncio.timeout(SECONDS_MAX):
            found = await listing.listed(config, Place(), verify=False, progress=lambda *_: None)
    except TimeoutError:
        return [], f"the snapshots could not be listed within {SECONDS_MAX:.0f} seconds"
    except KafscaleError as error:
        return [], str(error)
    return [_snapshot(each) for each in found[: -SNAPSHOTS_MAX - 1 : -1]], None


def _place(config: Config) -> str | None:
    s3 = config.s3
    return f"s3://{s3.bucket}/{PREFIX}/{s3.namespace}" if s3.bucket else None


def _member(told: dict[str, Any]) -> EtcdMember:
    return EtcdMember(
        name=told["name"],
        endpoint=told["endpoint"],
        role=told["role"],
        version=told["version"],
        database_bytes=told["databaseBytes"],
        used_bytes=told["usedBytes"],
        revision=told["revision"],
        alarms=told["alarms"],
        problem="; ".join(told["problems"]) or None,
    )


def _snapshot(told: dict[str, Any]) -> Snapshot:
    return Snapshot(
        key=told["key"],
        taken_at=told["takenAt"],
        age_seconds=told["ageSeconds"],
        size_bytes=told["sizeBytes"],
        revision=told["revision"],
        etcd_version=told.get("etcdVersion"),
        verified=told["verified"],
        problem=told.get("problem"),
    )


ROUTES: Final = (
    Route("GET", "/etcd", show, gives=EtcdState),
    Route("POST", "/etcd/snapshots", take, takes=TakeSnapshot, gives=Snapshot, tags=("slow",)),
)
