"""`kafscale quota`: usage errors and tables."""

import pytest

from kafscale.admin.security import quotas as quota_admin
from kafscale.admin.security.quotas import EntityQuotas
from kafscale.cli.commands.quota import print_quotas

SET = ["quota", "set"]
REMOVE = ["quota", "remove"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([*SET, "request_rate=1"], "name an entity"),
        ([*SET, "--user", "alice"], "KEY=VALUE"),
        ([*SET, "--user", "alice", "request_rate"], "key=value"),
        ([*SET, "--user", "alice", "happiness=1"], "happiness is not a quota; the quotas are"),
        ([*SET, "--user", "alice", "request_rate=0"], "request_rate must be greater than 0"),
        ([*SET, "--user", "alice", "request_rate=fast"], "'fast' is not a rate, such as 50"),
        ([*SET, "--user", "a", "producer_byte_rate=1x"], "'1x' is not a rate, such as 1Mi"),
        ([*SET, "--user", "a", "--user-default", "request_rate=1"], "exclude each other"),
        ([*SET, "--ip", "::1", "--user", "a", "request_rate=1"], "--ip cannot be combined"),
        (REMOVE, "name an entity"),
        (["quota", "list", "--client-id", "a", "--client-id-default"], "exclude each other"),
    ],
)
def test_wrong_usage_exits_with_2(kafscale, arguments, problem):
    result = kafscale(*arguments, COLUMNS="200")
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("key", "text", "value", "shown"),
    [
        ("producer_byte_rate", "1Mi", 1048576, "1.0 MiB/s"),
        ("consumer_byte_rate", "500", 500, "500 B/s"),
        ("request_percentage", "12.5%", 12.5, "12.5%"),
        ("request_rate", "0.5", 0.5, "0.5/s"),
        ("connection_creation_rate", "20", 20, "20/s"),
    ],
)
def test_limits_are_parsed_and_formatted(key, text, value, shown):
    assert quota_admin.parse_limit(key, text) == value
    assert quota_admin.format_limit(key, value) == shown


def test_unknown_quota_is_formatted_as_a_rate():
    assert quota_admin.format_limit("happiness", 3.0) == "3/s"


def test_table_has_a_row_for_every_limit(capsys):
    quotas = [
        EntityQuotas({"user": "alice", "client-id": None}, {"request_rate": 5.0}),
        EntityQuotas({"ip": "10.0.0.1"}, {"connection_creation_rate": 2.0}),
    ]
    print_quotas(quotas)
    names, _, first, second = capsys.readouterr().out.splitlines()
    assert names.split() == ["user", "client-id", "ip", "quota", "limit"]
    assert first.split() == ["alice", "<default>", "request_rate", "5/s"]
    assert second.split() == ["10.0.0.1", "connection_creation_rate", "2/s"]


def test_empty_list_names_the_command_to_set_quotas(capsys):
    print_quotas([])
    assert "kafscale quota set --user" in capsys.readouterr().out
