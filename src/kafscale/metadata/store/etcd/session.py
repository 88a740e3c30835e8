"""Who we are to etcd: nobody, or a user with a token that proves it.

The laws: the password goes into one request and into no error; of many who find the token refused,
one signs in again. A token is good at all members, until it is not used for some minutes or the
members restart.
"""

import asyncio
from typing import Final

from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.etcd.errors import EtcdError
from kafscale.metadata.store.etcd.member import Member, Metadata
from kafscale.metadata.store.etcd.methods import AUTHENTICATE
from kafscale.observability.logging import get_logger

_HAS_LEADER: Final = (("hasleader", "true"),)
"""A member that is cut off from the others is to say so, instead of leaving us waiting."""

_NOT_ENABLED: Final = "authentication is not enabled"

_log = get_logger(__name__)


class Session:
    """The metadata that goes with every request."""

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password
        self._metadata: Metadata | None = None if username else _HAS_LEADER
        self._authenticating = asyncio.Lock()

    async def metadata(self, member: Member, seconds: float) -> Metadata:
        """What to send along, after signing in if that has to be done first."""
        if self._metadata is not None:
            return self._metadata
        async with self._authenticating:
            if self._metadata is None:
                self._metadata = await self._authenticate(member, seconds)
            return self._metadata

    def forget(self, metadata: Metadata) -> None:
        """Sign in again before the next request, unless that has been done since."""
        if self._username and self._metadata is metadata:
            self._metadata = None

    async def _authenticate(self, member: Member, seconds: float) -> Metadata:
        request = rpc.AuthenticateRequest(name=self._username, password=self._password)
        try:
            response = await member.call(AUTHENTICATE, request, _HAS_LEADER, seconds)
        except EtcdError as error:
            if _NOT_ENABLED not in str(error):
                raise
            _log.warning("etcd lets everybody in", endpoint=member.endpoint)
            return _HAS_LEADER
        return (*_HAS_LEADER, ("token", response.token))
