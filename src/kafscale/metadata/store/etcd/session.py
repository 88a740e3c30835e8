"""`Session`: the credentials for requests to etcd, if a user is configured.

Invariants: the password is sent in one request and never in an error message. If many requests find
the token invalid, one of them authenticates again. A token is valid at all members until it is
unused for some minutes or the members restart.
"""

import asyncio
from typing import Final

from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.etcd.errors import EtcdError
from kafscale.metadata.store.etcd.member import Member, Metadata
from kafscale.metadata.store.etcd.methods import AUTHENTICATE
from kafscale.observability.logging import get_logger

_HAS_LEADER: Final = (("hasleader", "true"),)
"""Makes a member without a leader fail a request instead of blocking it."""

_NOT_ENABLED: Final = "authentication is not enabled"

_log = get_logger(__name__)


class Session:
    """The metadata of every request."""

    def __init__(self, username: str, password: str) -> None:
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
        request = rpc.AuthenticateRequest(name=self._username, password=self._password)
        try:
            response = await member.call(AUTHENTICATE, request, _HAS_LEADER, seconds)
        except EtcdError as error:
            if _NOT_ENABLED not in str(error):
                raise
            _log.warning("etcd authentication is disabled", endpoint=member.endpoint)
            return _HAS_LEADER
        return (*_HAS_LEADER, ("token", response.token))
