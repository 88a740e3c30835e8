"""What all shapes of the contract have in common."""

import msgspec


class View(msgspec.Struct, kw_only=True, rename="camel"):
    """Something that the API gives."""


class Asked(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Something that the API takes: a misspelt field is an error, not a silent default."""


class Point(View):
    """One value of something that is watched over time."""

    at_ms: int
    value: float


class Series(View):
    """A line of a chart."""

    name: str
    points: list[Point]


class Problem(View):
    """Why something was not done: what every answer that is not a success carries."""

    error: str
    """A word for programs, such as `not-found`."""
    message: str
    """A sentence for people, which says what to do next."""
