"""All messages in all versions, as a flat list of test cases."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kafscale.protocol.api import Api
from kafscale.protocol.apis import APIS
from kafscale.protocol.codec.codec import Codec
from kafscale.protocol.codec.schema import Field, MessageType, fields, structs
from services.for_each import check_each


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


def every_case(test: Callable[[Case], None]) -> Callable[..., None]:
    """One test per API and side: of the first and last version and those that change the layout.

    Another test, in `make test-all`, is of all other versions.
    """
    groups = []
    for api in APIS:
        for side in ("request", "response"):
            of_side = [case for case in CASES if (case.api, case.side) == (api, side)]
            kept = [case for case in of_side if case.is_representative]
            rest = [case for case in of_side if not case.is_representative]
            groups.append(pytest.param(kept, id=f"{api.name}-{side}"))
            if rest:
                groups.append(
                    pytest.param(rest, id=f"{api.name}-{side}-others", marks=pytest.mark.long)
                )

    @pytest.mark.parametrize("cases", groups)
    @functools.wraps(test)
    def test_cases(cases: list[Case]) -> None:
        check_each(cases, test)

    del test_cases.__wrapped__  # pytest would ask for the arguments of `test`.
    return test_cases
