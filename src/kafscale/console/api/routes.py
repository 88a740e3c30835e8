"""All routes of the API except those of the session."""

from typing import Final

from kafscale.console.api import access, brokers, etcd, groups, messages, overview, pipeline, topics
from kafscale.console.api.route import Route

PREFIX: Final = "/api/v1"

ALL_ROUTES: Final[tuple[Route, ...]] = (
    *overview.ROUTES,
    *brokers.ROUTES,
    *topics.ROUTES,
    *messages.ROUTES,
    *groups.ROUTES,
    *access.ROUTES,
    *pipeline.ROUTES,
    *etcd.ROUTES,
)
