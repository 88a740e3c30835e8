"""`Api`: one API of the protocol, with its request, its response and its versions."""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from kafscale.errors import UnknownApiError
from kafscale.protocol.codec.codec import Codec, codec
from kafscale.protocol.codec.wire import Message

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

API_VERSIONS_KEY = 18
NEVER = 0x7FFF

REQUEST_ELEMENTS_MAX: Final = 20_000
"""How many structs and strings the arrays of a request may have: topics, partitions, groups. An
empty name is one byte long, and costs some ten microseconds."""


@dataclass(frozen=True)
class Api(Generic[Request, Response]):
    """An API key with its messages and versions.

    Generic, so that handlers of `Api[ProduceRequest, ProduceResponse]` are checked for both types.
    """

    key: int
    name: str
    request: type[Request]
    response: type[Response]
    version_max: int
    flexible_since: int = NEVER
    """The first version with compact lengths and tagged fields, in bodies and headers."""
    version_min: int = 0

    @property
    def versions(self) -> range:
        return range(self.version_min, self.version_max + 1)

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_since

    def request_header_version(self, version: int) -> int:
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        # An ApiVersions client does not know yet whether the broker supports flexible versions, so
        # the response header stays at v0 (KIP-511).
        return 1 if self.is_flexible(version) and self.key != API_VERSIONS_KEY else 0

    def request_codec(self, version: int) -> Codec[Request]:
        return codec(
            self.request,
            self._supported(version),
            flexible=self.is_flexible(version),
            elements_max=REQUEST_ELEMENTS_MAX,
        )

    def response_codec(self, version: int) -> Codec[Response]:
        return codec(self.response, self._supported(version), flexible=self.is_flexible(version))

    def _supported(self, version: int) -> int:
        if not self.version_min <= version <= self.version_max:
            raise UnknownApiError(
                f"{self.name} v{version} is not supported; "
                f"supported versions: {self.version_min} to {self.version_max}"
            )
        return version
