"""The HTTP link in front of a real S3 server: forwards requests, and injects faults."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.client import HTTPConnection
from urllib.parse import urlsplit

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from services import s3_server
from services.link_fault import HEALTHY, Fault
from services.network import Network
from services.process import free_port
from services.s3_server import S3Server
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(150)

LINK = "s3"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[S3Server]:
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    with S3Server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def network(tmp_path) -> Iterator[Network]:
    with Network(tmp_path, seed=0) as running:
        yield running


@pytest.fixture
def port(network, server) -> int:
    return network.link(LINK, urlsplit(server.bucket.endpoint).port, "http")


@pytest.fixture
def near(port, server) -> S3Store:
    """The store through the link, without retries."""
    return store(server, f"http://127.0.0.1:{port}")


@pytest.fixture
def direct(server) -> S3Store:
    return store(server, server.bucket.endpoint)


def store(server: S3Server, endpoint: str, timeout_s: float = 5) -> S3Store:
    return S3Store(
        server.bucket.name,
        endpoint=endpoint,
        access_key_id=server.bucket.access_key,
        secret_access_key=server.bucket.secret_key,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "timeout": timedelta(seconds=timeout_s)},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=10)},
    )


def read(bucket: S3Store, key: str) -> bytes:
    return bytes(obstore.get(bucket, key).bytes())


def exists(bucket: S3Store, key: str) -> bool:
    try:
        obstore.head(bucket, key)
    except FileNotFoundError:
        return False
    return True


def is_accepted(bucket: S3Store, key: str) -> bool:
    try:
        obstore.put(bucket, key, b"data")
    except BaseError as error:
        if "503" not in str(error):
            raise
        return False
    return True


def test_link_without_faults_changes_nothing(near, direct, tmp_path):
    key = f"{tmp_path.name}/object"
    data = bytes(range(256)) * 4000
    obstore.put(near, key, data, mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(near, key, b"other", mode="create")
    assert read(near, key) == read(direct, key) == data
    assert bytes(obstore.get_range(near, key, start=3, end=9)) == data[3:9]
    assert obstore.head(near, key)["size"] == len(data)
    [[entry]] = list(obstore.list(near, f"{tmp_path.name}/"))
    assert entry["path"] == key
    obstore.delete(near, key)
    assert not exists(near, key)


def test_concurrent_requests_get_their_own_responses(near, network, tmp_path):
    def write_and_read(number: int) -> bool:
        key = f"{tmp_path.name}/{number}"
        obstore.put(near, key, b"%d" % number * 1000)
        return read(near, key) == b"%d" % number * 1000

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write_and_read, range(60)))
    counts = network.counts(LINK)
    assert counts.requests == 120
    assert counts.connections < 60, "connections are reused"


def test_error_share_is_answered_by_the_link_and_not_forwarded(near, direct, network, tmp_path):
    network.set(LINK, Fault(error_share=0.5, only="^PUT "))
    outcomes = {
        key: is_accepted(near, key) for key in (f"{tmp_path.name}/{number}" for number in range(60))
    }
    assert {True, False} == set(outcomes.values())
    assert network.counts(LINK).errors == list(outcomes.values()).count(False)
    network.heal()
    for key, is_stored in outcomes.items():
        assert exists(near, key) == exists(direct, key) == is_stored


def test_error_status_and_affected_requests_are_configurable(near, network, tmp_path):
    key = f"{tmp_path.name}/object"
    obstore.put(near, key, b"data")
    network.set(LINK, Fault(error_share=1, error_status=500, only="^(GET|HEAD) "))
    with pytest.raises(BaseError, match="500"):
        read(near, key)
    with pytest.raises(BaseError, match="500"):
        obstore.head(near, key)
    obstore.put(near, key, b"more data")
    network.heal()
    assert read(near, key) == b"more data"


def test_request_with_a_lost_response_is_executed(near, direct, network, tmp_path):
    key = f"{tmp_path.name}/object"
    network.set(LINK, Fault(lost_share=1))
    with pytest.raises(BaseError):
        obstore.put(near, key, b"data", mode="create")
    assert network.counts(LINK).lost == 1
    assert read(direct, key) == b"data"
    network.heal()
    with pytest.raises(AlreadyExistsError):
        obstore.put(near, key, b"data", mode="create")


def test_response_can_be_cut_in_the_middle(near, network, tmp_path):
    key = f"{tmp_path.name}/object"
    obstore.put(near, key, b"data" * 10_000)
    network.set(LINK, Fault(cut_share=1))
    with pytest.raises(BaseError):
        read(near, key)
    network.heal()
    assert read(near, key) == b"data" * 10_000


def test_refused_connections_fail_at_once(near, network, tmp_path):
    key = f"{tmp_path.name}/object"
    obstore.put(near, key, b"data")
    network.set(LINK, Fault(refuses=True))
    began = time.monotonic()
    with pytest.raises(BaseError):
        read(near, key)
    assert time.monotonic() - began < 4
    network.heal()
    assert read(near, key) == b"data"


def test_held_request_is_forwarded_after_the_client_gave_up(
    server, port, direct, network, tmp_path
):
    impatient = store(server, f"http://127.0.0.1:{port}", timeout_s=0.5)
    key = f"{tmp_path.name}/object"
    network.set(LINK, Fault(holds="requests"))
    with pytest.raises(BaseError):
        obstore.put(impatient, key, b"late", mode="create")
    assert not exists(direct, key)
    network.heal()
    wait_until(lambda: exists(direct, key), "the late object")
    assert read(direct, key) == b"late"


def test_late_requests_are_executed_after_they_failed(near, direct, network, tmp_path):
    written, deleted = f"{tmp_path.name}/written", f"{tmp_path.name}/deleted"
    obstore.put(near, deleted, b"data")
    late = Fault(late_share=1, late_ms_min=1000, late_ms_max=1200, only="^(PUT|POST|DELETE) ")
    network.set(LINK, late)
    with pytest.raises(BaseError):
        obstore.put(near, written, b"late", mode="create")
    with pytest.raises(BaseError):
        obstore.delete(near, deleted)
    assert network.counts(LINK).late == network.counts(LINK).late_pending == 2
    network.heal()
    assert not exists(near, written)
    assert exists(near, deleted)
    wait_until(lambda: not network.counts(LINK).late_pending, "the late requests")
    assert read(direct, written) == b"late"
    assert not exists(direct, deleted)


def test_held_response_is_forwarded_when_the_fault_ends(near, direct, network, tmp_path):
    key = f"{tmp_path.name}/object"
    network.set(LINK, Fault(holds="responses"))
    with ThreadPoolExecutor(1) as pool:
        put = pool.submit(obstore.put, near, key, b"data")
        wait_until(lambda: exists(direct, key), "the object")
        assert not put.done()
        network.heal()
        assert put.result(5)


def test_delayed_requests_take_longer(near, network, tmp_path):
    network.set(LINK, Fault(delay_ms_min=200, delay_ms_max=300))
    began = time.monotonic()
    obstore.put(near, f"{tmp_path.name}/object", b"data")
    assert time.monotonic() - began >= 0.2
    network.set(LINK, HEALTHY)
    obstore.put(near, f"{tmp_path.name}/object", b"data")


def test_expect_continue_and_chunked_bodies_are_forwarded(port, tmp_path):
    """The server rejects both requests, which are not signed."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    path = f"/bucket/{tmp_path.name}"
    connection.request("PUT", path, body=b"data", headers={"Expect": "100-continue"})
    assert connection.getresponse().read().startswith(b"<?xml")
    connection.request("PUT", path, body=iter([b"data", b"more"]), encode_chunked=True)
    assert connection.getresponse().read().startswith(b"<?xml")
    connection.close()


def test_unreachable_server_fails_the_request(server, network):
    port = network.link("nowhere", free_port(), "http")
    with pytest.raises(BaseError):
        obstore.put(store(server, f"http://127.0.0.1:{port}"), "key", b"data")
