"""Usage errors that commands report before they connect to a broker: exit code 2."""

import pytest

GRANT = ["acl", "add", "--allow-principal", "User:alice", "--topic", "orders"]
RESET = ["group", "reset-offsets", "billing"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["topic", "create"], "NAME"),
        (["topic", "create", "orders", "--partitions", "0"], "--partitions"),
        (["topic", "create", "orders", "--config", "retention.ms"], "key=value"),
        (["topic", "alter", "orders"], "name a change"),
        (["topic", "list", "--bootstrap-server", "a:b"], "host:port"),
        (["produce", "orders", "--acks", "2"], "--acks"),
        (["produce", "orders", "--acks", "1", "--idempotent"], "--acks all"),
        (["produce", "orders", "--header", "=x"], "key=value"),
        (["produce", "orders", "--batch-bytes", "many"], "is not a size"),
        (["produce", "orders", "--format", "json", "-K", ":"], "--key-separator"),
        (["consume", "orders", "--from", "somewhere"], "earliest"),
        (["consume", "orders", "--show", "colour"], "colour"),
        (["consume", "orders", "--template", "%q"], "unknown placeholder"),
        (["consume", "orders", "--template", "%v", "--show", "key"], "exclude"),
        (["consume", "orders", "--format", "json", "--show", "key"], "prints all fields"),
        (["consume", "orders", "--group", "g", "-p", "1"], "--partition"),
        (["consume", "orders", "--group", "g", "--assignor", "sticky"], "--assignor"),
        (["group", "list", "--state", "asleep"], "--state"),
        (["group", "delete"], "GROUP"),
        ([*RESET, "--topic", "orders"], "give exactly one of"),
        ([*RESET, "--topic", "orders", "--to-latest", "--to-earliest"], "give exactly one of"),
        ([*RESET, "--topic", "orders", "--to-offset", "-1"], "--to-offset"),
        ([*RESET, "--topic", "orders", "--to-datetime", "soon"], "is not a time"),
        ([*RESET, "--topic", "orders", "--by-duration", "soon"], "is not a duration"),
        ([*RESET, "--topic", "orders:x", "--to-latest"], "is not a topic"),
        ([*RESET, "--to-latest"], "give either --topic"),
        ([*RESET, "--to-latest", "--topic", "orders", "--all-topics"], "give either --topic"),
        (["consume", "orders", "--isolation-level", "none"], "--isolation-level"),
        (["transaction", "list", "--state", "asleep"], "--state"),
        (["transaction", "list", "--older-than", "long"], "--older-than"),
        (["transaction", "describe"], "ID"),
        (["transaction", "abort", "orders", "--partition", "1"], "--start-offset"),
        (["transaction", "find-hanging", "--max-transaction-timeout", "x"], "--max-transaction"),
        (["user", "create", "alice"], "--password-file"),
        (["user", "create", "alice", "--password-file", "absent"], "cannot read absent"),
        (["user", "create", "alice", "--iterations", "4095"], "--iterations"),
        (["user", "create", "alice", "--mechanism", "PLAIN"], "--mechanism"),
        (["user", "delete"], "NAME"),
        (["acl", "add", "--topic", "orders"], "name a principal"),
        (["acl", "add", "--allow-principal", "User:a"], "name a resource"),
        (["acl", "add", "--allow-principal", "a", "--topic", "orders"], "such as User:alice"),
        ([*GRANT, "--operation", "raed"], "is not an operation"),
        ([*GRANT, "--operation", "Read", "--role", "admin"], "leave out --operation"),
        ([*GRANT, "--consumer"], "--topic and a --group"),
        ([*GRANT, "--resource-pattern-type", "match"], "--resource-pattern-type"),
        (["acl", "remove"], "name the ACLs to remove"),
        (["acl", "list", "--principal", "alice"], "such as User:alice"),
    ],
)
def test_wrong_usage_exits_with_2(kafscale, arguments, problem):
    result = kafscale(*arguments, COLUMNS="200")
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stdout == ""
