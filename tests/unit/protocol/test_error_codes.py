"""`ErrorCode`: numbers, messages and retriability."""

import inspect
import struct

import pytest

from kafscale import errors
from kafscale.protocol.error_codes import ErrorCode
from services.for_each import for_each

OUR_ERRORS = [
    error
    for _, error in inspect.getmembers(errors, inspect.isclass)
    if issubclass(error, errors.KafscaleError)
]


def test_member_equals_its_number():
    assert ErrorCode.NONE == 0
    assert not ErrorCode.NONE
    assert struct.pack(">h", ErrorCode.UNKNOWN_SERVER_ERROR) == b"\xff\xff"
    assert struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION) == b"\x00\x23"


def test_error_numbers_are_consecutive():
    """A gap would be a line forgotten: Kafka numbers its errors without any."""
    assert list(ErrorCode) == list(range(-1, 134))


@for_each(ErrorCode, lambda code: code.name)
def test_of_returns_the_member_of_a_number(code: ErrorCode):
    assert ErrorCode.of(int(code)) is code


@pytest.mark.parametrize("number", [-32768, -2, 134, 32767])
def test_of_returns_unknown_server_error_for_unknown_numbers(number: int):
    assert ErrorCode.of(number) is ErrorCode.UNKNOWN_SERVER_ERROR


@for_each(ErrorCode, lambda code: code.name)
def test_messages_are_one_sentence(code: ErrorCode):
    assert code.message[0].isupper()
    assert code.message.endswith(".")
    assert code.message.count(".") == 1
    assert code.message == code.message.strip()


def test_messages_are_unique():
    assert len({code.message for code in ErrorCode}) == len(ErrorCode)


def test_success_is_not_retriable():
    assert not ErrorCode.NONE.retriable


@for_each(OUR_ERRORS)
def test_exception_codes_exist(error: type[errors.KafscaleError]):
    assert error.code in set(ErrorCode)
    assert error.code != ErrorCode.NONE
