"""A client for code that waits: what it is told to do is done on its own loop, and ends with it."""

import asyncio
import threading

import pytest

from kafscale.client.blocking import BlockingClient, addresses
from kafscale.errors import InvalidRequestError


def test_work_is_done_elsewhere_and_waited_for():
    async def work(_client):
        await asyncio.sleep(0)
        return threading.current_thread()

    with BlockingClient(addresses("nowhere:1")) as client:
        assert client.run(work) is not threading.current_thread()
        assert client.run(work) is client.run(work)


def test_what_work_raises_is_raised_here():
    async def work(_client):
        raise InvalidRequestError("on purpose")

    with BlockingClient(addresses("nowhere:1")) as client, pytest.raises(InvalidRequestError):
        client.run(work)


def test_closing_twice_is_closing_once():
    client = BlockingClient(addresses("nowhere:1"))
    client.close()
    client.close()
    assert "blocking client" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("text", ["", " , ", "a:b"])
def test_what_names_no_broker_is_refused(text):
    with pytest.raises(InvalidRequestError, match="host:port"):
        addresses(text)
