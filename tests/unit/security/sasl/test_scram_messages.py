"""Malformed SCRAM messages are rejected, and errors contain nothing of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import AuthenticationError
from kafscale.security.sasl import scram_messages

READERS = [
    scram_messages.client_first,
    scram_messages.server_first,
    scram_messages.client_final,
    scram_messages.server_final,
]
every_reader = pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_names_are_escaped_and_unescaped(name):
    escaped = scram_messages.escape_name(name)
    assert "," not in escaped
    assert scram_messages.unescape_name(escaped) == name


def test_client_first_message_is_parsed_with_its_signed_bytes():
    read = scram_messages.client_first(b"n,a=a=2Cb,n=a=2Cb,r=!$xyz,one=1,two==")
    assert read.header == b"n,a=a=2Cb,"
    assert read.bare == b"n=a=2Cb,r=!$xyz,one=1,two=="
    assert (read.user, read.authorization_id, read.nonce) == ("a,b", "a,b", "!$xyz")
    assert read.extensions == {"one": "1", "two": "="}


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,n=,r=x",
        b"n,,n=user,r=",
        b"n,,n=user",
        b"n,,n=us=er,r=x",
        b"n,,n=us=2cer,r=x",
        b"n,,n=us\0er,r=x",
        b"n,,n=us\xffer,r=x",
        b"n,,n=user,r=x\x00",
        b"n,,n=user,r=x,",
        b"n,,n=user,r=x,novalue",
        b"n,,m=mandatory,n=user,r=x",
        b"y,,n=user,r=x",
        b"p=tls-unique,,n=user,r=x",
        b"n,user,n=user,r=x",
        b"n,,n=user,r=x\n",
        b"n,,n=user,r=" + b"x" * scram_messages.MESSAGE_BYTES_MAX,
    ],
)
def test_malformed_first_message_is_rejected(message):
    with pytest.raises(AuthenticationError, match=r"Invalid SCRAM client first message format$"):
        scram_messages.client_first(message)


@pytest.mark.parametrize(
    "message", [b"c=biws,r=x,p=a", b"c=b,r=x,p=aaaa", b"r=x,c=biws,p=aaaa", b"c=biws,r=x"]
)
def test_malformed_final_message_is_rejected(message):
    with pytest.raises(AuthenticationError, match=r"Invalid SCRAM client final message format$"):
        scram_messages.client_final(message)


@pytest.mark.parametrize("iterations", ["0", "-1", "4096.0", "04096", "9" * 11, "x"])
def test_iterations_must_be_a_number(iterations):
    with pytest.raises(AuthenticationError, match="server first"):
        scram_messages.server_first(f"r=x,s=aaaa,i={iterations}".encode())


def test_server_error_is_reported():
    with pytest.raises(AuthenticationError, match="invalid-proof"):
        scram_messages.server_final(b"e=invalid-proof")


@every_reader
@given(message=st.binary(max_size=200))
def test_random_bytes_are_rejected(read, message):
    with pytest.raises(AuthenticationError):
        read(b"\xff" + message)


PIECES = st.sampled_from(
    "n, a= n= r= s= i= c= p= v= e= , = =2C biws 4096 x \0 ä".split(" ")  # noqa: SIM905 - shorter.
)


@every_reader
@given(pieces=st.lists(PIECES, max_size=30))
def test_similar_messages_are_parsed_or_rejected(read, pieces):
    try:
        read("".join(pieces).encode())
    except AuthenticationError as error:
        assert "biws" not in str(error) or "e=" in pieces  # noqa: PT017 - it need not be raised.
