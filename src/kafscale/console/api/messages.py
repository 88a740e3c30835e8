"""Browse and produce records."""

from kafscale.admin.messages import browse as browsing
from kafscale.admin.messages import produce as producing
from kafscale.admin.messages.codecs import from_config
from kafscale.admin.messages.query import BrowseQuery
from kafscale.aio.clock import clock
from kafscale.console.api.route import ApiContext, ApiRequest, Route
from kafscale.console.schema import messages as schema
from kafscale.errors import InvalidRequestError


async def browse(context: ApiContext, request: ApiRequest) -> schema.Browsed:
    query = _browse_query(request.body)
    async with context.connections.client() as client:
        return await browsing.browse(
            client, request.path["name"], query, from_config(context.config)
        )


async def produce(context: ApiContext, request: ApiRequest) -> schema.Produced:
    body: schema.Produce = request.body
    new = producing.NewRecord(
        partition=body.partition,
        key=body.key,
        value=body.value,
        headers=tuple((header.key, header.value) for header in body.headers),
        timestamp_ms=clock() if body.timestamp_ms is None else body.timestamp_ms,
    )
    async with context.connections.client() as client:
        return await producing.produce(
            client, request.path["name"], new, from_config(context.config)
        )


def _browse_query(body: schema.Browse) -> BrowseQuery:
    return BrowseQuery(
        partitions=tuple(body.partitions),
        start=body.start.kind,
        offset=body.start.offset,
        time_ms=body.start.time_ms,
        limit=body.limit,
        cursor=_cursor(body.cursor),
        isolation=body.isolation,
        filter=body.filter,
        key=body.key,
        value=body.value,
    )


def _cursor(body: dict[str, int]) -> dict[int, int]:
    if not all(key.isascii() and key.isdigit() and len(key) < 10 for key in body):
        raise InvalidRequestError("the keys of a cursor must be partition numbers")
    return {int(key): offset for key, offset in body.items()}


ROUTES = (
    Route(
        "POST",
        "/topics/{name}/messages/browse",
        browse,
        body=schema.Browse,
        response=schema.Browsed,
    ),
    Route(
        "POST", "/topics/{name}/messages", produce, body=schema.Produce, response=schema.Produced
    ),
)
