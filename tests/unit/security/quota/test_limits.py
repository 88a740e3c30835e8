"""Which limits hold for whom: Kafka's order of precedence, and who shares a limit."""

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
def test_the_most_specific_limit_holds(first):
    rules = {
        entity: {PRODUCER_BYTE_RATE: float(index + 1)}
        for index, entity in enumerate(ORDER)
        if index >= first
    }
    assert rate(Quotas(rules)) == first + 1


def test_each_key_has_its_own_most_specific_limit():
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
def test_a_limit_is_shared_by_what_its_entity_tells_apart(entity, shared_with):
    quotas = Quotas({entity: {PRODUCER_BYTE_RATE: 1.0}})
    ours = quotas.for_client("alice", "loader", 0)[PRODUCER_BYTE_RATE]
    same = {
        (user, client_id)
        for user in ("alice", "bob")
        for client_id in ("loader", "other")
        if quotas.for_client(user, client_id, 0).get(PRODUCER_BYTE_RATE) is ours
    }
    assert same == shared_with


def test_who_has_no_name_is_not_beyond_limits():
    assert rate(Quotas({QuotaEntity(client_id=""): {PRODUCER_BYTE_RATE: 3.0}}), client_id="") == 3


def test_addresses_have_limits_of_their_own():
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


def test_what_was_used_stays_used_when_the_rules_change():
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


def test_what_nobody_here_understands_limits_nothing():
    quotas = Quotas({ORDER[2]: {"happiness": 1.0, PRODUCER_BYTE_RATE: 0.0}})
    assert quotas.for_client("alice", "loader", 0) == {}


def test_many_names_are_not_remembered_for_ever_but_debts_are_first():
    quotas = Quotas({QuotaEntity(client_id=""): {REQUEST_RATE: 1.0}}, clients_max=10)
    quotas.for_client("alice", "debtor", 0)[REQUEST_RATE].consume(9, 0)
    for number in range(1000):
        assert quotas.for_client("alice", f"client-{number}", 0)[REQUEST_RATE].debt_seconds(0) == 0
    assert quotas.for_client("alice", "debtor", 0)[REQUEST_RATE].debt_seconds(0) == 8
    assert len(quotas._buckets_by_client) <= 10
    assert len(quotas._buckets) <= 20


def test_a_flood_of_debtors_is_forgotten_as_well():
    quotas = Quotas({QuotaEntity(client_id=""): {REQUEST_RATE: 1.0}}, clients_max=10)
    for number in range(1000):
        quotas.for_client("alice", f"client-{number}", 0)[REQUEST_RATE].consume(9, 0)
    assert len(quotas._buckets) <= 20
