"""The permissions table, checked with real requests: handlers enforce what it says.

Every row has at least one request, in every version: a client that is authorized for everything
else gets the error of the row, and no longer does once one of the operations is granted.
"""

import pytest

from kafscale.broker.requests.routes import ROUTES
from kafscale.broker.security.permissions import PERMISSIONS
from kafscale.protocol.messages.api_versions import API_VERSIONS
from services.for_each import check_each, for_each
from unit.broker.handlers import (
    permission_cases_cluster,
    permission_cases_groups,
    permission_cases_topics,
    permission_cases_transactions,
)
from unit.broker.handlers.authorization_cases import (
    ACLS_ENABLED,
    DENIALS,
    allow_everything,
    client,
    codes,
    deny,
    prepare_topic,
)
from unit.broker.in_memory_broker import run_with_broker

CASES = [
    *permission_cases_topics.CASES,
    *permission_cases_groups.CASES,
    *permission_cases_cluster.CASES,
    *permission_cases_transactions.CASES,
]
REQUIREMENTS = {
    (api, requirement.grant): requirement
    for api, requirements in PERMISSIONS.items()
    for requirement in requirements
}


def test_every_api_has_an_entry():
    assert PERMISSIONS.keys() == {API_VERSIONS.name, *(route.api.name for route in ROUTES)}


def test_every_row_has_a_case_and_every_case_a_row():
    assert {case.key for case in CASES} == REQUIREMENTS.keys()


def test_grants_are_unique_per_api():
    assert sum(map(len, PERMISSIONS.values())) == len(REQUIREMENTS)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_required_operation_is_enforced(case):
    check_each(case.version_numbers, lambda version: _check_enforced(case, version))


def _check_enforced(case, version):
    requirement = REQUIREMENTS[case.key]

    async def body(broker):
        prepared = await prepare_topic(broker)
        if case.prepare is not None:
            await case.prepare(broker)
        await allow_everything(broker)

        async def is_denied():
            request = case.request(prepared, version)
            response = await broker.ask(case.api, request, version, client=client())
            return case.is_denied(requirement, response)

        await deny(broker, requirement.grants)
        assert await is_denied()
        for granted in requirement.grants:
            await deny(broker, [grant for grant in requirement.grants if grant != granted])
            assert not await is_denied()

    run_with_broker(body, config=ACLS_ENABLED)


@for_each(CASES)
def test_client_without_acls_is_denied(case):
    """Denied by default: without ACLs, the response is an error, or empty."""
    requirement = REQUIREMENTS[case.key]
    version = case.version_numbers[-1]

    async def body(broker):
        prepared = await prepare_topic(broker)
        if case.prepare is not None:
            await case.prepare(broker)
        response = await broker.ask(
            case.api, case.request(prepared, version), version, client=client()
        )
        if requirement.is_filtered:
            assert not case.outcome(response)
        else:
            assert codes(response) & DENIALS

    run_with_broker(body, config=ACLS_ENABLED)
