"""`Quotas`: Kafka's precedence of limits, and which clients share a limit."""

import pytest

from kafscale.metadata.access.model import QuotaEntity
from kafscale.security.quota.limits import Quotas
from kafscale.security.quota.types import CONNECTION_CREATION_RATE, PRODUCER_BYTE_RATE, REQUEST_RATE

ORDER = [
    QuotaEntity(user="alice", client_id="loader"),
    QuotaEntity(user="alice", client_id=""),
    QuotaEntity(user="alice"),
    QuotaEntity(user="", client_id="loader"),
    QuotaEntity(user="", client_id=""),
    QuotaEntity(user=""),
    QuotaEntity(client_id="loader"),
    QuotaEntity(client_id=""),
]
"""As Kafka's documentation lists them."""


def rate(quotas, user="alice", client_id="loader", key=PRODUCER_BYTE_RATE):
    bucket = quotas.for_client(user, client_id, 0).get(key)
    return bucket and bucket.rate


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_most_specific_limit_applies(first):
    rules = {
        entity: {PRODUCER_BYTE_RATE: float(index + 1)}
        for index, entity in enumerate(ORDER)
        if index >= first
    }
    assert rate(Quotas(rules)) == first + 1


def test_precedence_is_per_quota_key():
    quotas = Quotas({ORDER[0]: {REQUEST_RATE: 5.0}, ORDER[2]: {PRODUCER_BYTE_RATE: 7.0}})
    assert rate(quotas) == 7
    assert rate(quotas, key=REQUEST_RATE) == 5


@pytest.mark.parametrize(
    ("entity", "shared_with"),
    [
        (ORDER[0], {("alice", "loader")}),
        (ORDER[1], {("alice", "loader")}),
        (ORDER[2], {("alice", "loader"), ("alice", "other")}),
        (ORDER[3], {("alice", "loader")}),
        (ORDER[4], {("alice", "loader")}),
        (ORDER[5], {("alice", "loader"), ("alice", "other")}),
        (ORDER[6], {("alice", "loader"), ("bob", "loader")}),
        (ORDER[7], {("alice", "loader"), ("bob", "loader")}),
    ],
)
def test_limit_is_shared_within_its_entity(entity, shared_with):
    quotas = Quotas({entity: {PRODUCER_BYTE_RATE: 1.0}})
    ours = quotas.for_client("alice", "loader", 0)[PRODUCER_BYTE_RATE]
    same = {
        (user, client_id)
        for user in ("alice", "bob")
        for client_id in ("loader", "other")
        if quotas.for_client(user, client_id, 0).get(PRODUCER_BYTE_RATE) is ours
    }
    assert same == shared_with


def test_clients_without_an_id_get_the_default():
    assert rate(Quotas({QuotaEntity(client_id=""): {PRODUCER_BYTE_RATE: 3.0}}), client_id="") == 3


def test_addresses_have_their_own_limits():
    rules = {
        QuotaEntity(ip=""): {CONNECTION_CREATION_RATE: 2.0},
        QuotaEntity(ip="10.0.0.1"): {CONNECTION_CREATION_RATE: 5.0},
    }
    quotas = Quotas(rules)
    first, second, third = (
        quotas.for_address(f"10.0.0.{last}", 0)[CONNECTION_CREATION_RATE] for last in (1, 2, 3)
    )
    assert (first.rate, second.rate, third.rate) == (5, 2, 2)
    assert second is not third
    assert quotas.for_client("alice", "loader", 0) == {}


def test_used_tokens_stay_used_after_a_change():
    rules = {ORDER[2]: {PRODUCER_BYTE_RATE: 10.0}}
    quotas = Quotas(rules)
    quotas.for_client("alice", "loader", 0)[PRODUCER_BYTE_RATE].consume(50, 0)
    rules[ORDER[2]] = {PRODUCER_BYTE_RATE: 20.0}
    quotas.invalidate()
    bucket = quotas.for_client("alice", "loader", 0)[PRODUCER_BYTE_RATE]
    assert bucket.debt_seconds(0) == 2

    rules.clear()
    quotas.invalidate()
    assert quotas.is_empty
    assert rate(quotas) is None


def test_unknown_quota_keys_are_ignored():
    quotas = Quotas({ORDER[2]: {"happiness": 1.0, PRODUCER_BYTE_RATE: 0.0}})
    assert quotas.for_client("alice", "loader", 0) == {}


def test_unused_buckets_are_evicted_first():
    quotas = Quotas({QuotaEntity(client_id=""): {REQUEST_RATE: 1.0}}, clients_max=10)
    quotas.for_client("alice", "debtor", 0)[REQUEST_RATE].consume(9, 0)
    for number in range(1000):
        assert quotas.for_client("alice", f"client-{number}", 0)[REQUEST_RATE].debt_seconds(0) == 0
    assert quotas.for_client("alice", "debtor", 0)[REQUEST_RATE].debt_seconds(0) == 8
    assert len(quotas._buckets_by_client) <= 10
    assert len(quotas._buckets) <= 20


def test_number_of_buckets_is_bounded():
    quotas = Quotas({QuotaEntity(client_id=""): {REQUEST_RATE: 1.0}}, clients_max=10)
    for number in range(1000):
        quotas.for_client("alice", f"client-{number}", 0)[REQUEST_RATE].consume(9, 0)
    assert len(quotas._buckets) <= 20
