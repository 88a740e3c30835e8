"""Facts about `ErrorCode` that need no judge from outside."""

import inspect
import struct

import pytest

from kafscale import errors
from kafscale.protocol.error_codes import ErrorCode

OUR_ERRORS = [
    error
    for _, error in inspect.getmembers(errors, inspect.isclass)
    if issubclass(error, errors.KafscaleError)
]


def test_a_member_is_its_number():
    assert ErrorCode.NONE == 0
    assert not ErrorCode.NONE
    assert struct.pack(">h", ErrorCode.UNKNOWN_SERVER_ERROR) == b"\xff\xff"
    assert struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION) == b"\x00\x23"


def test_numbers_have_no_gaps():
    """A gap would be a line forgotten: Kafka numbers its errors without any."""
    assert list(ErrorCode) == list(range(-1, 134))


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_every_number_finds_its_member(code: ErrorCode):
    assert ErrorCode.of(int(code)) is code


@pytest.mark.parametrize("number", [-32768, -2, 134, 32767])
def test_an_unknown_number_is_an_unknown_server_error(number: int):
    assert ErrorCode.of(number) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_a_message_is_one_sentence(code: ErrorCode):
    assert code.message[0].isupper()
    assert code.message.endswith(".")
    assert code.message.count(".") == 1
    assert code.message == code.message.strip()


def test_no_two_codes_share_a_message():
    assert len({code.message for code in ErrorCode}) == len(ErrorCode)


def test_success_is_not_retriable():
    assert not ErrorCode.NONE.retriable


@pytest.mark.parametrize("error", OUR_ERRORS)
def test_an_error_of_ours_has_a_code_that_exists(error: type[errors.KafscaleError]):
    assert error.code in set(ErrorCode)
    assert error.code != ErrorCode.NONE
