"""AddOffsetsToTxn, TxnOffsetCommit, and OffsetFetch of stable offsets."""

import pytest

from conformance.groups.classic import describe as describe_group
from conformance.groups.classic import leave, stable_member, wait_until_empty
from conformance.groups.consumer import join_consumer
from conformance.groups.offsets import commit as commit_without_transaction
from conformance.transactions.observation import committed_offsets, describe, ended, wait_for
from conformance.transactions.requests import (
    NONE,
    SECOND,
    Producer,
    add_offsets,
    commit_offsets,
    end,
    init,
    start,
)
from conformance.transactions.servers import START_S_MAX
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN
from kafscale.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from kafscale.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    PartitionToDelete,
    TopicToDelete,
)
from kafscale.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT

pytestmark = pytest.mark.timeout(START_S_MAX)

VERSIONS = list(TXN_OFFSET_COMMIT.versions)
MEMBER_VERSIONS = [version for version in VERSIONS if version >= 3]
SECOND_COMMIT = 5


def offsets(client, **fields) -> None:
    """Compare plain and stable offsets."""
    committed_offsets(client, **fields)
    committed_offsets(client, require_stable=True, **fields)


def both_kinds(client, producer, version=4, **fields) -> list[int]:
    """Add the group, as clients up to version 4 must, and commit."""
    if version < SECOND_COMMIT:
        assert add_offsets(client, producer) == NONE
    return commit_offsets(client, producer, version, **fields)


# --- AddOffsetsToTxn ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", ADD_OFFSETS_TO_TXN.versions)
def test_add_offsets(client, version):
    producer = start(client)
    for wrong in [
        Producer(producer.id, producer.epoch + 1),
        Producer(producer.id, -1),
        Producer(987_654_321, producer.epoch),
    ]:
        add_offsets(client, wrong, version)
    add_offsets(client, producer, version, transactional_id="unknown")
    add_offsets(client, producer, version, transactional_id="")
    add_offsets(client, producer, version, group="")
    start(client)
    assert add_offsets(client, producer, version) != NONE


@pytest.mark.parametrize("version", ADD_OFFSETS_TO_TXN.versions)
@pytest.mark.parametrize("committed", [True, False])
def test_offsets_without_commits(client, version, committed):
    producer = start(client)
    assert add_offsets(client, producer, version) == NONE
    assert add_offsets(client, producer, version) == NONE
    offsets(client)
    ended(client, producer, committed=committed)
    offsets(client)


