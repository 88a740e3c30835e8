"""How `kafscale user` prints users for people, and what they are told to set in their clients."""

from collections.abc import Sequence
from typing import Final

from kafscale.admin.security.users import UserInfo
from kafscale.cli.output import print_line, print_table

_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def print_list(users: Sequence[UserInfo]) -> None:
    if not users:
        print_line("nobody can log in by SCRAM; create a user with: kafscale user create NAME")
        return
    print_table(
        ("user", "mechanism", "iterations"),
        (
            ((user.user, "bold") if not index else "", each.mechanism, str(each.iterations))
            for user in users
            for index, each in enumerate(user.credentials)
        ),
    )


def print_login(user: str, mechanism: str, protocol: str) -> None:
    """What clients have to be told, Kafka's own and ours alike."""
    print_line(
        "\nclients log in with these properties, and ours by --command-config FILE with them:"
    )
    print_line()
    quoted = user.replace("\\", "\\\\").replace('"', '\\"')
    for line in (
        f"security.protocol={protocol}",
        f"sasl.mechanism={mechanism}",
        f'sasl.jaas.config={_MODULE} required username="{quoted}" password="...";',
    ):
        print_line((line, "bold"), indent=2)
