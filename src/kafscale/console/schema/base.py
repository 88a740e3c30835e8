"""Base classes of the API's types."""

import msgspec


class ResponseModel(msgspec.Struct, kw_only=True, rename="camel"):
    """A response, or a part of one."""


class RequestModel(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A request body or query; unknown fields are rejected."""


class Point(ResponseModel):
    """A value at a time."""

    at_ms: int
    value: float


class Series(ResponseModel):
    """A time series of a chart."""

    name: str
    points: list[Point]


class Problem(ResponseModel):
    """The body of every response that is not a success."""

    error: str
    """An error code for programs, such as `not-found`."""
    message: str
    """A sentence for people that says what to do next."""
