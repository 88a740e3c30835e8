"""The HTTP responses of errors."""

import json

import msgspec
import pytest

from kafscale.client.errors import BrokerResponseError
from kafscale.client.errors import UnreachableError as ClientUnreachableError
from kafscale.console.http import responses
from kafscale.console.http.requests import TooLargeError
from kafscale.control_plane.errors import ControlError, UnreachableError
from kafscale.errors import (
    ConfigError,
    GroupNotFoundError,
    InvalidConfigError,
    InvalidRequestError,
    KafscaleError,
    NonEmptyGroupError,
    ResourceNotFoundError,
    StoreUnavailableError,
    TopicAuthorizationError,
    TopicExistsError,
    UnknownTopicError,
)
from kafscale.protocol.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnknownTopicError("x"), 404),
        (GroupNotFoundError("x"), 404),
        (ResourceNotFoundError("x"), 404),
        (BrokerResponseError("x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), 404),
        (InvalidRequestError("x"), 400),
        (InvalidConfigError("x"), 400),
        (BrokerResponseError("x", ErrorCode.INVALID_PARTITIONS), 400),
        (TooLargeError("x"), 413),
        (TopicAuthorizationError("x"), 403),
        (BrokerResponseError("x", ErrorCode.GROUP_AUTHORIZATION_FAILED), 403),
        (BrokerResponseError("x", ErrorCode.POLICY_VIOLATION), 403),
        (TopicExistsError("x"), 409),
        (NonEmptyGroupError("x"), 409),
        (ConfigError("x"), 409),
        (KafscaleError("x"), 409),
        (BrokerResponseError("x", ErrorCode.NOT_CONTROLLER), 503),
        (ClientUnreachableError("x"), 503),
        (StoreUnavailableError("x"), 503),
        (UnreachableError("broker:9093", "UNAVAILABLE", "x"), 503),
        (ControlError("broker:9093", "NOT_FOUND", "x"), 404),
        (ControlError("broker:9093", "INTERNAL", "x"), 500),
        (BrokerResponseError("x", ErrorCode.UNKNOWN_SERVER_ERROR), 500),
        (TimeoutError(), 503),
        (msgspec.ValidationError("x"), 400),
    ],
)
def test_error_has_its_status(error, status):
    response = responses.error_response(error, "/")
    assert response.status_code == status
    assert response.headers["Cache-Control"] == "no-store"
    problem = json.loads(response.body)
    assert set(problem) == {"error", "message"}
    assert problem["message"]


def test_unexpected_error_hides_details():
    response = responses.error_response(RuntimeError("password=hunter2"), "/")
    assert response.status_code == 500
    assert b"hunter2" not in response.body


def test_empty_result_has_no_content():
    response = responses.success(None)
    assert (response.status_code, response.body) == (204, b"")
