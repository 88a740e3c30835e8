"""Commits that would fill etcd, with a real etcd that has a small quota."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafscale.metadata.store.etcd.maintenance import Maintenance, MemberStatus
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from kafscale.text.units import MIB
from services import etcd_programs, s3_server
from services.broker import BrokerProcess
from services.etcd_server import PROGRAMS, EtcdServer
from services.exposition import sample
from services.s3_server import broker_settings
from services.selection import long_except
from services.waiting import wait_until
from services.wire import Wire, batch_of

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not s3_server.is_available(), reason="no Go here to build an S3 server"),
]

QUOTA = 64 * MIB
PARTITIONS = 240
METADATA = "m" * 4096
FILL_S_MAX = 90
HONEST_S_MAX = 20
"""How long an honest client may have to retry a commit."""
THROTTLED_S = 15
"""How long the attack continues after its first refusal."""


@pytest.fixture(params=long_except(["newest", "old"], "old".__eq__))
def reports_quota(request) -> bool:
    """Whether etcd is one that reports its quota."""
    if request.param == "newest" and not etcd_programs.is_available():
        pytest.skip("no Go here to build etcd with")
    return bool(request.param == "newest")


@pytest.fixture
def etcd(tmp_path, reports_quota) -> Iterator[EtcdServer]:
    programs = etcd_programs.directory() if reports_quota else PROGRAMS
    options = ["--quota-backend-bytes", str(QUOTA)]
    with EtcdServer(tmp_path / "etcd", options=options, programs=programs) as server:
        yield server


@pytest.fixture
def broker(tmp_path, etcd, s3, reports_quota) -> Iterator[BrokerProcess]:
    settings = {"etcd_endpoints": etcd.members[0].endpoint}
    if not reports_quota:
        settings["etcd_quota"] = str(QUOTA)
    with BrokerProcess(tmp_path / "broker", **settings, **broker_settings(s3.bucket)) as running:
        yield running


@pytest.fixture(autouse=True)
def _directories(tmp_path) -> None:
    (tmp_path / "etcd").mkdir()


def status(etcd: EtcdServer) -> MemberStatus:
    async def ask(_store: object) -> MemberStatus:
        settings = etcd.settings()
        async with Maintenance(settings.endpoints[0], settings) as member:
            return await member.status()

    return etcd.run(ask)


def commit(wire: Wire, group: str, count: int, offset: int, metadata: str = "") -> ErrorCode:
    partitions = [PartitionToCommit(index, offset, metadata=metadata) for index in range(count)]
    request = OffsetCommitRequest(
        group_id=group, topics=[TopicToCommit("wide", partitions=partitions)]
    )
    response = wire.call(OFFSET_COMMIT, 8, request)
    [code] = {each.error_code for each in response.topics[0].partitions}
    return ErrorCode.of(code)


class Attacker(threading.Thread):
    """Commits as fast as it can over one connection, and less at a time once it is refused."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._stopped = threading.Event()
        self.admitted_bytes = 0
        self.refusals = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._attack()
        except (OSError, AssertionError, ValueError) as error:
            self.error = error

    def stop(self) -> None:
        self._stopped.set()
        self.join(30)

    def _attack(self) -> None:
        count, number = PARTITIONS, 0
        with Wire(self._port, timeout_s=30) as wire:
            while not self._stopped.is_set():
                number += 1
                code = commit(wire, f"greedy-{number % 3}", count, number, METADATA)
                if code == ErrorCode.NONE:
                    self.admitted_bytes += count * len(METADATA)
                    continue
                assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, code
                self.refusals += 1
                count = max(count // 4, 1)


@contextmanager
def attack(port: int) -> Iterator[Attacker]:
    attacker = Attacker(port)
    attacker.start()
    try:
        yield attacker
    finally:
        attacker.stop()


def test_commits_do_not_fill_etcd_and_small_ones_go_on(broker, etcd):
    """The worst case: all clients are one user, because none authenticates, and etcd keeps all."""
    with Wire(broker.port, timeout_s=30) as wire:
        wire.create("wide", PARTITIONS)
        offset, waited_s_max = 0, 0.0
        with attack(broker.port) as attacker:
            ends_at = time.monotonic() + FILL_S_MAX
            is_throttled = False
            while time.monotonic() < ends_at:
                assert attacker.error is None
                if attacker.refusals and not is_throttled:
                    is_throttled, ends_at = True, time.monotonic() + THROTTLED_S
                offset += 1
                began = time.monotonic()
                while commit(wire, "honest", 1, offset) != ErrorCode.NONE:
                    assert time.monotonic() - began < HONEST_S_MAX
                waited_s_max = max(waited_s_max, time.monotonic() - began)
                time.sleep(0.2)
            assert is_throttled
            wire.create("still-possible")
            assert wire.produce("still-possible", batch_of([b"value"])).error_code == 0
        assert attacker.error is None
    now = status(etcd)
    assert not now.has_no_space
    assert 0.7 * QUOTA < now.database_used_bytes < 0.95 * QUOTA
    answer = broker.ready()
    assert answer["ready"] is True
    assert "offset commits are throttled" in answer["warnings"]["etcd"]
    _, text = broker.http("/metrics")
    assert sample(text, 'throttled_responses_total{quota="offset_commits"}') > 0
    print(  # noqa: T201 - figures for people.
        json.dumps(
            {
                "admittedBytes": attacker.admitted_bytes,
                "usedBytes": now.database_used_bytes,
                "fileBytes": now.database_bytes,
                "honestCommits": offset,
                "waitedSecondsMax": round(waited_s_max, 2),
            }
        )
    )


def test_readyz_tells_that_etcd_has_no_space_and_what_to_do(broker, etcd):
    with Wire(broker.port) as wire:
        wire.create("wide", 1)
        fill(etcd)
        assert status(etcd).has_no_space
        wait_until(
            lambda: "NOSPACE" in broker.ready()["warnings"].get("etcd", ""),
            "the warning",
            seconds_max=20,
        )
        code, text = broker.http("/readyz")
        assert code == 200, "records are still produced and consumed"
        for part in ("NOSPACE", "accepts no writes", "compact", "defragment", "disarm"):
            assert part in json.loads(text)["warnings"]["etcd"]
        assert sample(broker.http("/metrics")[1], "etcd_no_space") == 1
        assert wire.produce("wide", batch_of([b"value"])).error_code == 0
        assert commit(wire, "readers", 1, 1) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

        # What the runbook says.
        etcd.control("del", "--prefix", "/ballast/")
        etcd.compact(status(etcd).revision)
        etcd.control("defrag")
        etcd.control("alarm", "disarm")
        wait_until(lambda: not broker.ready()["warnings"], "recovery", seconds_max=20)
        wait_until(lambda: commit(wire, "readers", 1, 2) == ErrorCode.NONE, "a commit")


def fill(etcd: EtcdServer) -> None:
    """Write until etcd raises the alarm."""
    for number in range(QUOTA // MIB + 1):
        try:
            etcd.control("put", f"/ballast/{number}", text="x" * MIB)
        except AssertionError as error:
            assert "database space exceeded" in str(error)  # noqa: PT017 - of etcdctl.
            return
    raise AssertionError("etcd has no quota")
