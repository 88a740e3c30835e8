"""The catalog of topics: what is written is what is read, and damage is named."""

import pytest

from kafscale.errors import DamagedObjectError
from kafscale.storage import topics_catalog
from kafscale.storage.topics_catalog import CatalogTopic

ORDERS = CatalogTopic("orders", "0f" * 16, 3, {"cleanup.policy": "compact"})


def test_topics_are_written_by_name_and_read_back():
    data = topics_catalog.encode([ORDERS, CatalogTopic("audit", "00" * 16, 1)])
    assert [topic.name for topic in topics_catalog.decode("k", data).topics] == ["audit", "orders"]
    assert topics_catalog.decode("k", data).topics[1] == ORDERS


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"topics": [{"name": 1}]}', b'{"topics":[],"version":9}']
)
def test_what_is_no_catalog_is_damage(data):
    with pytest.raises(DamagedObjectError, match="k"):
        topics_catalog.decode("k", data)
