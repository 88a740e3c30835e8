"""`Api`: one row of the protocol, an API key with its request, its response and its versions."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from kafscale.errors import UnknownApiError
from kafscale.protocol.codec.codec import Codec, codec
from kafscale.protocol.codec.wire import Message

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

API_VERSIONS_KEY = 18
NEVER = 0x7FFF


@dataclass(frozen=True)
class Api(Generic[Request, Response]):
    """An API key: what is asked, what is answered, and in which versions.

    Generic, so that whoever handles `Api[ProduceRequest, ProduceResponse]` can be held to both
    types.
    """

    key: int
    name: str
    request: type[Request]
    response: type[Response]
    version_max: int
    flexible_since: int = NEVER
    """The first version with compact lengths and tag sections, in bodies and headers."""
    version_min: int = 0

    @property
    def versions(self) -> range:
        return range(self.version_min, self.version_max + 1)

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_since

    def request_header_version(self, version: int) -> int:
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        # A client that asks for ApiVersions cannot know yet whether we speak flexible versions, so
        # the header of that answer stays at 0 for ever (KIP-511).
        return 1 if self.is_flexible(version) and self.key != API_VERSIONS_KEY else 0

    def request_codec(self, version: int) -> Codec[Request]:
        return codec(self.request, self._known(version), flexible=self.is_flexible(version))

    def response_codec(self, version: int) -> Codec[Response]:
        return codec(self.response, self._known(version), flexible=self.is_flexible(version))

    def _known(self, version: int) -> int:
        if not self.version_min <= version <= self.version_max:
            raise UnknownApiError(
                f"{self.name} v{version} is not known; "
                f"versions {self.version_min} to {self.version_max} are"
            )
        return version
