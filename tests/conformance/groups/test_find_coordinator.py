"""FindCoordinator, in all versions and for all key types."""

import pytest

from conformance.groups.servers import START_S_MAX
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest

pytestmark = pytest.mark.timeout(START_S_MAX)

SINGLE_VERSIONS = [0, 1, 2, 3]
BATCHED_VERSIONS = [4, 5, 6]


@pytest.mark.parametrize("version", SINGLE_VERSIONS)
@pytest.mark.parametrize("key", ["group", ""])
def test_find_coordinator_of_one_group(client, version, key):
    client.call(FIND_COORDINATOR, version, FindCoordinatorRequest(key))


@pytest.mark.parametrize("version", BATCHED_VERSIONS)
@pytest.mark.parametrize("keys", [["a"], ["a", "b", ""], [""], [], ["a", "a"]])
def test_several_groups(client, version, keys):
    client.call(FIND_COORDINATOR, version, FindCoordinatorRequest(keys=keys))


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("kind", [-1, 3, 127])
def test_unknown_key_types(client, version, kind):
    request = FindCoordinatorRequest("key", kind, ["key", "other"])
    client.call(FIND_COORDINATOR, version, request)


@pytest.mark.parametrize("version", [4, 5])
def test_share_groups_in_older_versions(client, version):
    client.call(FIND_COORDINATOR, version, FindCoordinatorRequest("", 2, ["group:AAAA:0", "bad"]))
