"""One side of a mirror: a Kafka cluster of any kind, reached through librdkafka.

Its settings are librdkafka's, which knows every kind of security that Kafka has. The law: they are
part of no `repr`, because some are secret; they reach tasks inside of pickled bytes only.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kafscale.errors import InvalidRequestError, KafscaleError, OperatingError
from kafscale.protocol.error_codes import ErrorCode

_Answer = TypeVar("_Answer")

ANSWER_S_MAX: Final = 30.0
ATTEMPTS_MAX: Final = 8
PAUSE_S_FIRST: Final = 0.1
PAUSE_S_MAX: Final = 3.0
GROUP_PREFIX: Final = "kafscale-mirror"
MESSAGE_BYTES_MAX: Final = 100 * 1024 * 1024
"""What a client takes; what a topic takes is for the topic to say."""

_OWN: Final = frozenset(
    {
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "isolation.level",
        "transactional.id",
    }
)
"""What a mirror decides itself: it would not keep its promises else."""


@dataclass(frozen=True)
class Cluster:
    """Where a cluster is, and how to get in."""

    bootstrap: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Those of librdkafka."""

    def __post_init__(self) -> None:
        refused = sorted(_OWN & self.settings.keys())
        if refused:
            raise InvalidRequestError(f"a mirror decides itself about {', '.join(refused)}")

    def admin(self) -> AdminClient:
        with explained(self):
            return AdminClient(self._common())

    def consumer(self, group: str, *, wait_ms: int = 500) -> Any:
        """A consumer of whatever it is told to; the group is only for what it may commit.

        At the end of a partition brokers wait so long for more, and answer nothing else meanwhile.
        """
        return self._made(
            Consumer,
            {
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "fetch.message.max.bytes": 4 * 1024 * 1024,
                "fetch.wait.max.ms": wait_ms,
                "group.id": f"{GROUP_PREFIX}-{group}",
                "isolation.level": "read_committed",
            },
        )

    def producer(self, codec: str) -> Any:
        """A producer that writes what it is given once, and in order."""
        return self._made(
            Producer,
            {
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 20,
                "message.max.bytes": MESSAGE_BYTES_MAX,
            },
        )

    def _made(self, kind: Any, settings: Mapping[str, Any]) -> Any:
        with explained(self):
            return kind({**settings, **self._common()})

    def _common(self) -> dict[str, Any]:
        # What goes wrong is raised where it matters; librdkafka would also print it.
        return {
            **self.settings,
            "bootstrap.servers": self.bootstrap,
            "log_level": 0,
            "error_cb": _ignore,
        }


@contextmanager
def explained(cluster: Cluster) -> Iterator[None]:
    """Raise what librdkafka raises as an error of ours, with the name of the cluster."""
    try:
        yield
    except KafkaException as error:
        raise problem(cluster, error.args[0]) from None


def asked(
    cluster: Cluster,
    question: Callable[[], _Answer],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> _Answer:
    """The answer to a question, asked again while what is in the way may pass."""
    for attempt in range(ATTEMPTS_MAX):
        try:
            with explained(cluster):
                return question()
        except OperatingError:
            if attempt + 1 == ATTEMPTS_MAX:
                raise
            sleep(min(PAUSE_S_FIRST * 2**attempt, PAUSE_S_MAX))
    raise AssertionError("the last attempt answers or raises")


def problem(cluster: Cluster, error: Any) -> KafscaleError:
    """An error of librdkafka as one of ours: what may pass by itself, or what does not."""
    said = error.str() if isinstance(error, KafkaError) else str(error)
    sentence = f"the cluster at {cluster.bootstrap}: {said}"
    # Below zero are librdkafka's own: brokers that are away, answers that do not come.
    is_answer = isinstance(error, KafkaError) and error.code() >= 0
    if is_answer and not ErrorCode.of(error.code()).retriable:
        return InvalidRequestError(f"{sentence} ({error.name()})")
    return OperatingError(sentence)


def _ignore(_error: KafkaError) -> None:
    """Leave it to whoever waits for an answer."""
