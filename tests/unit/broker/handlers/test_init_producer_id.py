"""InitProducerId: new ids for idempotent producers, and those of transactional ids.

tests/conformance/transactions compares transactional producers with Apache Kafka.
"""

import pytest

from doubles import virtual_time
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from unit.broker.in_memory_broker import Stores, run_with_broker, running_broker


async def take(broker, version=INIT_PRODUCER_ID.version_max, transactional_id=None, **fields):
    request = InitProducerIdRequest(transactional_id=transactional_id, **fields)
    response = await broker.ask(INIT_PRODUCER_ID, request, version)
    return response.error_code, response.producer_id, response.producer_epoch


@pytest.mark.parametrize("version", INIT_PRODUCER_ID.versions)
def test_producer_ids_are_unique(version):
    async def body(broker):
        responses = [await take(broker, version) for _ in range(3)]

        assert {(code, epoch) for code, _, epoch in responses} == {(ErrorCode.NONE, 0)}
        assert len({producer_id for _, producer_id, _ in responses}) == 3
        assert all(producer_id >= 0 for _, producer_id, _ in responses)

    run_with_broker(body)


def test_producer_ids_are_not_reused_after_restart():
    async def scenario(_random):
        stores = Stores()
        taken = []
        for _ in range(2):
            async with running_broker(stores) as broker:
                taken += [(await take(broker))[1] for _ in range(2)]
        assert len(set(taken)) == 4

    virtual_time.run(scenario, seed=0)


@pytest.mark.parametrize("version", range(3, INIT_PRODUCER_ID.version_max + 1))
def test_producer_with_an_id_gets_a_new_one(version):
    async def body(broker):
        _, before, _ = await take(broker, version)
        code, after, epoch = await take(broker, version, producer_id=before, producer_epoch=0)

        assert (code, epoch) == (ErrorCode.NONE, 0)
        assert after != before

    run_with_broker(body)


@pytest.mark.parametrize("half", [{"producer_id": 5}, {"producer_epoch": 0}])
def test_id_without_epoch_is_refused(half):
    async def body(broker):
        assert await take(broker, **half) == (ErrorCode.INVALID_REQUEST, -1, -1)

    run_with_broker(body)


@pytest.mark.parametrize("version", INIT_PRODUCER_ID.versions)
def test_transactional_id_keeps_its_producer_id(version):
    async def body(broker):
        responses = [
            await take(broker, version, "transfers", transaction_timeout_ms=1000) for _ in range(3)
        ]
        assert {(code, producer_id) for code, producer_id, _ in responses} == {(0, 0)}
        assert [epoch for _, _, epoch in responses] == [0, 1, 2]

    run_with_broker(body)


@pytest.mark.parametrize("version", INIT_PRODUCER_ID.versions)
@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "error"),
    [
        ("", 1000, ErrorCode.INVALID_REQUEST),
        ("x" * 1025, 1000, ErrorCode.INVALID_REQUEST),
        ("transfers", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("transfers", 900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_invalid_transactional_requests_are_refused(version, transactional_id, timeout_ms, error):
    async def body(broker):
        response = await take(broker, version, transactional_id, transaction_timeout_ms=timeout_ms)
        assert response == (error, -1, -1)

    run_with_broker(body)
