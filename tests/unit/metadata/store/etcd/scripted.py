"""A member of etcd that does what a script says, and remembers what it was asked."""

import asyncio

from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.etcd.errors import ErrorKind, EtcdError
from kafscale.metadata.store.etcd.methods import AUTHENTICATE

SILENT = "silent"
LATENCY_S = 0.001


class ScriptedMember:
    """Answers each request by the next word of its script: a verdict to fail with, or silence.

    When the script is over, everything succeeds.
    """

    def __init__(self, endpoint, *script, connected=True):
        self.endpoint = endpoint
        self.script = list(script)
        self.asked = []
        self.left = 0
        self._connected = asyncio.Event()
        if connected:
            self._connected.set()

    def is_connected(self):
        return self._connected.is_set()

    async def connect(self):
        await self._connected.wait()

    def come_up(self):
        self._connected.set()

    async def call(self, method, request, metadata, seconds):
        if method is AUTHENTICATE:
            token = f"token {len(self.asked)}"
            self.asked.append(("sign in", request.name))
            await asyncio.sleep(LATENCY_S)
            return rpc.AuthenticateResponse(token=token)
        self.asked.append((dict(metadata).get("token"), round(seconds, 3)))
        word = self.script.pop(0) if self.script else None
        await asyncio.sleep(LATENCY_S)
        match word:
            case ErrorKind() as verdict:
                raise EtcdError(self.endpoint, verdict.value, verdict)
            case "silent":
                await asyncio.sleep(seconds - LATENCY_S)
                raise EtcdError(self.endpoint, "no answer in time", ErrorKind.UNKNOWN_OUTCOME)
        return method.response()

    def cancel_streams(self):
        self.left += 1

    async def close(self):
        pass
