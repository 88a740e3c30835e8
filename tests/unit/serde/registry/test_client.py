"""Tests of the registry client with a real HTTP server."""

import pickle
import socket

import pytest

from kafscale.errors import ConfigError, InvalidRecordError, StoreUnavailableError
from kafscale.serde.registry.client import (
    ATTEMPTS_MAX,
    Reference,
    RegisteredSchema,
    RegistryAccess,
    SchemaCache,
)
from kafscale.serde.registry.client import Registry as Client
from services.schema_registry import serving

PASSWORD = "hidden"  # noqa: S105


@pytest.fixture(scope="module")
def _server():
    with serving() as server:
        yield server


@pytest.fixture
def server(_server):
    url = _server.url
    _server.__init__()
    _server.url = url
    return _server


def client(server, pauses=None, **access):
    return Client(RegistryAccess(url=server.url, **access), sleep=(pauses or []).append)


def test_schemas_are_cached(server):
    server.register(7, '"int"')
    registry = client(server)
    assert registry.schema(7) == registry.schema(7) == RegisteredSchema("AVRO", '"int"')
    assert server.requests == ["/schemas/ids/7"]


def test_references_are_resolved(server):
    server.register(1, "deep", kind="PROTOBUF", subject="deep/er")
    reference = {"name": "deep.proto", "subject": "deep/er", "version": 1}
    server.register(2, "other", kind="PROTOBUF", subject="other", references=[reference])
    reference = {"name": "other.proto", "subject": "other", "version": 2}
    server.register(3, "main", kind="PROTOBUF", references=[reference])
    deep = RegisteredSchema("PROTOBUF", "deep")
    other = RegisteredSchema("PROTOBUF", "other", (Reference("deep.proto", deep),))
    assert client(server).schema(3) == RegisteredSchema(
        "PROTOBUF", "main", (Reference("other.proto", other),)
    )


def test_protobuf_is_requested_in_serialized_form(server):
    server.register(1, "text", kind="PROTOBUF", serialized="compiled")
    assert client(server).schema(1).text == "compiled"
    server.failures = [0, 422]
    assert client(server).schema(1).text == "text"


def test_circular_and_missing_references_are_record_errors(server):
    server.register(1, "x", subject="x", references=[{"name": "x", "subject": "x", "version": 1}])
    with pytest.raises(InvalidRecordError, match="nested too deeply"):
        client(server).schema(1)
    server.register(2, "y", references=[{"name": "n", "subject": "none", "version": 1}])
    with pytest.raises(InvalidRecordError, match="refers to n"):
        client(server).schema(2)


def test_latest(server):
    server.register(1, "old", subject="orders-value")
    server.register(2, "new", subject="orders-value")
    assert client(server).latest("orders-value").text == "new"
    with pytest.raises(ConfigError, match="no subject payments"):
        client(server).latest("payments")


def test_latest_with_id(server):
    server.register(2, "new", subject="orders-value")
    assert client(server).latest_with_id("orders-value") == (2, RegisteredSchema("AVRO", "new"))
    server.set_response("/subjects/old/versions/latest", b'{"schema": "x"}')
    with pytest.raises(ConfigError, match="did not return the ID"):
        client(server).latest_with_id("old")


def test_number_of_attempts_is_configurable(server):
    server.failures = [503] * ATTEMPTS_MAX
    registry = Client(RegistryAccess(url=server.url), sleep=[].append, attempts_max=2)
    with pytest.raises(StoreUnavailableError, match="HTTP status 503"):
        registry.schema(7)
    assert len(server.requests) == 2


def test_an_unknown_id_is_a_record_error(server):
    with pytest.raises(InvalidRecordError, match="schema 9 is not in the registry"):
        client(server).schema(9)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_temporary_errors_are_retried(server, status):
    server.register(7, '"int"')
    server.failures = [status, status]
    pauses = []
    registry = Client(RegistryAccess(url=server.url), sleep=pauses.append)
    assert registry.schema(7).text == '"int"'
    assert pauses == [0.2, 0.4]


