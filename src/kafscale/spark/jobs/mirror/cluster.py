"""The source or target of a mirror: any Kafka cluster, accessed through librdkafka.

The settings are those of librdkafka, which supports all of Kafka's security mechanisms. Invariant:
settings are not part of `repr`, because some are secret; they reach tasks only as pickled bytes.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kafscale.aio.backoff import Backoff
from kafscale.errors import InvalidRequestError, KafscaleError, OperatingError
from kafscale.protocol.error_codes import ErrorCode

_Result = TypeVar("_Result")

REQUEST_TIMEOUT_S: Final = 30.0
ATTEMPTS_MAX: Final = 8
PAUSE_S_MAX: Final = 3.0
GROUP_PREFIX: Final = "kafscale-mirror"
MESSAGE_BYTES_MAX: Final = 100 * 1024 * 1024
"""The limit of the client; the topic has its own limit."""

_RESERVED: Final = frozenset(
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
"""Set by the mirror, because its delivery guarantees depend on them."""


@dataclass(frozen=True)
class Cluster:
    """The address of a cluster, and the client settings to connect."""

    bootstrap: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of librdkafka."""

    def __post_init__(self) -> None:
        reserved = sorted(_RESERVED & self.settings.keys())
        if reserved:
            raise InvalidRequestError(f"the mirror sets {', '.join(reserved)}; remove them")

    def admin(self) -> AdminClient:
        with wrap_errors(self):
            return AdminClient(self._common())

    def consumer(
        self, group: str, *, wait_ms: int = 500, isolation_level: str = "read_committed"
    ) -> Any:
        """Create a consumer for manual assignment; it uses the group only to commit offsets.

        At the end of a partition the broker delays its response by `wait_ms`, and with it the
        responses to other requests of the connection.
        """
        return self._create(
            Consumer,
            {
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "fetch.message.max.bytes": 4 * 1024 * 1024,
                "fetch.wait.max.ms": wait_ms,
                "group.id": f"{GROUP_PREFIX}-{group}",
                "isolation.level": isolation_level,
            },
        )

    def producer(self, codec: str) -> Any:
        """Create an idempotent producer."""
        return self._create(
            Producer,
            {
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 20,
                "message.max.bytes": MESSAGE_BYTES_MAX,
            },
        )

    def _create(self, client_type: Any, settings: Mapping[str, Any]) -> Any:
        with wrap_errors(self):
            return client_type({**settings, **self._common()})

    def _common(self) -> dict[str, Any]:
        # Errors are raised by the calls that fail; librdkafka would also print them.
        return {
            **self.settings,
            "bootstrap.servers": self.bootstrap,
            "log_level": 0,
            "error_cb": _ignore,
        }


@contextmanager
def wrap_errors(cluster: Cluster) -> Iterator[None]:
    """Raise errors of librdkafka as Kafscale errors that name the cluster."""
    try:
        yield
    except KafkaException as error:
        raise to_error(cluster, error.args[0]) from None


def retry(
    cluster: Cluster, request: Callable[[], _Result], *, sleep: Callable[[float], None] = time.sleep
) -> _Result:
    """Return the result of a request, retried with backoff after transient errors."""
    backoff = Backoff(max_seconds=PAUSE_S_MAX)
    while True:
        try:
            with wrap_errors(cluster):
                return request()
        except OperatingError:
            pause_s = backoff.next_seconds()
            if backoff.tries == ATTEMPTS_MAX:
                raise
            sleep(pause_s)


def to_error(cluster: Cluster, error: Any) -> KafscaleError:
    """Convert an error of librdkafka: `OperatingError` if it is transient."""
    message = error.str() if isinstance(error, KafkaError) else str(error)
    sentence = f"the cluster at {cluster.bootstrap}: {message}"
    # Negative codes are librdkafka's own: unreachable brokers and timeouts.
    is_response = isinstance(error, KafkaError) and error.code() >= 0
    if is_response and not ErrorCode.of(error.code()).retriable:
        return InvalidRequestError(f"{sentence} ({error.name()})")
    return OperatingError(sentence)


def _ignore(_error: KafkaError) -> None:
    """Ignore the error: the call that waits for the result raises it."""
