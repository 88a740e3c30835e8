"""How `kafscale quota` prints quotas for people: the data of `quota_admin` in a table."""

from collections.abc import Sequence

from kafscale.admin.security.quotas import DEFAULT_ENTITY, EntityQuotas, format_limit
from kafscale.cli.output import print_line, print_table
from kafscale.security.quota.entities import TYPES


def print_list(quotas: Sequence[EntityQuotas]) -> None:
    if not quotas:
        print_line("there are no quotas; set one with: kafscale quota set --user NAME KEY=VALUE")
        return
    print_table(
        (*TYPES, "quota", "limit"),
        (
            (
                *(_cell(quota.entity, kind) for kind in TYPES),
                (key, "bold"),
                format_limit(key, value),
            )
            for quota in quotas
            for key, value in quota.limits.items()
        ),
    )


def _cell(entity: dict[str, str | None], kind: str) -> str:
    if kind not in entity:
        return ""
    return entity[kind] or DEFAULT_ENTITY
