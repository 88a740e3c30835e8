"""`kafscale protocol`: show the Kafka APIs and messages that Kafscale knows."""

# ruff: noqa: PLC0415 - the messages are slow to compile.

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kafscale.cli.output import (
    Output,
    OutputOption,
    print_data,
    print_line,
    print_source,
    print_table,
)
from kafscale.errors import KafscaleError

if TYPE_CHECKING:
    from kafscale.protocol.api import Api
    from kafscale.protocol.codec.codec import Codec
    from kafscale.protocol.codec.schema import Field, MessageType

app = typer.Typer(
    no_args_is_help=True, help="Show the Kafka APIs and messages that Kafscale knows."
)


@app.command("list")
def list_apis(output: OutputOption = Output.TABLE) -> None:
    """List the known APIs and their versions."""
    from kafscale.protocol import docs
    from kafscale.protocol.apis import APIS

    if output is not Output.TABLE:
        print_data([_summary(api) for api in APIS], output)
        return
    print_table(
        ("key", "API", "versions", "flexible", "purpose"),
        (
            (
                str(api.key),
                (api.name, "bold"),
                docs.versions(api),
                docs.flexible(api),
                docs.purpose(api),
            )
            for api in APIS
        ),
    )


@app.command()
def show(
    api: Annotated[str, typer.Argument(help="Name or key of an API: produce, list-offsets, 18.")],
    version: Annotated[int | None, typer.Argument(help="A version; by default the latest.")] = None,
    source: Annotated[
        bool,
        typer.Option(
            "--source", help="Print the source of the compiled codec instead of the fields."
        ),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the fields of a request and its response in one version."""
    described = _find(api)
    if version is None:
        version = described.version_max
    codecs = {
        described.request: described.request_codec(version),
        described.response: described.response_codec(version),
    }
    if source:
        for message, codec in codecs.items():
            _print_source(message, version, codec)
    elif output is Output.TABLE:
        for message in codecs:
            print_line((f"{message.__name__} v{version}", "bold"))
            print_table(("field", "type", "", "default"), _rows(message, version))
            print_line()
    else:
        fields = {message.__name__: _fields(message, version) for message in codecs}
        print_data({**_summary(described), "version": version, **fields}, output)


def _find(name: str) -> "Api[Any, Any]":
    from difflib import get_close_matches

    from kafscale.protocol.apis import APIS, BY_KEY

    if name.isdecimal() and int(name) in BY_KEY:
        return BY_KEY[int(name)]
    by_normalized_name = {_normalize(api.name): api for api in APIS}
    if api := by_normalized_name.get(_normalize(name)):
        return api
    near = get_close_matches(_normalize(name), by_normalized_name, n=1)
    hint = f"did you mean {by_normalized_name[near[0]].name}?" if near else ""
    raise KafscaleError(f"unknown API {name}: {hint or '`kafscale protocol list` lists all'}")


def _normalize(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").removesuffix("request")


def _summary(api: "Api[Any, Any]") -> dict[str, object]:
    from kafscale.protocol.api import NEVER

    return {
        "key": api.key,
        "name": api.name,
        "versionMin": api.version_min,
        "versionMax": api.version_max,
        "flexibleSince": None if api.flexible_since == NEVER else api.flexible_since,
    }


def _rows(message: "MessageType", version: int, indent: str = "") -> list[tuple[str, ...]]:
    from kafscale.protocol.codec.schema import fields, inner_message

    rows: list[tuple[str, ...]] = []
    for field in fields(message, version):
        marks = ["nullable"] * field.nullable
        marks += [f"tag {field.tag}"] * (field.tag is not None)
        rows.append((indent + field.name, field.type_name, ", ".join(marks), _default(field)))
        if inner := inner_message(field.type):
            rows += _rows(inner, version, indent + "  ")
    return rows


def _fields(message: "MessageType", version: int) -> list[dict[str, object]]:
    from kafscale.protocol.codec.schema import fields, inner_message

    described: list[dict[str, object]] = []
    for field in fields(message, version):
        inner = inner_message(field.type)
        described.append(
            {
                "name": field.name,
                "type": field.type_name,
                "nullable": field.nullable,
                "tag": field.tag,
                **({"fields": _fields(inner, version)} if inner else {}),
            }
        )
    return described


def _default(field: "Field") -> str:
    from kafscale.protocol.codec.wire import UUID_ZERO, Message

    if isinstance(field.default, Message) or field.default == UUID_ZERO:
        return ""
    return "null" if field.default is None else repr(field.default).replace("'", '"')


def _print_source(message: "MessageType", version: int, codec: "Codec[Any]") -> None:
    print_source(
        f"# {message.__name__} v{version}\n\n{codec.decoder_source}\n\n{codec.encoder_source}"
    )
