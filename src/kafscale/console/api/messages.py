"""Records: looked for and written. What that means, `admin.messages` knows."""

import time

from kafscale.admin.messages import browse as browsing
from kafscale.admin.messages import produce as producing
from kafscale.admin.messages.codecs import configured
from kafscale.admin.messages.input_parser import Typed
from kafscale.admin.messages.query import Filter, Question, Reading, SchemaText
from kafscale.admin.messages.renderer import Payload as ShownPayload
from kafscale.console.api.route import Call, Route
from kafscale.console.context import Room
from kafscale.console.schema import messages as contract
from kafscale.errors import InvalidRequestError
from kafscale.records import TimestampType


async def browse(room: Room, call: Call) -> contract.Browsed:
    question = _question(call.body)
    async with room.reach.client() as client:
        page = await browsing.browse(client, call.path["name"], question, configured(room.config))
    return contract.Browsed(
        messages=[_message(record) for record in page.records],
        scanned_records=page.scanned_records,
        scanned_bytes=page.scanned_bytes,
        is_complete=page.is_complete,
        next={str(index): offset for index, offset in page.cursor.items()},
        problems=page.problems,
    )


async def produce(room: Room, call: Call) -> contract.Produced:
    asked: contract.Produce = call.body
    now_ms = time.time_ns() // 1_000_000
    new = producing.NewRecord(
        partition=asked.partition,
        key=_typed(asked.key),
        value=_typed(asked.value),
        headers=tuple((header.key, header.value) for header in asked.headers),
        timestamp_ms=now_ms if asked.timestamp_ms is None else asked.timestamp_ms,
    )
    async with room.reach.client() as client:
        written = await producing.produce(client, call.path["name"], new, configured(room.config))
    return contract.Produced(
        partition=written.partition, offset=written.offset, timestamp_ms=written.timestamp_ms
    )


ROUTES = (
    Route(
        "POST",
        "/topics/{name}/messages/browse",
        browse,
        takes=contract.Browse,
        gives=contract.Browsed,
    ),
    Route(
        "POST", "/topics/{name}/messages", produce, takes=contract.Produce, gives=contract.Produced
    ),
)


# --- what was asked -------------------------------------------------------------------------------


def _question(asked: contract.Browse) -> Question:
    wanted = asked.filter
    return Question(
        partitions=tuple(asked.partitions),
        start=asked.start.kind,
        offset=asked.start.offset,
        time_ms=asked.start.time_ms,
        limit=asked.limit,
        cursor=_cursor(asked.cursor),
        filter=Filter(
            key=wanted.key,
            text=wanted.text,
            json_path=wanted.json_path,
            json_equals=wanted.json_equals,
            header=wanted.header,
        ),
        key=Reading(format=asked.key.format, schema=_schema(asked.key.schema)),
        value=Reading(format=asked.value.format, schema=_schema(asked.value.schema)),
    )


def _cursor(asked: dict[str, int]) -> dict[int, int]:
    if not all(key.isascii() and key.isdigit() and len(key) < 10 for key in asked):
        raise InvalidRequestError("a cursor has the numbers of partitions as its keys")
    return {int(key): offset for key, offset in asked.items()}


def _schema(asked: contract.Schema | None) -> SchemaText | None:
    if asked is None:
        return None
    return SchemaText(kind=asked.kind, text=asked.text, message=asked.message)


def _typed(asked: contract.NewPayload | None) -> Typed | None:
    if asked is None:
        return None
    return Typed(text=asked.text, format=asked.format, schema=_schema(asked.schema))


# --- what is told ---------------------------------------------------------------------------------


def _message(record: browsing.ShownRecord) -> contract.Message:
    is_append = record.timestamp_type is TimestampType.LOG_APPEND_TIME
    return contract.Message(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        timestamp_type="none" if record.timestamp_ms < 0 else "append" if is_append else "create",
        key=_payload(record.key),
        value=_payload(record.value),
        headers=[
            contract.Header(key=header.key, value=_payload(header.value))
            for header in record.headers
        ],
        size_bytes=record.size_bytes,
    )


def _payload(shown: ShownPayload | None) -> contract.Payload | None:
    return None if shown is None else contract.Payload(**shown._asdict())
