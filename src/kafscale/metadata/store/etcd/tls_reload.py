"""Connects to etcd again when its TLS files change, so that a new certificate needs no restart.

Invariants: files that no member or OpenSSL accepts replace nothing; they are logged once, and tried
again until they work. Requests that are in flight end on the connection on which they were sent.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

import grpc

from kafscale.config.sections.etcd import Etcd
from kafscale.config.watched_files import WatchedFiles
from kafscale.errors import KafscaleError
from kafscale.metadata.store.etcd.member import Member, open_channel
from kafscale.metadata.store.etcd.members import Members
from kafscale.net import tls_files
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

CHECK_SECONDS: Final = 10.0
"""How often the files are checked: certificates are renewed days before they expire."""


class TlsFiles:
    """The CA certificates, the client certificate and its key."""

    def __init__(self, settings: Etcd) -> None:
        self.dial_timeout_ms: Final = settings.dial_timeout_ms
        tls = settings.tls
        self._files = (tls.ca_file, tls.cert_file, tls.key_file)
        self._watched = WatchedFiles(file for file in self._files if file)

    def changed(self) -> bool:
        """True if a file has changed since the previous call."""
        return self._watched.changed()

    def load(self) -> grpc.ChannelCredentials:
        """Raises `ConfigError` if they are unusable: gRPC only reports unreachable members."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls_files.load_client_files(context, "etcd.tls", *self._files)
        # Without CA certificates gRPC uses its built-in list.
        return grpc.ssl_channel_credentials(*tls_files.read_client_files(*self._files))


class TlsReload:
    """Replaces the channels of all members when the files have changed."""

    def __init__(
        self,
        files: TlsFiles,
        members: Members,
        ping: Callable[[Member, float], Awaitable[Member]],
        request_seconds: float,
        *,
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        self._files = files
        self._members = members
        self._ping = ping
        self._request_seconds = request_seconds
        self._check_seconds = check_seconds
        self._is_outdated = False
        """Whether the files differ from those in use."""
        self._problem = ""
        """What was logged about files that do not work."""
        self._closing: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Check the files until cancelled."""
        try:
            while True:
                await asyncio.sleep(self._check_seconds)
                if self._files.changed():
                    self._is_outdated, self._problem = True, ""
                if self._is_outdated:
                    await self._reload()
        finally:
            for closing in self._closing:
                closing.cancel()

    async def _reload(self) -> None:
        try:
            await self._replace_channels()
        except KafscaleError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                logger.error("etcd certificate not reloaded", reason=self._problem)
        else:
            self._is_outdated = False
            logger.info("etcd certificate reloaded")

    async def _replace_channels(self) -> None:
        """Raises a KafscaleError if the files do not work at any member."""
        credentials = self._files.load()
        await self._check(credentials)
        for member in self._members.all:
            former = member.use(self._open(member, credentials))
            closing = asyncio.create_task(former.close(self._request_seconds))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _check(self, credentials: grpc.ChannelCredentials) -> None:
        for member in self._members.all:
            channel = self._open(member, credentials)
            try:
                await self._ping(Member(member.endpoint, channel), self._request_seconds)
            except KafscaleError as error:
                problem = error
            else:
                return
            finally:
                await channel.close()
        raise problem

    def _open(self, member: Member, credentials: grpc.ChannelCredentials) -> grpc.aio.Channel:
        return open_channel(member.endpoint, self._files.dial_timeout_ms, credentials)
