"""`PrincipalMapper`: the same principals as in Kafka."""

import pytest

from kafscale.errors import AuthenticationError, ConfigError
from kafscale.security.tls.principal_mapping import PrincipalMapper
from unit.security.mapping_rules import OTHERS, RULES


@pytest.mark.parametrize(("rules", "name", "principal"), RULES + OTHERS)
def test_principals_equal_kafka(rules, name, principal):
    assert PrincipalMapper(rules).principal(name) == principal


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
        "DEFAULT,RULE:^CN=(.*?)$/$1/X",
    ],
)
def test_invalid_rule_is_rejected(rules):
    with pytest.raises(ConfigError, match=r"tls.principalMappingRules: .* is not a valid rule"):
        PrincipalMapper(rules)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("RULE:^CN=(.*$/$1/", "the pattern of .* is invalid: missing"),
        ("RULE:^CN=.*$/$1/", r"uses \$1, but its pattern has no"),
        ("RULE:^CN=(.*)$/$x/", "without a group"),
        ("RULE:^CN=(.*)$/${x}/", "without a group"),
    ],
)
def test_rule_that_would_fail_at_run_time_is_rejected(rule, message):
    with pytest.raises(ConfigError, match=message):
        PrincipalMapper(rule)


def test_unmatched_subject_is_rejected():
    with pytest.raises(AuthenticationError, match="no rule"):
        PrincipalMapper("RULE:^CN=(.*),O=Org$/$1/").principal("CN=mallory,O=Other")
