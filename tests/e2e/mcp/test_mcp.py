"""The MCP server with a real broker, through the protocol's own client."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from confluent_kafka import Consumer, Producer
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from services.broker import BrokerProcess
from services.mcp_client import PROGRAM, McpClient, environment
from services.process import free_port
from services.waiting import wait_until

TOKEN = "a long token that only tests know"  # noqa: S105 - opens nothing but tests.
LOOKING = {
    "cluster_status",
    "cluster_health",
    "cluster_metrics",
    "storage_cost",
    "pipeline_runs",
    "list_topics",
    "describe_topic",
    "topic_configs",
    "segment_inventory",
    "list_groups",
    "describe_group",
    "consumer_lag",
    "peek_messages",
    "list_transactions",
    "find_hanging_transactions",
}
CHANGING = {
    "create_topic",
    "alter_topic_configs",
    "add_partitions",
    "delete_topic",
    "produce_message",
    "reset_offsets",
    "delete_group",
    "abort_transaction",
    "flush_topic",
}

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as running:
        producer = Producer({"bootstrap.servers": running.address})
        for number in range(20):
            producer.produce("orders", f'{{"number": {number}}}', key=f"key-{number}")
        assert producer.flush(10) == 0
        consumer = Consumer(
            {
                "bootstrap.servers": running.address,
                "group.id": "billing",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["orders"])
        read = consumer.consume(5, timeout=15)
        assert len(read) == 5
        consumer.commit(message=read[-1], asynchronous=False)
        consumer.close()
        yield running


@pytest.fixture(scope="module")
def client(broker: BrokerProcess) -> Iterator[McpClient]:
    with McpClient(broker) as one:
        yield one


@pytest.fixture(scope="module")
def writing_client(broker: BrokerProcess) -> Iterator[McpClient]:
    """An assistant that may change things."""
    with McpClient(broker, KAFSCALE_MCP_ALLOW_WRITES="true") as one:
        yield one


def test_only_read_tools_are_listed_unless_writes_are_allowed(
    client: McpClient, writing_client: McpClient
) -> None:
    offered = client.tools()
    assert set(offered) == LOOKING
    assert all(tool.annotations.read_only_hint for tool in offered.values())
    assert all(tool.description for tool in offered.values())
    more = writing_client.tools()
    assert set(more) == LOOKING | CHANGING
    assert not any(more[name].annotations.read_only_hint for name in CHANGING)
    destroying = {name for name, tool in more.items() if tool.annotations.destructive_hint}
    assert destroying == {"delete_topic", "delete_group", "reset_offsets", "abort_transaction"}


def test_write_tool_is_rejected_without_permission(client: McpClient) -> None:
    output = client.call_error("delete_topic", topic="orders", confirm="orders")
    assert "delete_topic" in output
    assert client.call("describe_topic", topic="orders")["name"] == "orders"


def test_cluster_tools(client: McpClient) -> None:
    status = client.call("cluster_status")
    [known] = status["brokers"]
    assert (known["id"], known["state"]) == (0, "ready")
    assert status["topicCount"] == 1
    health = client.call("cluster_health")
    assert (health["state"], health["reasons"]) == ("healthy", [])
    [figures] = client.call("cluster_metrics")["brokers"]
    assert figures["produceBytesPerSecond"] == 0
    cost = client.call("storage_cost")
    assert cost["storagePerDay"] > 0
    assert cost["currency"] == "USD"
    assert client.call("pipeline_runs") == {"runs": [], "total": 0, "leftOut": 0}


def test_topic_tools(client: McpClient) -> None:
    [orders] = client.call("list_topics", search="ORD")["topics"]
    assert (orders["name"], orders["recordCount"]) == ("orders", 20)
    assert client.call("list_topics", search="nothing")["total"] == 0
    [partition] = client.call("describe_topic", topic="orders")["partitions"]
    assert (partition["startOffset"], partition["highWatermark"]) == (0, 20)
    configs = client.call("topic_configs", topic="orders")["configs"]
    assert "retention.ms" in {each["name"] for each in configs}
    assert client.call("topic_configs", topic="orders", only_changed=True)["configs"] == []
    inventory = client.call("segment_inventory", topic="orders")
    assert inventory["wal"]["recordCount"] == 20
    assert "missing" in client.call_error("describe_topic", topic="missing")


def test_group_tools(client: McpClient) -> None:
    [group] = client.call("list_groups")["groups"]
    assert group["group"] == "billing"
    described = client.call("describe_group", group="billing")
    assert described["lag"] == 15
    wait_until(
        lambda: client.call("consumer_lag", group="billing")["totalLag"] == 15,
        "the lag to be reported",
    )


def test_record_tools(client: McpClient) -> None:
    newest = client.call("peek_messages", topic="orders", limit=3)["records"]
    assert [each["offset"] for each in newest] == [19, 18, 17]
    [result] = client.call("peek_messages", topic="orders", start="earliest", key="key-7")[
        "records"
    ]
    assert json.loads(result["value"]) == {"number": 7}
    later = client.call("peek_messages", topic="orders", start="offset", number=18)["records"]
    assert [each["offset"] for each in later] == [18, 19]


def test_writing_tools(writing_client: McpClient) -> None:
    created = writing_client.call("create_topic", topic="letters", partitions=2)
    assert created["partitionCount"] == 2
    writing_client.call("add_partitions", topic="letters", partitions=3)
    values = {"retention.ms": "60000"}
    [config] = writing_client.call("alter_topic_configs", topic="letters", values=values)["configs"]
    assert (config["name"], config["value"]) == ("retention.ms", "60000")
    writing_client.call("alter_topic_configs", topic="letters", values={"retention.ms": "-1"})
    written = writing_client.call(
        "produce_message", topic="letters", key="a", value="dear", partition=1, headers={"h": "1"}
    )
    assert (written["partition"], written["offset"]) == (1, 0)
    [read] = writing_client.call("peek_messages", topic="letters")["records"]
    assert (read["key"], read["value"], read["headers"]) == ("a", "dear", {"h": "1"})
    assert writing_client.call("flush_topic", topic="letters")["total"] >= 1
    plan = writing_client.call("reset_offsets", group="billing", to="earliest")
    assert (plan["executed"], plan["partitions"][0]["after"]) == (False, 0)
    assert writing_client.call("describe_group", group="billing")["lag"] == 15
    writing_client.call("reset_offsets", group="billing", to="latest", execute=True)
    assert writing_client.call("describe_group", group="billing")["lag"] == 0
    writing_client.call("reset_offsets", group="billing", to="offset", number=5, execute=True)
    assert "repeat its name" in writing_client.call_error(
        "delete_topic", topic="letters", confirm="yes"
    )
    writing_client.call("delete_topic", topic="letters", confirm="letters")
    writing_client.call("reset_offsets", group="gone", topic="orders", to="latest", execute=True)
    writing_client.call("delete_group", group="gone", confirm="gone")


def test_transactions_are_listed_and_aborted(
    broker: BrokerProcess, client: McpClient, writing_client: McpClient
) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "checkout"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("ledger", "lost", partition=0)
    assert producer.flush(10) == 0
    (listed,) = client.call("list_transactions", search="CHECK", only_open=True)["transactions"]
    assert (listed["transactionalId"], listed["state"]) == ("checkout", "Ongoing")
    assert listed["topics"] == [{"topic": "ledger", "partitions": [0]}]
    assert "repeat" in writing_client.call_error(
        "abort_transaction", transactional_id="checkout", confirm="yes"
    )
    aborted = writing_client.call(
        "abort_transaction", transactional_id="checkout", confirm="checkout"
    )
    assert aborted["stateBefore"] == "Ongoing"
    wait_until(
        lambda: client.call("list_transactions", only_open=True)["total"] == 0, "the abort's end"
    )
    writing_client.call("delete_topic", topic="ledger", confirm="ledger")


def test_unreachable_cluster_is_reported(broker: BrokerProcess) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    elsewhere = {"KAFSCALE_CONTROL_SERVERS": nowhere, "KAFSCALE_BOOTSTRAP_SERVERS": nowhere}
    with McpClient(broker, "--read-only", **elsewhere) as lost:
        result = lost.call("cluster_health")
    assert result["state"] == "down"
    assert result["reasons"]


@pytest.fixture(scope="module")
def address(broker: BrokerProcess) -> Iterator[str]:
    """A server over HTTP."""
    port = free_port()
    variables = environment(broker, KAFSCALE_MCP_TOKEN=TOKEN, KAFSCALE_MCP_PORT=str(port))
    process = subprocess.Popen(  # noqa: S603 - the command is our own.
        [PROGRAM, "mcp", "--http"], env=variables, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "listening on" in line, line
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        assert process.wait(10) == 0
        process.stderr.close()


def test_http_with_token(address: str) -> None:
    async def run() -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            assert {tool.name for tool in (await client.list_tools()).tools} == LOOKING
            return (await client.call_tool("list_topics", {})).structured_content

    assert [each["name"] for each in asyncio.run(run())["topics"]] == ["orders"]


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}]
)
def test_http_without_valid_token_is_rejected(address: str, headers) -> None:
    response = httpx2.post(
        address, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers
    )
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert TOKEN not in response.text


@pytest.mark.long
def test_http_with_foreign_host_is_rejected(address: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example.com"}
    response = httpx2.post(address, json={}, headers=headers)
    assert response.status_code in {403, 421}


@pytest.mark.parametrize("token", ["", "a-short-token"])
def test_http_server_needs_a_long_token(broker: BrokerProcess, token: str) -> None:
    done = subprocess.run(  # noqa: S603 - the command is our own.
        [PROGRAM, "mcp", "--http"],
        env=environment(broker, KAFSCALE_MCP_TOKEN=token),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "KAFSCALE_MCP_TOKEN" in done.stderr
