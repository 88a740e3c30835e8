"""Browse and produce records."""

from kafscale.admin.messages import browse as browsing
from kafscale.admin.messages import produce as producing
from kafscale.admin.messages.codecs import from_config
from kafscale.admin.messages.input_parser import PayloadInput
from kafscale.admin.messages.query import BrowseQuery, DisplayFormat, FilterSpec, SchemaText
from kafscale.admin.messages.renderer import RenderedPayload
from kafscale.aio.clock import clock
from kafscale.console.api.route import ApiRequest, Route
from kafscale.console.context import ApiContext
from kafscale.console.schema import messages as schema
from kafscale.errors import InvalidRequestError
from kafscale.records import TimestampType


async def browse(context: ApiContext, request: ApiRequest) -> schema.Browsed:
    query = _browse_query(request.body)
    async with context.connections.client() as client:
        page = await browsing.browse(
            client, request.path["name"], query, from_config(context.config)
        )
    return schema.Browsed(
        messages=[_message(record) for record in page.records],
        scanned_records=page.scanned_records,
        scanned_bytes=page.scanned_bytes,
        is_complete=page.is_complete,
        next={str(index): offset for index, offset in page.cursor.items()},
        problems=page.problems,
    )


async def produce(context: ApiContext, request: ApiRequest) -> schema.Produced:
    body: schema.Produce = request.body
    new = producing.NewRecord(
        partition=body.partition,
        key=_payload_input(body.key),
        value=_payload_input(body.value),
        headers=tuple((header.key, header.value) for header in body.headers),
        timestamp_ms=clock() if body.timestamp_ms is None else body.timestamp_ms,
    )
    async with context.connections.client() as client:
        written = await producing.produce(
            client, request.path["name"], new, from_config(context.config)
        )
    return schema.Produced(
        partition=written.partition, offset=written.offset, timestamp_ms=written.timestamp_ms
    )


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


# --- requests -----------------------------------------------------------------------------------


def _browse_query(body: schema.Browse) -> BrowseQuery:
    conditions = body.filter
    return BrowseQuery(
        partitions=tuple(body.partitions),
        start=body.start.kind,
        offset=body.start.offset,
        time_ms=body.start.time_ms,
        limit=body.limit,
        cursor=_cursor(body.cursor),
        filter=FilterSpec(
            key=conditions.key,
            text=conditions.text,
            json_path=conditions.json_path,
            json_equals=conditions.json_equals,
            header=conditions.header,
        ),
        key=DisplayFormat(format=body.key.format, schema=_schema(body.key.schema)),
        value=DisplayFormat(format=body.value.format, schema=_schema(body.value.schema)),
    )


def _cursor(body: dict[str, int]) -> dict[int, int]:
    if not all(key.isascii() and key.isdigit() and len(key) < 10 for key in body):
        raise InvalidRequestError("the keys of a cursor are partition numbers")
    return {int(key): offset for key, offset in body.items()}


def _schema(body: schema.Schema | None) -> SchemaText | None:
    if body is None:
        return None
    return SchemaText(kind=body.kind, text=body.text, message=body.message)


def _payload_input(body: schema.NewPayload | None) -> PayloadInput | None:
    if body is None:
        return None
    return PayloadInput(text=body.text, format=body.format, schema=_schema(body.schema))


# --- responses ----------------------------------------------------------------------------------


def _message(record: browsing.RenderedRecord) -> schema.Message:
    is_append = record.timestamp_type is TimestampType.LOG_APPEND_TIME
    return schema.Message(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        timestamp_type="none" if record.timestamp_ms < 0 else "append" if is_append else "create",
        key=_payload(record.key),
        value=_payload(record.value),
        headers=[
            schema.Header(key=header.key, value=_payload(header.value)) for header in record.headers
        ],
        size_bytes=record.size_bytes,
    )


def _payload(payload: RenderedPayload | None) -> schema.Payload | None:
    return None if payload is None else schema.Payload(**payload._asdict())
