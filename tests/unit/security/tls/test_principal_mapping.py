"""Rules make of a name what Kafka makes of it."""

import pytest

from kafscale.errors import AuthenticationError, ConfigError
from kafscale.security.tls.principal_mapping import PrincipalMapper
from unit.security.rules import OTHERS, RULES


@pytest.mark.parametrize(("rules", "name", "principal"), RULES + OTHERS)
def test_rules_make_of_a_name_what_kafka_makes_of_it(rules, name, principal):
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
def test_what_is_no_rule_is_refused(rules):
    with pytest.raises(ConfigError, match=r"tls.principalMappingRules: .* is not a valid rule"):
        PrincipalMapper(rules)


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("RULE:^CN=(.*$/$1/", "the pattern of .* is invalid: missing"),
        ("RULE:^CN=.*$/$1/", r"uses \$1, but its pattern has no"),
        ("RULE:^CN=(.*)$/$x/", "without a group"),
        ("RULE:^CN=(.*)$/${x}/", "without a group"),
    ],
)
def test_what_would_fail_with_the_first_client_is_refused_at_once(rule, complaint):
    with pytest.raises(ConfigError, match=complaint):
        PrincipalMapper(rule)


def test_a_name_that_no_rule_takes_is_nobody_s():
    with pytest.raises(AuthenticationError, match="no rule"):
        PrincipalMapper("RULE:^CN=(.*),O=Org$/$1/").principal("CN=mallory,O=Other")
