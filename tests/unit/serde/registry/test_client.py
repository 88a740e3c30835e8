"""A real HTTP registry, in good and bad days."""

import pickle
import socket

import pytest

from kafscale.errors import ConfigError, InvalidRecordError, StoreUnavailableError
from kafscale.serde.registry.cache import SchemaCache
from kafscale.serde.registry.client import ATTEMPTS_MAX, Reference, RegisteredSchema, RegistryAccess
from kafscale.serde.registry.client import Registry as Client
from services.schema_registry import serving

WORD = "hush"


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


def client(server, naps=None, **access):
    return Client(RegistryAccess(url=server.url, **access), sleep=(naps or []).append)


def test_a_schema_is_asked_for_once(server):
    server.register(7, '"int"')
    asking = client(server)
    assert asking.schema(7) == asking.schema(7) == RegisteredSchema("AVRO", '"int"')
    assert server.asked == ["/schemas/ids/7"]


def test_a_schema_comes_with_what_it_refers_to(server):
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


def test_protobuf_is_wanted_compiled_but_taken_as_it_is(server):
    server.register(1, "text", kind="PROTOBUF", serialized="compiled")
    assert client(server).schema(1).text == "compiled"
    server.failures = [0, 422]
    assert client(server).schema(1).text == "text"


def test_references_in_a_circle_or_to_nowhere_are_the_schema_s_fault(server):
    server.register(1, "x", subject="x", references=[{"name": "x", "subject": "x", "version": 1}])
    with pytest.raises(InvalidRecordError, match="without end"):
        client(server).schema(1)
    server.register(2, "y", references=[{"name": "n", "subject": "none", "version": 1}])
    with pytest.raises(InvalidRecordError, match="refers to n"):
        client(server).schema(2)


def test_the_latest_of_a_subject(server):
    server.register(1, "old", subject="orders-value")
    server.register(2, "new", subject="orders-value")
    assert client(server).latest("orders-value").text == "new"
    with pytest.raises(ConfigError, match="no subject payments"):
        client(server).latest("payments")


def test_the_latest_of_a_subject_comes_with_the_id_that_values_name(server):
    server.register(2, "new", subject="orders-value")
    assert client(server).latest_with_id("orders-value") == (2, RegisteredSchema("AVRO", "new"))
    server.answer("/subjects/old/versions/latest", b'{"schema": "x"}')
    with pytest.raises(ConfigError, match="which id"):
        client(server).latest_with_id("old")


def test_a_client_with_little_patience_asks_less_often(server):
    server.failures = [503] * ATTEMPTS_MAX
    asking = Client(RegistryAccess(url=server.url), sleep=[].append, attempts_max=2)
    with pytest.raises(StoreUnavailableError, match="answers 503"):
        asking.schema(7)
    assert len(server.asked) == 2


def test_an_unknown_id_is_the_record_s_fault(server):
    with pytest.raises(InvalidRecordError, match="schema 9 is not in the registry"):
        client(server).schema(9)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_registry_that_recovers_is_asked_again_after_a_while(server, status):
    server.register(7, '"int"')
    server.failures = [status, status]
    naps = []
    asking = Client(RegistryAccess(url=server.url), sleep=naps.append)
    assert asking.schema(7).text == '"int"'
    assert naps == [0.2, 0.4]


def test_a_registry_that_does_not_recover_stops_the_job(server):
    server.failures = [503] * ATTEMPTS_MAX
    with pytest.raises(StoreUnavailableError, match="answers 503"):
        client(server).schema(7)
    assert len(server.asked) == ATTEMPTS_MAX


def test_a_registry_that_is_not_there_stops_the_job():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    access = RegistryAccess(url=f"http://127.0.0.1:{port}", user="u", password=WORD)
    with pytest.raises(StoreUnavailableError, match="cannot be reached") as caught:
        Client(access, sleep=[].append).schema(7)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("content", [b"<html>", b"{}", b'{"schema":1}', b"\xff", b""])
def test_an_answer_that_is_none_stops_the_job(server, content):
    server.answer("/schemas/ids/7", content)
    with pytest.raises(StoreUnavailableError, match="no schema"):
        client(server).schema(7)


@pytest.mark.parametrize("status", [401, 403])
def test_a_registry_that_refuses_us_is_a_wrong_setting(server, status):
    server.failures = [status]
    with pytest.raises(ConfigError, match=f"answers {status}") as caught:
        client(server, user="u", password=WORD).schema(7)
    assert "hush" not in str(caught.value)
    assert len(server.asked) == 1


def test_it_says_who_is_asking(server):
    server.register(7, '"int"')
    client(server).schema(7)
    client(server, user="u", password=WORD).schema(7)
    client(server, token=WORD).schema(7)
    assert server.authorizations == [None, "Basic dTpodXNo", "Bearer hush"]


def test_secrets_follow_no_redirect(server):
    with serving() as other:
        other.register(7, '"int"')
        server.redirect_to = other.url
        assert client(server, token=WORD).schema(7).text == '"int"'
    assert server.authorizations == ["Bearer hush"]
    assert other.authorizations == [None]


def test_secrets_are_not_shown_but_travel():
    access = RegistryAccess(url="https://registry:8081/base", user="u", password=WORD)
    assert "hush" not in repr(access)
    assert "hush" not in repr(RegistryAccess(url="https://registry", token=WORD))
    assert pickle.loads(pickle.dumps(access)) == access  # noqa: S301


@pytest.mark.parametrize(
    ("access", "reason"),
    [
        ({"url": "http://u:hush@registry"}, "may not hold a user"),
        ({"url": "file:///etc/passwd"}, "http"),
        ({"url": "registry:8081"}, "http"),
        ({"url": "http://registry?x=1"}, "query"),
        ({"url": "http://registry", "user": "u", "token": "hush"}, "not both"),
    ],
)
def test_impossible_access_is_refused_without_its_secrets(access, reason):
    with pytest.raises(ConfigError, match=reason) as caught:
        RegistryAccess(**access)
    assert "hush" not in str(caught.value)


def test_a_useless_id_is_asked_for_once_a_batch(server):
    cache = SchemaCache(client(server), lambda schema: schema.text)
    for _ in range(3):
        with pytest.raises(InvalidRecordError, match="schema 7 is not in the registry"):
            cache.get(7)
    assert len(server.asked) == 1
    server.register(7, "now")
    cache.begin_batch()
    assert cache.get(7) == cache.get(7) == "now"
    assert len(server.asked) == 2


def test_a_schema_that_cannot_be_used_is_the_record_s_fault_but_wrong_access_is_not(server):
    def refuse(_):
        raise ConfigError("it is nonsense")

    server.register(7, "x")
    cache = SchemaCache(client(server), refuse)
    for _ in range(2):
        with pytest.raises(InvalidRecordError, match="schema 7: it is nonsense"):
            cache.get(7)
    assert len(server.asked) == 1
    server.failures = [401]
    with pytest.raises(ConfigError, match="401"):
        cache.get(8)