# --- TxnOffsetCommit ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("committed", [True, False])
def test_offsets_are_visible_with_the_outcome(client, version, committed):
    producer = start(client)
    partitions = {client.topic: [0, 2]}
    fields = {"metadata": "text", "leader_epoch": 0}
    assert both_kinds(client, producer, version, partitions=partitions, **fields) == [NONE, NONE]
    offsets(client)
    offsets(client, partitions={client.topic: [0, 1, 2]})
    describe_group(client)
    if version < SECOND_COMMIT:
        ended(client, producer, committed=committed)
    else:
        end(client, producer, SECOND, committed=committed)
        wait_for(client, "CompleteCommit" if committed else "CompleteAbort")
    offsets(client)
    describe_group(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_commits_of_one_transaction_merge(client, version):
    producer = start(client)
    both_kinds(client, producer, version, partitions={client.topic: [0, 1]}, offset=3)
    both_kinds(client, producer, version, partitions={client.topic: [1, 2]}, offset=5)
    both_kinds(client, producer, version, partitions={client.topic: [2]}, offset=4)
    offsets(client)
    end(client, producer, 4 if version < SECOND_COMMIT else SECOND)
    wait_for(client, "CompleteCommit")
    offsets(client)


@pytest.mark.parametrize("version", [versions for versions in VERSIONS if versions < 5])
def test_commit_without_added_offsets(client, version):
    producer = start(client)
    commit_offsets(client, producer, version)
    offsets(client)
    describe(client)
    end(client, producer)
    offsets(client)


def test_commit_adds_the_group_in_the_second_version(client):
    producer = start(client)
    assert commit_offsets(client, producer, SECOND_COMMIT) == [NONE]
    assert describe(client).transactions[0].transaction_state == "Ongoing"
    response = end(client, producer, SECOND)
    wait_for(client, "CompleteCommit")
    offsets(client)
    following = Producer(response.producer_id, response.producer_epoch)
    commit_offsets(client, producer, SECOND_COMMIT, offset=8)
    assert commit_offsets(client, following, SECOND_COMMIT, offset=9) == [NONE]
    offsets(client)
    end(client, following, SECOND, committed=False)
    wait_for(client, "CompleteAbort")
    offsets(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_partitions(client, version):
    producer = start(client)
    partitions = {client.topic: [0, 3, -1], "none": [0], "": [0]}
    both_kinds(client, producer, version, partitions=partitions)
    both_kinds(client, producer, version, partitions={"none": [0]})
    both_kinds(client, producer, version, partitions={})
    both_kinds(client, producer, version, partitions={client.topic: []})
    offsets(client)
    end(client, producer, 4 if version < SECOND_COMMIT else SECOND)
    wait_for(client, "CompleteCommit")
    offsets(client)


@pytest.mark.parametrize("version", VERSIONS)
def test_producers_that_do_not_match(client, version):
    producer = start(client)
    assert add_offsets(client, producer) == NONE
    for wrong in [
        Producer(producer.id, producer.epoch + 1),
        Producer(producer.id, -1),
        Producer(987_654_321, producer.epoch),
    ]:
        commit_offsets(client, wrong, version)
    commit_offsets(client, producer, version, transactional_id="unknown")
    commit_offsets(client, producer, version, transactional_id="")
    commit_offsets(client, producer, version, group="")
    commit_offsets(client, producer, version, group=f"{client.group}-other")
    start(client)
    commit_offsets(client, producer, version)
    offsets(client)


@pytest.mark.parametrize("version", MEMBER_VERSIONS)
def test_members_of_classic_groups(client, version):
    producer = start(client)
    fields = {"version": version}
    both_kinds(client, producer, member="unknown", generation=1, **fields)
    both_kinds(client, producer, member="unknown", generation=-1, **fields)
    both_kinds(client, producer, generation=1, **fields)
    both_kinds(client, producer, instance="instance", **fields)
    member = stable_member(client)
    assert both_kinds(client, producer, member=member, generation=1, **fields) == [NONE]
    both_kinds(client, producer, member=member, generation=2, **fields)
    both_kinds(client, producer, member=member, generation=0, **fields)
    both_kinds(client, producer, member="unknown", generation=1, **fields)
    both_kinds(client, producer, **fields)
    both_kinds(client, producer, instance="instance", member=member, generation=1, **fields)
    offsets(client)
    leave(client, (member, None))
    wait_until_empty(client)
    both_kinds(client, producer, member=member, generation=1, **fields)
    both_kinds(client, producer, **fields)
    end(client, producer, 4 if version < SECOND_COMMIT else SECOND)
    wait_for(client, "CompleteCommit")
    offsets(client)


@pytest.mark.parametrize("version", MEMBER_VERSIONS)
def test_static_members(client, version):
    producer = start(client)
    member = stable_member(client, instance="a")
    for fields in [
        {"member": member, "generation": 1, "instance": "a"},
        {"member": "other", "generation": 1, "instance": "a"},
        {"member": member, "generation": 1, "instance": "b"},
        {"member": member, "generation": 7, "instance": "a"},
    ]:
        both_kinds(client, producer, version, **fields)
    offsets(client)


@pytest.mark.parametrize("version", MEMBER_VERSIONS)
def test_members_of_consumer_groups(client, version):
    producer = start(client)
    joined = join_consumer(client, member="m", names=[client.topic])
    epoch = joined.member_epoch
    for fields in [
        {"member": "m", "generation": epoch},
        {"member": "m", "generation": epoch + 1},
        {"member": "m", "generation": epoch - 1},
        {"member": "unknown", "generation": epoch},
        {"member": "", "generation": -1},
        {"member": "", "generation": epoch},
    ]:
        both_kinds(client, producer, version, **fields)
    offsets(client)


@pytest.mark.parametrize(
    "fields",
    [
        {"offset": -1},
        {"offset": -2},
        {"offset": 2**63 - 1},
        {"leader_epoch": -2},
        {"metadata": None},
        {"metadata": "x" * 4096},
        {"metadata": "x" * 4097},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_boundary_values(client, fields):
    producer = start(client)
    both_kinds(client, producer, **fields)
    offsets(client)
    ended(client, producer)
    offsets(client)


# --- order and other requests -------------------------------------------------------------------


def test_later_commit_of_the_group_wins(client):
    """An offset counts where it was written, not where its transaction ended."""
    producer = start(client)
    both_kinds(client, producer, partitions={client.topic: [0, 1]}, offset=5)
    commit_without_transaction(client, partitions={client.topic: [0, 2]}, committed_offset=8)
    offsets(client)
    ended(client, producer)
    offsets(client)


def test_earlier_commit_of_the_group_loses(client):
    commit_without_transaction(client, partitions={client.topic: [0, 1]}, committed_offset=8)
    producer = start(client)
    both_kinds(client, producer, partitions={client.topic: [0]}, offset=5)
    offsets(client)
    ended(client, producer)
    offsets(client)


@pytest.mark.parametrize("first_committed", [True, False])
@pytest.mark.parametrize("second_committed", [True, False])
def test_two_producers_commit_for_one_group(client, first_committed, second_committed):
    other = f"{client.transactional_id}-other"
    first, second = start(client), start(client, transactional_id=other)
    both_kinds(client, first, offset=5)
    assert add_offsets(client, second, transactional_id=other) == NONE
    commit_offsets(client, second, transactional_id=other, offset=6)
    offsets(client)
    end(client, second, committed=second_committed, transactional_id=other)
    wait_for(client, "CompleteCommit" if second_committed else "CompleteAbort", other)
    offsets(client)
    ended(client, first, committed=first_committed)
    offsets(client)


def test_fenced_producer_leaves_no_pending_offsets(client):
    producer = start(client)
    both_kinds(client, producer)
    assert init(client).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    wait_for(client, "CompleteAbort")
    offsets(client)


@pytest.mark.parametrize("version", [1, 5, 6, 7, 8, 9])
def test_versions_of_offset_fetch(client, version):
    commit_without_transaction(client, partitions={client.topic: [1]})
    producer = start(client)
    both_kinds(client, producer)
    partitions = {client.topic: [0, 1, 2]}
    for require_stable in (False, True):
        committed_offsets(client, version, require_stable=require_stable, partitions=partitions)
    ended(client, producer)
    for require_stable in (False, True):
        committed_offsets(client, version, require_stable=require_stable, partitions=partitions)


def test_deletion_of_a_group_with_pending_offsets(client):
    producer = start(client)
    both_kinds(client, producer)
    client.call(DELETE_GROUPS, 2, DeleteGroupsRequest([client.group]))
    describe_group(client)
    offsets(client)
    ended(client, producer)
    offsets(client)
    describe_group(client)


def test_deletion_of_a_group_with_committed_and_pending_offsets(client):
    commit_without_transaction(client, partitions={client.topic: [0, 1]})
    producer = start(client)
    both_kinds(client, producer)
    client.call(DELETE_GROUPS, 2, DeleteGroupsRequest([client.group]))
    offsets(client)
    ended(client, producer)
    offsets(client)


def test_deletion_of_offsets_that_are_pending(client):
    commit_without_transaction(client, partitions={client.topic: [0, 1]})
    producer = start(client)
    both_kinds(client, producer)
    topics = [TopicToDelete(client.topic, [PartitionToDelete(0), PartitionToDelete(1)])]
    client.call(OFFSET_DELETE, 0, OffsetDeleteRequest(client.group, topics))
    offsets(client)
    ended(client, producer)
    offsets(client)


def test_deletion_of_a_topic_with_pending_offsets(client):
    other = f"{client.topic}-gone"
    client.create(other, partitions=1)
    producer = start(client)
    both_kinds(client, producer, partitions={other: [0], client.topic: [0]})
    client.delete(other)
    ended(client, producer)
    offsets(client, partitions={client.topic: [0]})
