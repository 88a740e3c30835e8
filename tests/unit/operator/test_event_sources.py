"""Tests of the start of the event sources; kopf itself is tested in tests/integration."""

import asyncio

import pytest

from kafscale.errors import OperatingError
from kafscale.operator.event_sources import check_definitions
from kafscale.operator.kube.api import TOPICS
from services.memory_kube import MemoryKube


class WithoutTopics(MemoryKube):
    """A server without the CRD of topics."""

    async def supports(self, kind):
        return kind != TOPICS and await super().supports(kind)


def test_missing_definitions_are_an_error():
    asyncio.run(check_definitions(MemoryKube()))
    with pytest.raises(OperatingError, match=r"does not know kafscaletopics.*operator crds"):
        asyncio.run(check_definitions(WithoutTopics()))
