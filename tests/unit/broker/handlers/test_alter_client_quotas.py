"""AlterClientQuotas: set and removed quotas, and invalid requests."""

import math

import pytest
from structlog.testing import capture_logs

from kafscale.metadata.access.model import QuotaEntity
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityPart,
    QuotaChange,
    QuotaToAlter,
)
from unit.broker.in_memory_broker import ADMIN_DISABLED, run_with_broker

ALICE = [EntityPart("user", "alice")]


def quota(entity, **changes):
    """None removes."""
    return QuotaToAlter(
        entity, [QuotaChange(key, value or 0.0, value is None) for key, value in changes.items()]
    )


async def alter(broker, *quotas, version=None, validate_only=False):
    request = AlterClientQuotasRequest(list(quotas), validate_only)
    response = await broker.ask(ALTER_CLIENT_QUOTAS, request, version)
    return [(ErrorCode.of(each.error_code), each.error_message) for each in response.quotas]


@pytest.mark.parametrize("version", ALTER_CLIENT_QUOTAS.versions)
def test_quotas_are_set_and_removed(version):
    async def body(broker):
        alices = quota(ALICE, producer_byte_rate=1000.0, consumer_byte_rate=2000.0)
        default = quota([EntityPart("user", None), EntityPart("client-id", "a")], request_rate=0.5)
        responses = await alter(broker, alices, default, version=version)
        assert responses == [(ErrorCode.NONE, None)] * 2
        assert broker.services.access_store.quotas == {
            QuotaEntity(user="alice"): {"producer_byte_rate": 1000, "consumer_byte_rate": 2000},
            QuotaEntity(user="", client_id="a"): {"request_rate": 0.5},
        }

        changes = quota(ALICE, producer_byte_rate=None, consumer_byte_rate=3000.0)
        gone = quota(default.entity, request_rate=None, never_heard_of=None)
        await alter(broker, changes, gone, version=version)
        assert broker.services.access_store.quotas == {
            QuotaEntity(user="alice"): {"consumer_byte_rate": 3000}
        }

    run_with_broker(body)


def test_response_names_the_entity():
    async def body(broker):
        entities = [ALICE, [EntityPart("client-id", None)], [EntityPart("ip", "::FFFF:10.0.0.1")]]
        request = AlterClientQuotasRequest([quota(entity) for entity in entities])
        response = await broker.ask(ALTER_CLIENT_QUOTAS, request)
        assert [each.entity for each in response.quotas] == entities

    run_with_broker(body)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (quota([], request_rate=1.0), "Invalid empty client quota entity"),
        (quota([EntityPart("planet", "mars")]), "Unhandled client quota entity type: planet"),
        (quota([EntityPart("ip", "10.0.0")]), "10.0.0 is not a valid IP address."),
        (
            quota([EntityPart("ip", "10.0.0.1"), *ALICE], connection_creation_rate=1.0),
            (
                "Invalid quota entity combination, IP entity should"
                "not be combined with User or ClientId"
            ),
        ),
        (
            quota([EntityPart("ip", "10.0.0.1")], request_rate=1.0),
            "Invalid configuration key request_rate",
        ),
        (quota(ALICE, happiness=1.0), "Invalid configuration key happiness"),
        (quota(ALICE, request_rate=math.nan), "Quota request_rate must be greater than 0"),
        (quota(ALICE, producer_byte_rate=1.5), "producer_byte_rate cannot be a fractional value."),
        (
            QuotaToAlter(ALICE, [QuotaChange("request_rate", 1.0)] * 2),
            "Duplicate quota key request_rate",
        ),
        (
            quota(ALICE, consumer_byte_rate=5.0, producer_byte_rate=-1.0),
            "Quota producer_byte_rate must be greater than 0",
        ),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_invalid_entity_fails_on_its_own(refused, message, validate_only):
    async def body(broker):
        fine = quota([EntityPart("client-id", "loader")], request_rate=7.0)
        responses = await alter(broker, refused, fine, validate_only=validate_only)
        assert responses == [(ErrorCode.INVALID_REQUEST, message), (ErrorCode.NONE, None)]
        kept = {} if validate_only else {QuotaEntity(client_id="loader"): {"request_rate": 7}}
        assert broker.services.access_store.quotas == kept

    run_with_broker(body)


def test_duplicate_entity_is_refused_and_answered_once():
    async def body(broker):
        both = [EntityPart("user", "alice"), EntityPart("client-id", "loader")]
        responses = await alter(
            broker, quota(both, request_rate=1.0), quota(both[::-1], request_rate=2.0)
        )
        assert responses == [(ErrorCode.INVALID_REQUEST, "Each entity must appear at most once.")]
        assert broker.services.access_store.quotas == {}

    run_with_broker(body)


def test_quota_changes_are_audited():
    async def body(broker):
        with capture_logs() as lines:
            await alter(broker, quota(ALICE, request_rate=1.0))
            await alter(broker, quota(ALICE, request_rate=2.0), validate_only=True)
        (line,) = [line for line in lines if line.get("change") == "quota altered"]
        assert line["entity"] == {"user": "alice"}
        assert line["quota"] == {"request_rate": 1.0}

    run_with_broker(body)


@pytest.mark.parametrize("version", ALTER_CLIENT_QUOTAS.versions)
def test_alter_client_quotas_is_refused_if_admin_is_disabled(version):
    async def body(broker):
        ((code, _),) = await alter(broker, quota(ALICE, request_rate=1.0), version=version)
        assert code == ErrorCode.POLICY_VIOLATION
        assert broker.services.access_store.quotas == {}

    run_with_broker(body, config=ADMIN_DISABLED)
