"""An etcd watch that survives the loss of members.

Invariants: the changes of one commit are in one list, and no list contains changes of two commits.
A watch that moves to another member resumes after the last reported commit, so that no change is
reported twice or missed. It fails only if no member accepts it.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing

import grpc

from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.base import Event, EventKind
from kafscale.metadata.store.etcd import protobuf
from kafscale.metadata.store.etcd.client import Client
from kafscale.metadata.store.etcd.errors import ErrorKind, EtcdError, to_etcd_error
from kafscale.metadata.store.etcd.member import Member, Metadata, Stream
from kafscale.metadata.store.etcd.protobuf import WATCH

WatchStream = Stream[rpc.WatchRequest, rpc.WatchResponse]


async def watch(
    client: Client, prefix: str, after_revision: int
) -> AsyncGenerator[list[Event], None]:
    """See `MetadataStore.watch`."""
    assert prefix, "the prefix is empty"
    reported = after_revision
    while True:
        member, stream = await _open(client, prefix, reported + 1)
        commits = _Commits()
        with closing(stream):
            try:
                while True:
                    response = await stream.receive()
                    if response.compact_revision:
                        yield [_compacted(prefix, response.compact_revision)]
                        return
                    _check(member, response)
                    for events in commits.take(response):
                        reported = events[0].mod_revision
                        yield events
                    if not response.events and not response.fragment:
                        # A progress notification: all changes up to this revision have been
                        # reported.
                        reported = max(reported, response.header.revision)
            except EtcdError as error:
                client.members.mark_failed(member, str(error))


async def _open(client: Client, prefix: str, start_revision: int) -> tuple[Member, WatchStream]:
    """Open a watch at a member; return both."""
    first, end = protobuf.interval(prefix)
    request = rpc.WatchRequest(
        create_request=rpc.WatchCreateRequest(
            key=first,
            range_end=end,
            start_revision=start_revision,
            progress_notify=True,
            fragment=True,
        )
    )

    async def begin(
        member: Member, metadata: Metadata, seconds: float
    ) -> tuple[Member, WatchStream]:
        stream = member.stream(WATCH, metadata)
        try:
            async with asyncio.timeout(seconds):
                await stream.send(request)
                _check(member, await stream.receive())
        except TimeoutError:
            stream.close()
            raise EtcdError(member.endpoint, "timed out", ErrorKind.UNKNOWN_OUTCOME) from None
        except BaseException:
            stream.close()
            raise
        return member, stream

    return await client.attempt(begin, idempotent=True)


def _check(member: Member, response: rpc.WatchResponse) -> None:
    if not response.canceled:
        return
    reason = response.cancel_reason or "the watch was canceled"
    error = to_etcd_error(member.endpoint, grpc.StatusCode.UNKNOWN, reason)
    if error.kind is ErrorKind.REJECTED:
        # etcd reports an invalid token this way to watches only.
        error.kind = ErrorKind.INVALID_TOKEN
    raise error


def _compacted(prefix: str, revision: int) -> Event:
    # etcd still has the puts of this revision, but not its deletes.
    return Event(EventKind.COMPACTED, prefix, b"", revision)


class _Commits:
    """Regroups watch responses, which contain several commits or part of one."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def take(self, response: rpc.WatchResponse) -> Iterator[list[Event]]:
        """Return the complete commits."""
        for change in response.events:
            event = protobuf.event(change)
            if self._events and event.mod_revision != self._events[0].mod_revision:
                yield self._events
                self._events = []
            self._events.append(event)
        if self._events and not response.fragment:
            yield self._events
            self._events = []
