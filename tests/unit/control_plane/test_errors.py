"""Conversion of errors to gRPC statuses, and back."""

import grpc
import pytest

from kafscale import errors
from kafscale.control_plane.errors import (
    BROKER_KEY,
    ControlError,
    NotControllerError,
    UnreachableError,
    control_error,
    status_of,
)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.UnknownTopicError("x"), "NOT_FOUND"),
        (errors.UnknownTopicIdError("x"), "NOT_FOUND"),
        (errors.NotOwnerError("x"), "FAILED_PRECONDITION"),
        (errors.FencedError("x"), "FAILED_PRECONDITION"),
        (NotControllerError("x"), "FAILED_PRECONDITION"),
        (errors.InvalidRequestError("x"), "INVALID_ARGUMENT"),
        (errors.OverloadedError("x"), "RESOURCE_EXHAUSTED"),
        (errors.StoreUnavailableError("x"), "UNAVAILABLE"),
        (errors.DamagedObjectError("key", "x"), "UNAVAILABLE"),
        (TimeoutError("x"), "DEADLINE_EXCEEDED"),
        (errors.KafscaleError("x"), "INTERNAL"),
        (ValueError("x"), "INTERNAL"),
    ],
)
def test_status_of_every_error(error, status):
    assert status_of(error).name == status


def rpc_error(code, *metadata):
    return grpc.aio.AioRpcError(
        code, grpc.aio.Metadata(), grpc.aio.Metadata(*metadata), details="the store is unavailable"
    )


def test_rejection_by_a_broker_is_not_unreachable():
    error = control_error("b:9093", rpc_error(grpc.StatusCode.UNAVAILABLE, (BROKER_KEY, "3")))
    assert type(error) is ControlError
    assert error.status == "UNAVAILABLE"
    assert str(error) == "the broker at b:9093 responded: the store is unavailable (UNAVAILABLE)"


def test_transport_errors_are_unreachable():
    for status in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        error = control_error("b:9093", rpc_error(status))
        assert type(error) is UnreachableError
        assert (
            str(error)
            == "no broker responds on the control plane at b:9093: the store is unavailable"
        )


def test_rejection_by_the_server_is_a_control_error():
    error = control_error("b:9093", rpc_error(grpc.StatusCode.UNAUTHENTICATED))
    assert type(error) is ControlError
