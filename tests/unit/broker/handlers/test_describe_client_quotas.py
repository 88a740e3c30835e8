"""DescribeClientQuotas: the quotas that match filters."""

import pytest

from kafscale.metadata.access.model import QuotaEntity
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    DescribeClientQuotasRequest,
    DescribedQuota,
    EntityFilter,
    EntityPart,
    QuotaValue,
)
from unit.broker.in_memory_broker import run_with_broker

QUOTAS = {
    QuotaEntity(user="alice"): {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.0},
    QuotaEntity(user="alice", client_id=""): {"request_rate": 5.0},
    QuotaEntity(ip="10.0.0.1"): {"connection_creation_rate": 3.0},
}
ALICES = DescribedQuota(
    [EntityPart("user", "alice")],
    [QuotaValue("consumer_byte_rate", 2000.0), QuotaValue("producer_byte_rate", 1000.0)],
)
ALICES_CLIENTS = DescribedQuota(
    [EntityPart("user", "alice"), EntityPart("client-id", None)], [QuotaValue("request_rate", 5.0)]
)
ADDRESS = DescribedQuota(
    [EntityPart("ip", "10.0.0.1")], [QuotaValue("connection_creation_rate", 3.0)]
)


async def describe(broker, *filters, strict=False, version=None):
    for entity, limits in QUOTAS.items():
        await broker.services.access_store.alter_quota(entity, limits)
    request = DescribeClientQuotasRequest(list(filters), strict)
    return await broker.ask(DESCRIBE_CLIENT_QUOTAS, request, version)


@pytest.mark.parametrize("version", DESCRIBE_CLIENT_QUOTAS.versions)
@pytest.mark.parametrize(
    ("filters", "strict", "expected"),
    [
        ([], False, [ADDRESS, ALICES, ALICES_CLIENTS]),
        ([], True, []),
        ([EntityFilter("user", 0, "alice")], False, [ALICES, ALICES_CLIENTS]),
        ([EntityFilter("user", 0, "alice")], True, [ALICES]),
        ([EntityFilter("user", 0, "bob")], False, []),
        ([EntityFilter("client-id", 1, None)], False, [ALICES_CLIENTS]),
        ([EntityFilter("ip", 2, None)], True, [ADDRESS]),
        (
            [EntityFilter("user", 2, None), EntityFilter("client-id", 1, None)],
            True,
            [ALICES_CLIENTS],
        ),
    ],
)
def test_matching_quotas_are_returned(version, filters, strict, expected):
    async def body(broker):
        response = await describe(broker, *filters, strict=strict, version=version)
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert response.quotas == expected

    run_with_broker(body)


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ([EntityFilter("planet", 0, "mars")], ErrorCode.UNSUPPORTED_VERSION),
        ([EntityFilter("user", 7, None)], ErrorCode.INVALID_REQUEST),
        ([EntityFilter("user", 0, "a"), EntityFilter("user", 0, "b")], ErrorCode.INVALID_REQUEST),
        ([EntityFilter("user", 0, "a"), EntityFilter("ip", 0, "::1")], ErrorCode.INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("version", DESCRIBE_CLIENT_QUOTAS.versions)
def test_invalid_filters_are_refused(filters, code, version):
    async def body(broker):
        response = await describe(broker, *filters, version=version)
        assert response.error_code == code
        assert response.error_message
        assert response.quotas is None

    run_with_broker(body)
