"""What a mirror is told: refused where it cannot be, and kept secret where it has to be."""

import pickle

import pytest

from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.jobs.mirror.cluster import ATTEMPTS_MAX, Cluster, asked
from kafscale.spark.jobs.mirror.job import MirrorSettings
from kafscale.spark.jobs.mirror.offset_mapping import MIRROR_HEADER, Origin

SECRET = {"sasl.password": "open sesame", "sasl.username": "ali"}


def settings(**more):
    clusters = {"source": Cluster("a:1", SECRET), "target": Cluster("b:1", SECRET)}
    return MirrorSettings(**(clusters | {"topics": ("orders",)} | more))


def test_no_secret_is_shown_and_all_travel():
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
def test_what_cannot_be_is_refused(more, problem):
    with pytest.raises(InvalidRequestError, match=problem):
        settings(**more)


def test_a_mirror_decides_itself_about_what_its_promises_need():
    with pytest.raises(InvalidRequestError, match=r"enable.idempotence, group.id"):
        Cluster("a:1", {"group.id": "mine", "enable.idempotence": "false", "client.id": "me"})


def test_the_last_header_tells_where_a_record_was_before():
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
def test_what_is_no_origin_is_passed_over(text):
    assert Origin.parse(text) is None


def test_an_id_with_a_slash_is_read_back():
    origin = Origin("localhost:9092/1", "orders", 0, 1)
    assert Origin.parse(str(origin)) == origin


def test_what_may_pass_is_asked_again_but_not_for_ever():
    pauses = []
    answers = [OperatingError("not yet"), OperatingError("not yet"), "now"]

    def question():
        answer = answers.pop(0)
        if isinstance(answer, OperatingError):
            raise answer
        return answer

    assert asked(Cluster("a:1"), question, sleep=pauses.append) == "now"
    assert pauses == [0.1, 0.2]

    def never():
        raise OperatingError("never")

    with pytest.raises(OperatingError, match="never"):
        asked(Cluster("a:1"), never, sleep=pauses.append)
    assert len(pauses) == 2 + ATTEMPTS_MAX - 1
