"""What is refused before anybody is asked; pages of real topics are in tests/e2e/console."""

import asyncio
from contextlib import ExitStack

import pytest

from kafscale.admin.messages import browse as browsing
from kafscale.admin.messages.codecs import Codecs
from kafscale.admin.messages.query import Filter, Question
from kafscale.client.client import Client
from kafscale.client.errors import UnreachableError
from kafscale.errors import InvalidRequestError, OverloadedError
from kafscale.net.host_port import Address

NOWHERE = Address("127.0.0.1", 9)


async def browse(question):
    async with Client([NOWHERE]) as client:
        return await browsing.browse(client, "orders", question, Codecs())


@pytest.mark.parametrize(
    "question",
    [
        Question(limit=0),
        Question(limit=501),
        Question(offset=-1),
        Question(time_ms=2**63),
        Question(cursor={0: -1}),
        Question(cursor={-1: 0}),
        Question(filter=Filter(json_equals="x")),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(question):
    with pytest.raises(InvalidRequestError):
        asyncio.run(browse(question))


def test_no_more_pages_than_its_bound_are_made_at_a_time_and_failures_count_no_longer():
    for _ in range(browsing.BROWSES_MAX + 1):
        with pytest.raises(UnreachableError):
            asyncio.run(browse(Question()))
    with ExitStack() as stack:
        for _ in range(browsing.BROWSES_MAX):
            stack.enter_context(browsing._turns)
        with pytest.raises(OverloadedError, match="try again"):
            asyncio.run(browse(Question()))
