"""Settings of a mirror, retries, and the header with the origin of a record."""

import pickle

import pytest

from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.jobs.mirror.cluster import ATTEMPTS_MAX, Cluster, retry
from kafscale.spark.jobs.mirror.job import MirrorSettings
from kafscale.spark.jobs.mirror.offset_mapping import MIRROR_HEADER, Origin

SECRET = {"sasl.password": "open sesame", "sasl.username": "ali"}


def settings(**more):
    clusters = {"source": Cluster("a:1", SECRET), "target": Cluster("b:1", SECRET)}
    return MirrorSettings(**(clusters | {"topics": ("orders",)} | more))


def test_secrets_are_not_in_repr_but_are_pickled():
    assert "sesame" not in repr(settings())
    assert pickle.loads(pickle.dumps(settings())) == settings()  # noqa: S301
    assert settings().source.settings == SECRET


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"topics": ()}, "name the topics"),
        ({"codec": "brotli"}, "codec"),
        ({"target": Cluster("a:1")}, "into itself"),
    ],
)
def test_invalid_settings_are_rejected(more, problem):
    with pytest.raises(InvalidRequestError, match=problem):
        settings(**more)


def test_reserved_client_settings_are_rejected():
    with pytest.raises(InvalidRequestError, match=r"enable.idempotence, group.id"):
        Cluster("a:1", {"group.id": "mine", "enable.idempotence": "false", "client.id": "me"})


def test_origin_is_read_from_the_last_header():
    first, second = Origin("a", "orders", 0, 7), Origin("b", "shop.orders", 3, 9)
    headers = [
        (MIRROR_HEADER, str(first).encode()),
        ("other", b"b/orders/0/1"),
        (MIRROR_HEADER, str(second).encode()),
        (MIRROR_HEADER, None),
    ]
    assert Origin.last_of(headers) == second
    assert Origin.last_of(headers[:2]) == first
    assert Origin.last_of(None) is None


@pytest.mark.parametrize("text", ["", "orders/0/1", "a/orders/x/1", "a/orders/0/-1", "a/orders/0/"])
def test_invalid_origin_is_ignored(text):
    assert Origin.parse(text) is None


def test_cluster_id_with_a_slash_is_parsed():
    origin = Origin("localhost:9092/1", "orders", 0, 1)
    assert Origin.parse(str(origin)) == origin


def test_transient_errors_are_retried_a_limited_number_of_times():
    pauses = []
    responses = [OperatingError("not yet"), OperatingError("not yet"), "now"]

    def request():
        response = responses.pop(0)
        if isinstance(response, OperatingError):
            raise response
        return response

    assert retry(Cluster("a:1"), request, sleep=pauses.append) == "now"
    assert pauses == [0.1, 0.2]

    def never():
        raise OperatingError("never")

    with pytest.raises(OperatingError, match="never"):
        retry(Cluster("a:1"), never, sleep=pauses.append)
    assert len(pauses) == 2 + ATTEMPTS_MAX - 1
