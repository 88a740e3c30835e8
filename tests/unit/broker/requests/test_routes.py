"""The routes: every handler has one, and each can respond with an error in every version."""

from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from kafscale.broker import handlers
from kafscale.broker.requests.routes import ROUTES
from kafscale.errors import StoreUnavailableError
from kafscale.protocol import messages
from kafscale.protocol.apis import APIS
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.messages.api_versions import API_VERSIONS
from kafscale.protocol.messages.produce import ProduceRequest
from services.for_each import for_each
from unit.broker.in_memory_broker import run_with_broker

HANDLERS = {path.stem for path in Path(handlers.__path__[0]).glob("[!_]*.py")}
MESSAGES = {path.stem for path in Path(messages.__path__[0]).glob("[!_]*.py")}


def module_of(function):
    return function.__module__.rpartition(".")[2]


def sample(hint: Any) -> Any:
    """A value with one element in every list, so that error codes have a place."""
    if get_origin(hint) in {Union, UnionType}:
        return sample(next(each for each in get_args(hint) if each is not type(None)))
    if get_origin(hint) is list:
        return [sample(get_args(hint)[0])]
    if isinstance(hint, type) and issubclass(hint, Message):
        return hint(
            **{
                name: sample(each)
                for name, each in get_type_hints(hint).items()
                if get_origin(each) is list or name in {"topics", "name"}
            }
        )
    return {str: "orders", int: 0, bytes: bytes(16), bool: False}[hint]


def codes(value: Any) -> set[int]:
    """Every error code in a response."""
    if isinstance(value, list):
        return set().union(*map(codes, value))
    if not isinstance(value, Message):
        return set()
    fields = msgspec.structs.asdict(value)
    own = {fields["error_code"]} if "error_code" in fields else set()
    return own.union(*map(codes, fields.values()))


def test_every_handler_is_routed_and_named_like_its_message():
    registered = [module_of(each.handle) for each in ROUTES]

    assert sorted(registered) == sorted(HANDLERS)
    assert HANDLERS <= MESSAGES
    for each, name in zip(ROUTES, registered, strict=True):
        assert module_of(each.api.request) == name
        assert module_of(each.error_response) in {name, "route"}


def test_every_declared_api_is_served():
    assert {api.key for api in APIS} == {API_VERSIONS.key, *(each.api.key for each in ROUTES)}


def test_routes_are_sorted_by_api_key():
    keys = [each.api.key for each in ROUTES]
    assert keys == sorted(set(keys))


@for_each(ROUTES, lambda each: each.api.name)
def test_error_response_carries_the_error_code_in_every_version(each):
    async def body(broker):
        await broker.topic("orders")  # Errors of topics take precedence in some responses.
        error = StoreUnavailableError("the store is unavailable")
        request = sample(each.api.request)
        if isinstance(request, ProduceRequest):
            request.acks = -1  # With 0, there is no response.
        for version in each.api.versions:
            response = each.error_response(broker.context(each.api, version), request, error)
            codec = each.api.response_codec(version)
            decoded = codec.decode(codec.encode_bytes(response))
            assert error.code in codes(decoded), f"version {version}"

    run_with_broker(body)
