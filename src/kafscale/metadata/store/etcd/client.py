"""Sends authenticated requests to etcd members, with retries where these are safe.

Invariants:

1. Writes are sent again only if etcd certainly has not applied them (`ErrorKind.NOT_APPLIED`), or
   if they were not sent at all. The response is awaited for the whole request timeout.
2. Idempotent requests get a share of that timeout at each member, until one responds.
3. No call takes longer than the request timeout.
4. The password is sent in one request and never in an error message. If many requests find the
   token invalid, one of them authenticates again. A token is valid at all members until it is
   unused for some minutes or the members restart.

Lease operations change state but count as idempotent: a lease that is granted twice expires, and a
lease that is revoked twice ends once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import ConfigError, StoreUnavailableError
from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.etcd.errors import ErrorKind, EtcdError
from kafscale.metadata.store.etcd.member import Member, Metadata, address, open_channel
from kafscale.metadata.store.etcd.members import Members
from kafscale.metadata.store.etcd.protobuf import AUTHENTICATE, RANGE, Method, Request, Response
from kafscale.metadata.store.etcd.tls_reload import TlsFiles, TlsReload
from kafscale.observability.logging import get_logger

Result = TypeVar("Result")
Attempt = Callable[[Member, Metadata, float], Awaitable[Result]]
"""An action at a member, with the metadata to send and the timeout in seconds."""

_SHARES: Final = 4
"""How many unresponsive members an idempotent request survives: more than a cluster can lose."""

_RETRY_PAUSE_S: Final = 0.1
"""The pause after all members have failed, for example during a leader election."""

_AUTHENTICATIONS_MAX: Final = 2

_HAS_LEADER: Final = (("hasleader", "true"),)
"""Makes a member without a leader fail a request instead of blocking it."""

_NOT_ENABLED: Final = "authentication is not enabled"

logger = get_logger(__name__)


class Session:
    """The metadata of every request, with a token if a user is configured."""

    def __init__(self, username: str, password: Callable[[], str]) -> None:
        """`password` returns the current password; it is called for every authentication."""
        self._username = username
        self._password = password
        self._metadata: Metadata | None = None if username else _HAS_LEADER
        self._authenticating = asyncio.Lock()

    async def metadata(self, member: Member, seconds: float) -> Metadata:
        """Return the metadata, after authentication if that is needed."""
        if self._metadata is not None:
            return self._metadata
        async with self._authenticating:
            if self._metadata is None:
                self._metadata = await self._authenticate(member, seconds)
            return self._metadata

    def forget(self, metadata: Metadata) -> None:
        """Discard a token, so that the next request authenticates again."""
        if self._username and self._metadata is metadata:
            self._metadata = None

    async def _authenticate(self, member: Member, seconds: float) -> Metadata:
        request = rpc.AuthenticateRequest(name=self._username, password=self._password())
        try:
            response = await member.call(AUTHENTICATE, request, _HAS_LEADER, seconds)
        except EtcdError as error:
            if _NOT_ENABLED not in str(error):
                raise
            logger.warning("etcd authentication is disabled", endpoint=member.endpoint)
            return _HAS_LEADER
        return (*_HAS_LEADER, ("token", response.token))


class Client:
    """Sends authenticated requests to one of the members."""

    def __init__(self, members: Members, session: Session, request_timeout_ms: int) -> None:
        self.members: Final = members
        self._session = session
        self._request_s = request_timeout_ms / 1000
        self._reloading: asyncio.Task[None] | None = None

    def reload(self, files: TlsFiles) -> None:
        """Connect again whenever the files change, until the client is closed."""
        reload = TlsReload(files, self.members, self.ping, self._request_s)
        self._reloading = asyncio.create_task(reload.run(), name="reload etcd certificates")

    async def close(self) -> None:
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.wait([self._reloading])
        await self.members.close()

    async def call_idempotent(
        self, method: Method[Request, Response], request: Request
    ) -> Response:
        """Send a request that may be repeated."""
        return await self.attempt(
            lambda member, metadata, seconds: member.call(method, request, metadata, seconds),
            idempotent=True,
        )

    async def call_once(self, method: Method[Request, Response], request: Request) -> Response:
        """Send a request that must not be repeated; after a failure it may have been applied."""
        return await self.attempt(
            lambda member, metadata, seconds: member.call(method, request, metadata, seconds),
            idempotent=False,
        )

    async def attempt(self, attempt: Attempt[Result], *, idempotent: bool) -> Result:
        """Run an action at a member, and at others if it fails and a retry is safe."""
        try:
            return await self._attempt(attempt, idempotent=idempotent)
        except asyncio.CancelledError:
            # Closing a channel cancels its calls, but not the tasks that await them.
            task = asyncio.current_task()
            if self.members.closed and not (task and task.cancelling()):
                raise StoreUnavailableError("the metadata store is closed") from None
            raise

    async def _attempt(self, attempt: Attempt[Result], *, idempotent: bool) -> Result:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._request_s
        share_s = self._request_s / _SHARES
        failures = authentications = 0
        while True:
            member = await self.members.connected(deadline)
            metadata: Metadata | None = None
            try:
                metadata = await self._session.metadata(member, share_s)
                remaining_s = max(deadline - loop.time(), 0)
                seconds = min(remaining_s, share_s) if idempotent else remaining_s
                result = await attempt(member, metadata, seconds)
            except EtcdError as error:
                match error.kind:
                    case ErrorKind.INVALID_TOKEN if (
                        metadata and authentications < _AUTHENTICATIONS_MAX
                    ):
                        self._session.forget(metadata)
                        authentications += 1
                        continue
                    case ErrorKind.NOT_APPLIED:
                        may_repeat = True
                    case ErrorKind.UNKNOWN_OUTCOME:
                        may_repeat = idempotent or metadata is None
                    case _:
                        raise
                self.members.mark_failed(member, str(error))
                if not may_repeat or loop.time() >= deadline:
                    raise
            else:
                self.members.mark_healthy(member)
                return result
            failures += 1
            if failures >= len(self.members):
                await asyncio.sleep(_RETRY_PAUSE_S)

    async def check(self, seconds: float) -> None:
        """Ping all members and prefer the first that responds; raises if none does."""
        tries = [asyncio.ensure_future(self.ping(m, seconds)) for m in self.members.all]
        errors = []
        try:
            for completed in asyncio.as_completed(tries):
                try:
                    self.members.prefer(await completed)
                except EtcdError as error:
                    errors.append(error)
                else:
                    return
        finally:
            for attempt in tries:
                attempt.cancel()
            await asyncio.gather(*tries, return_exceptions=True)
        raise max(errors, key=lambda error: error.kind is ErrorKind.REJECTED)

    async def ping(self, member: Member, seconds: float) -> Member:
        """Send a request that changes nothing; raises `EtcdError` if it fails."""
        metadata = await self._session.metadata(member, seconds)
        await member.call(RANGE, rpc.RangeRequest(key=b"/", keys_only=True), metadata, seconds)
        return member


def open_client(endpoints: Iterable[str], settings: Etcd) -> Client:
    """Create the client of some members without connecting; call this in a running event loop."""
    files = TlsFiles(settings) if settings.tls.enabled else None
    credentials = files.load() if files is not None else None
    members = [
        Member(endpoint, open_channel(endpoint, settings.dial_timeout_ms, credentials))
        for endpoint in dict.fromkeys(map(address, endpoints))
    ]
    session = Session(settings.username, partial(_password, settings))
    client = Client(Members(members), session, settings.request_timeout_ms)
    if files is not None:
        client.reload(files)
    return client


def _password(settings: Etcd) -> str:
    """The password as it is now; a file is read for every authentication."""
    if not settings.password_file:
        return settings.password
    try:
        return Path(settings.password_file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"etcd.passwordFile: cannot read {settings.password_file} ({error}); use a text file"
            " that this process may read"
        ) from None
