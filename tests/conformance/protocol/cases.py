"""Every message of the table in every version, as one flat list of cases."""

from dataclasses import dataclass
from typing import Any

from kafscale.protocol.api import Api
from kafscale.protocol.apis import APIS
from kafscale.protocol.codec.codec import Codec
from kafscale.protocol.codec.schema import MessageType


@dataclass(frozen=True)
class Case:
    api: Api[Any, Any]
    side: str
    version: int

    @property
    def message(self) -> MessageType:
        message: MessageType = getattr(self.api, self.side)
        return message

    @property
    def codec(self) -> Codec[Any]:
        if self.side == "request":
            return self.api.request_codec(self.version)
        return self.api.response_codec(self.version)

    def __str__(self) -> str:
        return f"{self.message.__name__}-v{self.version}"


CASES = [
    Case(api, side, version)
    for api in APIS
    for side in ("request", "response")
    for version in api.versions
]
