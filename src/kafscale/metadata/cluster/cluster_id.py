"""The cluster's identity: one id, chosen by whoever starts first and kept for good."""

from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import MetadataStore, Put, absent


async def cluster_id(store: MetadataStore, candidate: str) -> str:
    """The id of the cluster, which is `candidate` if it has none yet."""
    await store.commit([absent(keys.CLUSTER_ID)], [Put(keys.CLUSTER_ID, candidate.encode())])
    entry = await store.get(keys.CLUSTER_ID)
    assert entry, "nobody deletes a cluster's id"
    return entry.value.decode()
