"""Settings of transactions, under the names of Kafka's broker settings of the same meaning."""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Duration, Integer
from kafscale.text.units import HOUR_MS, MINUTE_MS

_DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, kw_only=True)
class Transaction:
    """Limits of transactions and of transactional ids."""

    timeout_ms_max: int = setting(15 * MINUTE_MS, Duration(1, 24 * HOUR_MS), key="maxTimeoutMs")
    """The longest `transaction.timeout.ms` that a producer may request. In milliseconds. An open
    transaction keeps consumers with `isolation.level=read_committed` from reading further, so a
    producer that has failed must not keep one open for longer than 15 minutes."""

    id_expiration_ms: int = setting(7 * _DAY_MS, Duration(1, 365 * _DAY_MS), key="idExpirationMs")
    """How long a transactional id is kept after its last transaction. In milliseconds. Seven days,
    in which a stopped application can be started again."""

    id_expiration_interval_ms: int = setting(
        HOUR_MS, Duration(100, 24 * HOUR_MS), key="idExpirationCheckIntervalMs"
    )
    """The interval of checks for transactional ids that have expired. In milliseconds. An hour is
    precise enough for an expiration of days."""

    ids_max: int = setting(1_000_000, Integer(1, 100_000_000))
    """How many transactional ids a broker coordinates. Each takes about half a kilobyte of memory,
    so a million is far more than running producers need; but applications that take a new id for
    every transaction leave them behind until they expire. Further ids have to wait: the producer
    gets COORDINATOR_NOT_AVAILABLE, and the broker logs `too many transactional ids`."""

    partition_verification: bool = setting(True, Boolean())
    """Whether the leader of a partition asks the coordinator before it appends the first records of
    a transaction there, for producers that add partitions themselves. `true`, because a record that
    arrives late would otherwise leave a transaction open that no marker ends."""
