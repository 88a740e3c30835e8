"""A watch on etcd, which outlives the members that it is kept at.

The laws: the changes of one commit come in one list, and no two commits in the same; a watch that
has to move goes on after the last commit that it has told of, so that it tells nothing twice and
leaves nothing out. It ends in an error only where no member takes it.
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
from kafscale.metadata.store.etcd.methods import WATCH

WatchStream = Stream[rpc.WatchRequest, rpc.WatchResponse]


async def watch(
    client: Client, prefix: str, after_revision: int
) -> AsyncGenerator[list[Event], None]:
    """See `MetadataStore.watch`."""
    assert prefix, "a prefix is never empty"
    told = after_revision
    while True:
        member, stream = await _open(client, prefix, told + 1)
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
                        told = events[0].mod_revision
                        yield events
                    if not response.events and not response.fragment:
                        # A sign of life: what is not told by now has not happened.
                        told = max(told, response.header.revision)
            except EtcdError as error:
                client.members.mark_failed(member, str(error))


async def _open(client: Client, prefix: str, start_revision: int) -> tuple[Member, WatchStream]:
    """A watch that a member has taken, and who that is."""
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
            raise EtcdError(
                member.endpoint, "no response in time", ErrorKind.UNKNOWN_OUTCOME
            ) from None
        except BaseException:
            stream.close()
            raise
        return member, stream

    return await client.attempt(begin, idempotent=True)


def _check(member: Member, response: rpc.WatchResponse) -> None:
    if not response.canceled:
        return
    reason = response.cancel_reason or "it ended the watch"
    error = to_etcd_error(member.endpoint, grpc.StatusCode.UNKNOWN, reason)
    if error.kind is ErrorKind.REJECTED:
        # That is what etcd says to a watch, and only to a watch, whose token it does not know.
        error.kind = ErrorKind.INVALID_TOKEN
    raise error


def _compacted(prefix: str, revision: int) -> Event:
    # Of this very revision etcd still knows what was put, but not what was deleted.
    return Event(EventKind.COMPACTED, prefix, b"", revision)


class _Commits:
    """Puts together what etcd tells in other portions: many commits at once, or one in pieces."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def take(self, response: rpc.WatchResponse) -> Iterator[list[Event]]:
        """The commits that are whole by now."""
        for change in response.events:
            event = protobuf.event(change)
            if self._events and event.mod_revision != self._events[0].mod_revision:
                yield self._events
                self._events = []
            self._events.append(event)
        if self._events and not response.fragment:
            yield self._events
            self._events = []
