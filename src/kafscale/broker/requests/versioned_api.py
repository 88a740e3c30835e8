"""`VersionedApi`: an API in one version, with everything that is known before a request arrives.

One dictionary lookup by the first four bytes of a request then finds everything that serving it
needs. `dispatcher` uses it.
"""

from typing import Any

from kafscale.broker.requests.route import Route
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.codec.codec import Buffer
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.frame import frame

Parts = list[Buffer]
"""An encoded response, ready to send; empty if the request expects none."""


class VersionedApi:
    """Decodes the requests of an API in one version, and encodes their responses."""

    __slots__ = (
        "_decode_at",
        "_encode",
        "_request_header_version",
        "_response_header_version",
        "api",
        "handle",
        "route",
        "traffic",
        "version",
    )

    def __init__(self, route: Route, version: int, metrics: Metrics) -> None:
        api: Api[Any, Any] = route.api
        self.api = api
        self.version = version
        self.route = route
        self.handle = route.handle
        self._decode_at = api.request_codec(version).decode_at
        self._encode = api.response_codec(version).encode
        self._request_header_version = api.request_header_version(version)
        self._response_header_version = api.response_header_version(version)
        self.traffic = metrics.requests(api.name, version)

    def decode(self, request_frame: memoryview) -> tuple[headers.RequestHeader, Any]:
        header, position = headers.decode_request_header(
            request_frame, self._request_header_version
        )
        # Bytes after the end of a request are ignored, as in Kafka. librdkafka relies on it: to
        # request all topics, it writes the null of a non-compact array, which is 3 bytes longer.
        request, _ = self._decode_at(request_frame, position)
        return header, request

    def encode(self, correlation_id: int, response: Message) -> Parts:
        header = headers.encode_response_header(correlation_id, self._response_header_version)
        return frame(header, self._encode(response))
