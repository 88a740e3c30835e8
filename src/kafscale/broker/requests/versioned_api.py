"""`Endpoint`: an API in one version, with all about it that is known before a request comes.

Why: one look into a dictionary then leads from the first four bytes of a request to everything that
serving it needs. What is done with it is left to `dispatch`.
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
"""An answer as it is to be sent; empty where none is due."""


class Endpoint:
    """Reads the requests of an API in one version, and writes their answers."""

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

    def read(self, request_frame: memoryview) -> tuple[headers.RequestHeader, Any]:
        header, position = headers.decode_request_header(
            request_frame, self._request_header_version
        )
        # What follows the end of a request is ignored, as Kafka does. librdkafka counts on it: to
        # ask for all topics, it writes the null of an old array, which is three bytes longer.
        request, _ = self._decode_at(request_frame, position)
        return header, request

    def write(self, correlation_id: int, response: Message) -> Parts:
        header = headers.encode_response_header(correlation_id, self._response_header_version)
        return frame(header, self._encode(response))
