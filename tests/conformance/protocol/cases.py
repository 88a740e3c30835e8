"""All messages in all versions, as a flat list of test cases."""

from dataclasses import dataclass
from typing import Any

import pytest

from kafscale.protocol.api import Api
from kafscale.protocol.apis import APIS
from kafscale.protocol.codec.codec import Codec
from kafscale.protocol.codec.schema import Field, MessageType, fields, structs
from services.selection import long_except


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

    @property
    def is_representative(self) -> bool:
        """Whether the version is the first, the last, or changes the layout."""
        if self.version in {self.api.versions[0], self.api.versions[-1]}:
            return True
        return self._layout(self.version) != self._layout(self.version - 1)

    def _layout(self, version: int) -> tuple[object, ...]:
        laid_out: list[tuple[Field, ...]] = [fields(one, version) for one in structs(self.message)]
        return (self.api.request_header_version(version), *laid_out)

    def __str__(self) -> str:
        return f"{self.message.__name__}-v{self.version}"


CASES = [
    Case(api, side, version)
    for api in APIS
    for side in ("request", "response")
    for version in api.versions
]

every_case = pytest.mark.parametrize(
    "case", long_except(CASES, lambda case: case.is_representative), ids=str
)
"""Every version in `make test-all`; else the first, the last, and those that change."""
