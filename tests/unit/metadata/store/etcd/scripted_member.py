"""An etcd member whose responses follow a script."""

import asyncio

from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.etcd.errors import ErrorKind, EtcdError
from kafscale.metadata.store.etcd.protobuf import AUTHENTICATE

SILENT = "silent"
LATENCY_S = 0.001


class ScriptedMember:
    """Handles each request by the next item of its script: an `ErrorKind` or a timeout.

    After the last item all requests succeed.
    """

    def __init__(self, endpoint, *script, connected=True):
        self.endpoint = endpoint
        self.script = list(script)
        self.requests = []
        self.cancel_count = 0
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
            token = f"token {len(self.requests)}"
            self.requests.append(("authenticate", request.name))
            await asyncio.sleep(LATENCY_S)
            return rpc.AuthenticateResponse(token=token)
        self.requests.append((dict(metadata).get("token"), round(seconds, 3)))
        item = self.script.pop(0) if self.script else None
        await asyncio.sleep(LATENCY_S)
        match item:
            case ErrorKind() as kind:
                raise EtcdError(self.endpoint, kind.value, kind)
            case "silent":
                await asyncio.sleep(seconds - LATENCY_S)
                raise EtcdError(self.endpoint, "timed out", ErrorKind.UNKNOWN_OUTCOME)
        return method.response()

    def cancel_streams(self):
        self.cancel_count += 1

    async def close(self):
        pass
