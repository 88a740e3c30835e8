"""The blocking client, its thread and its event loop."""

import asyncio
import threading

import pytest

from kafscale.client.blocking import BlockingClient, parse_addresses
from kafscale.errors import InvalidRequestError


def test_work_runs_in_the_thread_of_the_client():
    async def work(_client):
        await asyncio.sleep(0)
        return threading.current_thread()

    with BlockingClient(parse_addresses("nowhere:1")) as client:
        assert client.run(work) is not threading.current_thread()
        assert client.run(work) is client.run(work)


def test_errors_of_work_are_raised():
    async def work(_client):
        raise InvalidRequestError("on purpose")

    with BlockingClient(parse_addresses("nowhere:1")) as client, pytest.raises(InvalidRequestError):
        client.run(work)


def test_close_is_idempotent():
    client = BlockingClient(parse_addresses("nowhere:1"))
    client.close()
    client.close()
    assert "blocking client" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("text", ["", " , ", "a:b"])
def test_invalid_addresses_are_rejected(text):
    with pytest.raises(InvalidRequestError, match="host:port"):
        parse_addresses(text)