def test_permanent_server_errors_raise(server):
    server.failures = [503] * ATTEMPTS_MAX
    with pytest.raises(StoreUnavailableError, match="HTTP status 503"):
        client(server).schema(7)
    assert len(server.requests) == ATTEMPTS_MAX


def test_an_unreachable_registry_raises():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    access = RegistryAccess(url=f"http://127.0.0.1:{port}", user="u", password=PASSWORD)
    with pytest.raises(StoreUnavailableError, match="cannot connect") as caught:
        Client(access, sleep=[].append).schema(7)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("content", [b"<html>", b"{}", b'{"schema":1}', b"\xff", b""])
def test_an_invalid_response_raises(server, content):
    server.set_response("/schemas/ids/7", content)
    with pytest.raises(StoreUnavailableError, match="not a schema"):
        client(server).schema(7)


@pytest.mark.parametrize("status", [401, 403])
def test_rejected_credentials_are_a_config_error(server, status):
    server.failures = [status]
    with pytest.raises(ConfigError, match=f"HTTP status {status}") as caught:
        client(server, user="u", password=PASSWORD).schema(7)
    assert "hidden" not in str(caught.value)
    assert len(server.requests) == 1


def test_authorization_header(server):
    server.register(7, '"int"')
    client(server).schema(7)
    client(server, user="u", password=PASSWORD).schema(7)
    client(server, token=PASSWORD).schema(7)
    assert server.authorizations == [None, "Basic dTpoaWRkZW4=", "Bearer hidden"]


def test_redirects_to_other_servers_are_not_followed(server):
    with serving() as other:
        other.register(7, '"int"')
        server.redirect_to = other.url
        with pytest.raises(ConfigError, match="it redirects to another server"):
            client(server, token=PASSWORD).schema(7)
    assert server.authorizations == ["Bearer hidden"]
    assert other.authorizations == []


def test_credentials_are_pickled_but_not_shown():
    access = RegistryAccess(url="https://registry:8081/base", user="u", password=PASSWORD)
    assert "hidden" not in repr(access)
    assert "hidden" not in repr(RegistryAccess(url="https://registry", token=PASSWORD))
    assert pickle.loads(pickle.dumps(access)) == access  # noqa: S301


@pytest.mark.parametrize(
    ("access", "reason"),
    [
        ({"url": "http://u:hidden@registry"}, "may not contain a user"),
        ({"url": "file:///etc/passwd"}, "http"),
        ({"url": "registry:8081"}, "http"),
        ({"url": "http://registry?x=1"}, "query"),
        ({"url": "http://registry", "user": "u", "token": "hidden"}, "not both"),
    ],
)
def test_invalid_access_is_rejected_without_its_secrets(access, reason):
    with pytest.raises(ConfigError, match=reason) as caught:
        RegistryAccess(**access)
    assert "hidden" not in str(caught.value)


def test_unknown_ids_are_requested_once_per_batch(server):
    cache = SchemaCache(client(server), lambda schema: schema.text)
    for _ in range(3):
        with pytest.raises(InvalidRecordError, match="schema 7 is not in the registry"):
            cache.get(7)
    assert len(server.requests) == 1
    server.register(7, "now")
    cache.begin_batch()
    assert cache.get(7) == cache.get(7) == "now"
    assert len(server.requests) == 2


def test_invalid_schemas_are_record_errors_but_invalid_access_is_not(server):
    def fail(_):
        raise ConfigError("it is invalid")

    server.register(7, "x")
    cache = SchemaCache(client(server), fail)
    for _ in range(2):
        with pytest.raises(InvalidRecordError, match="schema 7: it is invalid"):
            cache.get(7)
    assert len(server.requests) == 1
    server.failures = [401]
    with pytest.raises(ConfigError, match="401"):
        cache.get(8)
