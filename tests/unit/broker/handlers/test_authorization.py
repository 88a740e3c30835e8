"""The table of permissions, walked with real requests: what it says is what is asked for.

Every row is shown by at least one request, in every version: somebody who may do everything else is
told the error that the row names, and is not once one of the permissions is given back.
"""

import pytest

from kafscale.broker.requests.routes import ROUTES
from kafscale.broker.security.permissions import PERMISSIONS, page
from kafscale.protocol.messages.api_versions import API_VERSIONS
from unit.broker.handlers import needs_of_clusters, needs_of_groups, needs_of_topics
from unit.broker.handlers.authorized import (
    AUTHORIZED,
    DENIALS,
    allow_everything,
    client,
    codes,
    deny,
    scene,
)
from unit.broker.handlers.serving import serve

CASES = [*needs_of_topics.CASES, *needs_of_groups.CASES, *needs_of_clusters.CASES]
NEEDS = {(api, need.grant): need for api, needs in PERMISSIONS.items() for need in needs}


def walk():
    for case in CASES:
        for version in case.version_numbers:
            yield pytest.param(case, version, id=f"{case}-v{version}")


def test_every_api_has_an_entry():
    assert PERMISSIONS.keys() == {API_VERSIONS.name, *(route.api.name for route in ROUTES)}


def test_every_row_has_a_case_and_every_case_a_row():
    assert {case.key for case in CASES} == NEEDS.keys()


def test_a_grant_stands_in_one_row_of_an_api():
    assert sum(map(len, PERMISSIONS.values())) == len(NEEDS)


@pytest.mark.parametrize(("case", "version"), list(walk()))
def test_what_the_table_says_is_needed(case, version):
    need = NEEDS[case.key]

    async def body(broker):
        here = await scene(broker)
        if case.prepare is not None:
            await case.prepare(broker)
        await allow_everything(broker)

        async def is_denied():
            request = case.ask(here, version)
            response = await broker.ask(case.api, request, version, client=client())
            return case.is_denied(need, response)

        await deny(broker, need.grants)
        assert await is_denied()
        for given in need.grants:
            await deny(broker, [grant for grant in need.grants if grant != given])
            assert not await is_denied()

    serve(body, config=AUTHORIZED)


@pytest.mark.parametrize("case", [pytest.param(case, id=str(case)) for case in CASES])
def test_who_may_do_nothing_is_told_so(case):
    """Closed by default: where there are no rules, the answer is an error, or empty."""
    need = NEEDS[case.key]
    version = case.version_numbers[-1]

    async def body(broker):
        here = await scene(broker)
        if case.prepare is not None:
            await case.prepare(broker)
        response = await broker.ask(case.api, case.ask(here, version), version, client=client())
        if need.is_filtered:
            assert not case.told(response)
        else:
            assert codes(response) & DENIALS

    serve(body, config=AUTHORIZED)


def test_the_documentation_tells_every_row():
    text = page()
    for api, needs in PERMISSIONS.items():
        lines = [line for line in text.splitlines() if line.startswith(f"| {api} |")]
        assert len(lines) == max(len(needs), 1)
        assert all(need.code.name in text or need.is_filtered for need in needs)
