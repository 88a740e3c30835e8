"""How `kafscale acl` prints rules for people: by resource, and what somebody may do in one row."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from kafscale.admin.security.acls import display_name
from kafscale.cli.output import Part, print_line, print_table
from kafscale.metadata.access.model import ANY_HOST, Acl, PatternType, Permission


def print_rules(rules: Sequence[Acl]) -> None:
    if not rules:
        print_line("no rules; add one with: kafscale acl add --allow-principal User:NAME ...")
        return
    print_table(("resource", "pattern", "principal", "", "operations", "from"), _rows(rules))


def _rows(rules: Sequence[Acl]) -> Iterator[tuple[Part, ...]]:
    for resource, about in groupby(sorted(rules), key=_resource):
        first: tuple[Part, ...] = ((resource[0], "bold"), resource[1])
        by_party = sorted(about, key=_party)
        for (principal, permission, host), same in groupby(by_party, key=_party):
            allowed = permission is Permission.ALLOW
            yield (
                *first,
                principal,
                ("may", "green") if allowed else ("must not", "red"),
                ", ".join(display_name(rule.operation) for rule in same),
                "anywhere" if host == ANY_HOST else host,
            )
            first = "", ""


def _resource(rule: Acl) -> tuple[str, str]:
    pattern = "prefix" if rule.pattern_type is PatternType.PREFIXED else "name"
    return f"{display_name(rule.resource_type)} {rule.resource_name}", pattern


def _party(rule: Acl) -> tuple[str, Permission, str]:
    return rule.principal, rule.permission, rule.host
