"""Watch responses are regrouped by commit."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.etcd.watch import _Commits

CHANGES = st.lists(st.integers(1, 4), max_size=8)
"""How many keys each commit changes."""


def changes_of(counts):
    return [
        rpc.Event(kv=rpc.KeyValue(key=b"/%d" % index, mod_revision=revision))
        for revision, count in enumerate(counts, start=1)
        for index in range(count)
    ]


@given(st.lists(CHANGES, max_size=5), st.data())
def test_commits_are_regrouped(answers, data):
    """etcd sends complete commits in each response, but may split a response into fragments."""
    commits, regrouped, sizes = _Commits(), [], []
    for counts in answers:
        changes = changes_of(counts)
        cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(changes) - 1)))))
        edges = [0, *(cut for cut in cuts if cut < len(changes)), len(changes)]
        for first, end in pairwise(edges):
            response = rpc.WatchResponse(events=changes[first:end], fragment=end < len(changes))
            regrouped += commits.take(response)
        sizes += counts
    assert [len(events) for events in regrouped] == sizes
    for events in regrouped:
        assert len({event.mod_revision for event in events}) == 1
