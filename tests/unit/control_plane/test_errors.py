"""Which status tells which error, and back."""

import grpc
import pytest

from kafscale import errors
from kafscale.control_plane.errors import (
    BROKER_KEY,
    ControlError,
    NotControllerError,
    UnreachableError,
    refusal,
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
def test_every_error_has_its_status(error, status):
    assert status_of(error).name == status


def answered(code, *metadata):
    return grpc.aio.AioRpcError(
        code, grpc.aio.Metadata(), grpc.aio.Metadata(*metadata), details="the store is away"
    )


def test_a_broker_that_says_no_is_not_taken_for_one_that_is_away():
    error = refusal("b:9093", answered(grpc.StatusCode.UNAVAILABLE, (BROKER_KEY, "3")))
    assert type(error) is ControlError
    assert error.status == "UNAVAILABLE"
    assert str(error) == "the broker at b:9093 says: the store is away (UNAVAILABLE)"


def test_one_that_does_not_answer_is_called_so():
    for status in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        error = refusal("b:9093", answered(status))
        assert type(error) is UnreachableError
        assert str(error) == "no broker answers on the control plane at b:9093: the store is away"


def test_what_a_server_refuses_before_the_broker_is_asked_is_an_answer_too():
    error = refusal("b:9093", answered(grpc.StatusCode.UNAUTHENTICATED))
    assert type(error) is ControlError
