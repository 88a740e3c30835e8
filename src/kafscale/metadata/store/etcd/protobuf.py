"""Between the store's vocabulary and etcd's messages.

Keys are text here and bytes in etcd, in the same order: that of code points is that of UTF-8.
"""

from collections.abc import Sequence

from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.base import (
    Compare,
    Delete,
    DeletePrefix,
    Entry,
    Event,
    EventKind,
    Operation,
    Put,
    prefix_end,
)


def interval(prefix: str) -> tuple[bytes, bytes]:
    """The first key that begins with the prefix, and the first after all those that do."""
    return prefix.encode(), prefix_end(prefix).encode()


def entry(pair: rpc.KeyValue) -> Entry:
    return Entry(pair.key.decode(), pair.value, pair.create_revision, pair.mod_revision, pair.lease)


def event(change: rpc.Event) -> Event:
    pair = change.kv
    kind = EventKind.DELETE if change.type == rpc.Event.DELETE else EventKind.PUT
    return Event(
        kind, pair.key.decode(), pair.value, pair.mod_revision, pair.create_revision, pair.lease
    )


def transaction(compares: Sequence[Compare], operations: Sequence[Operation]) -> rpc.TxnRequest:
    request = rpc.TxnRequest(
        compare=[_compare(compare) for compare in compares],
        success=[_operation(operation) for operation in operations],
    )
    if not operations:
        # A member responses a transaction that has nothing in it from what it happens to know. One
        # that reads is answered, as a read is, from what has been committed.
        look = rpc.RequestOp(request_range=rpc.RangeRequest(key=b"/", keys_only=True))
        request.success.append(look)
        request.failure.append(look)
    return request


def _compare(compare: Compare) -> rpc.Compare:
    key = compare.key.encode()
    if compare.mod_revision is not None:
        return rpc.Compare(target=rpc.Compare.MOD, key=key, mod_revision=compare.mod_revision)
    if compare.create_revision is not None:
        return rpc.Compare(
            target=rpc.Compare.CREATE, key=key, create_revision=compare.create_revision
        )
    return rpc.Compare(target=rpc.Compare.VALUE, key=key, value=compare.value)


def _operation(operation: Operation) -> rpc.RequestOp:
    match operation:
        case Put(key, value, lease):
            put = rpc.PutRequest(key=key.encode(), value=value, lease=lease)
            return rpc.RequestOp(request_put=put)
        case Delete(key):
            return rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=key.encode()))
        case DeletePrefix(prefix):
            first, end = interval(prefix)
            delete = rpc.DeleteRangeRequest(key=first, range_end=end)
            return rpc.RequestOp(request_delete_range=delete)
