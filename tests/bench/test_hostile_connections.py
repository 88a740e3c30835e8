"""Honest clients beside a crowd of strangers: their latency stays within twice what it is alone.

Eight clients are logged in, half of them over TLS; each has a produce and a fetch on its way at the
same time, fifty times a second. They are measured alone and beside strangers in turns. Strangers
come from two processes, so many a second that a broker notices (`PER_SECOND`), and not so many that
the processes, which share a few cores, starve each other: how the broker shares its one loop is
what is asked here.
"""

import asyncio
import random
import ssl
from contextlib import ExitStack
from pathlib import Path

import pytest
import uvloop

from bench.contest import Figures
from bench.honest_line import HonestLine
from bench.hostile_crowd import crowd
from bench.process_usage import cpu_seconds
from bench.pulse import Pulse
from bench.staff import running
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.protocol.messages.produce import PRODUCE
from services.secured_broker import ADMIN, SecuredBroker, password_of
from services.siege import INSIDE, OPEN, SECURE, Siege
from services.wire import batch_of, produce_request

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

CLIENTS = 8
PERIOD_SECONDS = 0.02
PER_SECOND = 400
PROCESSES = 2
ROUNDS = 5
SECONDS = 6
WARM_UP_SECONDS = 1.0
RATIO_MAX = 2.0
ALONE, BESIDE = "alone", "beside strangers"
TOPIC = "honest"


def test_latency_beside_strangers(contests, scaled, tmp_path):
    contest = contests.new(
        f"{CLIENTS} clients, {2 * CLIENTS / PERIOD_SECONDS:,.0f} requests a second, beside"
        f" {PER_SECOND} strangers a second",
        ALONE,
    )
    seconds = scaled(SECONDS)
    with Siege(tmp_path, network_connection_timeout="5000ms") as siege:
        with siege.admin() as wire:
            wire.create(TOPIC, partitions=CLIENTS)
        for _ in range(ROUNDS):
            contest.add(ALONE, uvloop.run(measure(siege.broker, seconds)))
            contest.add(BESIDE, besieged(siege, seconds))
    alone, beside = contest.medians(ALONE), contest.medians(BESIDE)
    for name in ("produce p50 ms", "produce p99 ms", "fetch p50 ms", "fetch p99 ms"):
        assert beside[name] <= RATIO_MAX * alone[name], name


def besieged(siege: Siege, seconds: float) -> Figures:
    ports = {listener: siege.port(listener) for listener in (OPEN, INSIDE, SECURE)}
    hello = _hello(siege.broker.certificates.authority)
    with ExitStack() as stack:
        crowds = [
            stack.enter_context(
                crowd(
                    ports,
                    hello,
                    per_second=PER_SECOND / PROCESSES,
                    seconds=seconds + WARM_UP_SECONDS + 2,
                )
            )
            for _ in range(PROCESSES)
        ]
        figures = uvloop.run(measure(siege.broker, seconds, warm_up_seconds=WARM_UP_SECONDS + 1))
        attempts = sum(sum(each.attempts().values()) for each in crowds)
    return figures | {"strangers/s": attempts / (seconds + WARM_UP_SECONDS + 2)}


async def measure(
    broker: SecuredBroker, seconds: float, warm_up_seconds: float = WARM_UP_SECONDS
) -> Figures:
    """How long the requests of honest clients take."""
    chance = random.Random(0)
    produces, fetches = Pulse(PERIOD_SECONDS, chance), Pulse(PERIOD_SECONDS, chance)
    lines = [await _enter(broker, number) for number in range(CLIENTS)]
    works = [
        work
        for number, line in enumerate(lines)
        for work in (
            produces.beat(lambda line=line, number=number: _produce(line, number)),
            fetches.beat(lambda line=line, number=number: _fetch(line, number)),
        )
    ]
    async with running(works):
        await asyncio.sleep(warm_up_seconds)
        produces.seconds.clear()
        fetches.seconds.clear()
        used_seconds = cpu_seconds(broker.process_id)
        await asyncio.sleep(seconds)
        used_seconds = cpu_seconds(broker.process_id) - used_seconds
    for line in lines:
        await line.leave()
    return {
        "produce p50 ms": produces.percentile_ms(50),
        "produce p99 ms": produces.percentile_ms(99),
        "fetch p50 ms": fetches.percentile_ms(50),
        "fetch p99 ms": fetches.percentile_ms(99),
        "CPU %": 100 * used_seconds / seconds,
    }


async def _enter(broker: SecuredBroker, number: int) -> HonestLine:
    way = broker.plain(ADMIN)
    if number % 2:
        return await HonestLine.enter(way.port, ADMIN, password_of(ADMIN), way.tls())
    return await HonestLine.enter(broker.ports[INSIDE], ADMIN, password_of(ADMIN))


async def _produce(line: HonestLine, partition: int) -> None:
    request = produce_request(TOPIC, batch_of([b"x" * 100]), partition=partition)
    answer = await line.ask(PRODUCE, 9, request)
    assert answer.topics[0].partitions[0].error_code == 0


async def _fetch(line: HonestLine, partition: int) -> None:
    asked = PartitionToFetch(index=partition, offset=0, max_bytes=1000)
    request = FetchRequest(max_wait_ms=0, topics=[TopicToFetch(TOPIC, partitions=[asked])])
    answer = await line.ask(FETCH, 11, request)
    assert answer.topics[0].partitions[0].error_code == 0


def _hello(authority: Path) -> bytes:
    """What a client of TLS says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=authority)
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()
