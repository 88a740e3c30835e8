"""All routes of the API but those of the session, one line a module of this room."""

from typing import Final

from kafscale.console.api import (
    access,
    brokers,
    etcd,
    events,
    groups,
    messages,
    overview,
    pipeline,
    segments,
    topics,
)
from kafscale.console.api.route import Route

PREFIX: Final = "/api/v1"

TABLE: Final[tuple[Route, ...]] = (
    *overview.ROUTES,
    *events.ROUTES,
    *brokers.ROUTES,
    *topics.ROUTES,
    *segments.ROUTES,
    *messages.ROUTES,
    *groups.ROUTES,
    *access.ROUTES,
    *pipeline.ROUTES,
    *etcd.ROUTES,
)
