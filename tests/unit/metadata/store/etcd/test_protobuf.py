from kafscale.metadata._generated import rpc_pb2 as rpc
from kafscale.metadata.store.base import (
    Compare,
    Delete,
    DeletePrefix,
    Entry,
    Event,
    EventKind,
    Put,
    absent,
)
from kafscale.metadata.store.etcd import protobuf


def test_entry_is_converted_from_key_value():
    pair = rpc.KeyValue(key="/é".encode(), value=b"1", create_revision=2, mod_revision=3, lease=4)
    assert protobuf.entry(pair) == Entry("/é", b"1", 2, 3, 4)


def test_events_are_converted():
    put = rpc.Event(kv=rpc.KeyValue(key=b"/a", value=b"1", create_revision=2, mod_revision=3))
    assert protobuf.event(put) == Event(EventKind.PUT, "/a", b"1", 3, 2)
    delete = rpc.Event(type=rpc.Event.DELETE, kv=rpc.KeyValue(key=b"/a", mod_revision=4))
    assert protobuf.event(delete) == Event(EventKind.DELETE, "/a", b"", 4)


def test_commit_is_converted_to_a_transaction():
    request = protobuf.transaction(
        [absent("/a"), Compare(key="/b", create_revision=7), Compare(key="/c", value=b"")],
        [Put("/a", b"1", 5), Delete("/b"), DeletePrefix("/c/")],
    )
    assert request == rpc.TxnRequest(
        compare=[
            rpc.Compare(target=rpc.Compare.MOD, key=b"/a", mod_revision=0),
            rpc.Compare(target=rpc.Compare.CREATE, key=b"/b", create_revision=7),
            rpc.Compare(target=rpc.Compare.VALUE, key=b"/c", value=b""),
        ],
        success=[
            rpc.RequestOp(request_put=rpc.PutRequest(key=b"/a", value=b"1", lease=5)),
            rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=b"/b")),
            rpc.RequestOp(
                request_delete_range=rpc.DeleteRangeRequest(key=b"/c/", range_end=b"/c0")
            ),
        ],
    )


def test_empty_commit_includes_a_read():
    request = protobuf.transaction([absent("/a")], [])
    for operations in (request.success, request.failure):
        assert [operation.WhichOneof("request") for operation in operations] == ["request_range"]
