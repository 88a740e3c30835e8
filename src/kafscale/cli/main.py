"""The `kafscale` command: registers all subcommands, and prints an overview without one.

A `KafscaleError` is printed as one message, with exit code 1 and no traceback; wrong usage exits
with 2. Each command is a module or package of `kafscale.cli.commands` and is added here in one
line.
"""

import os
import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kafscale import __version__
from kafscale.cli.commands import (
    cert,
    config,
    monitoring,
    protocol,
    quota,
    servers,
    topic,
    up,
    user,
)
from kafscale.cli.commands.acl import command as acl_command
from kafscale.cli.commands.cluster import command as cluster_command
from kafscale.cli.commands.consume import command as consume_command
from kafscale.cli.commands.etcd import command as etcd_command
from kafscale.cli.commands.group import command as group_command
from kafscale.cli.commands.produce import command as produce_command
from kafscale.cli.commands.segment import command as segment_command
from kafscale.cli.commands.spark import command as spark_command
from kafscale.cli.commands.sql import command as sql_command
from kafscale.cli.commands.transaction import command as transaction_command
from kafscale.cli.connection import add_command_config_option
from kafscale.cli.options import expand_option_groups
from kafscale.cli.output import print_error, print_line
from kafscale.config import SETTINGS, Config, load
from kafscale.errors import KafscaleError

ABOUT = (
    "Brokers serve Kafka clients and store records on this machine or in a bucket. With etcd,"
    " several brokers form a cluster."
)
SUGGESTIONS = (
    ("kafscale up", "run a broker and the web console on this machine"),
    ("kafscale broker", "run a broker; it needs no settings"),
    ("kafscale topic create orders -p 3", "create a topic; also list, describe, alter, delete"),
    ("kafscale produce orders", "send the lines of standard input as records"),
    ("kafscale consume orders", "print the records of a topic from the beginning"),
    ("kafscale consume orders -g billing", "consume as a member of a consumer group"),
    ("kafscale group describe billing", "show the offsets, lag and members of a group"),
    ("kafscale transaction list", "list transactions; also describe, abort, find-hanging"),
    ("kafscale cluster status", "show all brokers, their state and partitions"),
    ('kafscale sql "select * from orders"', "query topics directly from object storage"),
    ("kafscale spark lake orders --to lake", "write a topic to a lake table, exactly once"),
    ("kafscale user create alice", "create a user with a SCRAM password"),
    ("kafscale acl add --help", "grant or deny access by ACLs"),
    ("kafscale cert dev", "create certificates for trying out TLS"),
    ("kafscale config show", "show every setting, its value and its origin"),
    ("kafscale segment list kafscale-data", "list the objects that hold the records"),
    ("kafscale protocol show produce 9", "show the fields of a Kafka message"),
    ("kafscale --help", "list all commands"),
)
"""The commands that the overview suggests."""


class _RootGroup(TyperGroup):
    """The root command: prints every `KafscaleError` as a message and exits with 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KafscaleError as error:
            print_error(str(error))
            raise typer.Exit(1) from None


_HELP = (
    "Kafscale, a Kafka-compatible streaming platform with stateless brokers.\n\n"
    "Records are stored in object storage and metadata in etcd; without any settings, both are "
    "stored on this machine. Without a command, an overview is printed."
)

app = typer.Typer(
    cls=_RootGroup,
    help=_HELP,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command("broker")(servers.broker)
app.command("console")(servers.console)
app.command("produce")(produce_command.produce)
app.command("consume")(consume_command.consume)
app.command("sql")(sql_command.sql)
app.command("mcp")(servers.mcp)
app.command("up")(up.up)
app.add_typer(acl_command.app, name="acl")
app.add_typer(cert.app, name="cert")
app.add_typer(cluster_command.app, name="cluster")
app.add_typer(config.app, name="config")
app.add_typer(etcd_command.app, name="etcd")
app.add_typer(group_command.app, name="group")
app.add_typer(monitoring.app, name="monitoring")
app.add_typer(servers.operator_app, name="operator")
app.add_typer(protocol.app, name="protocol")
app.add_typer(quota.app, name="quota")
app.add_typer(segment_command.app, name="segment")
app.add_typer(spark_command.app, name="spark")
app.add_typer(topic.app, name="topic")
app.add_typer(transaction_command.app, name="transaction")
app.add_typer(user.app, name="user")
expand_option_groups(app)
add_command_config_option(app)


def main() -> None:
    """The entry point of the installed `kafscale` command."""
    # Commands report gRPC errors themselves; gRPC's own log lines would duplicate them.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if os.getpid() == 1:
        # Linux ignores signals of PID 1 that have no handler. Until a command installs its own,
        # SIGTERM ends the process; otherwise a container that has just started stops very slowly.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    app(prog_name="kafscale")


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"kafscale {__version__}")
        raise typer.Exit


@app.callback()
def overview(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        _log_and_print_overview(load(os.environ))


@app.command()
def version() -> None:
    """Print the version."""
    _print_version(is_requested=True)


def _log_and_print_overview(settings: Config) -> None:
    # Slow to import, and most commands do not log.
    from kafscale.observability import logging  # noqa: PLC0415

    logging.configure(settings.logging.level, settings.logging.format)
    logging.log_configuration(settings)
    _print_overview(settings)


def _print_overview(settings: Config) -> None:
    print_line((f"Kafscale {__version__}", "bold"))
    print_line("A Kafka-compatible streaming platform with stateless brokers.\n")
    print_line(f"{ABOUT}\n")
    for label, value in _summary(settings):
        print_line((f"  {label:<11}", "dim"), value)
    print_line("\nTry next:\n")
    width = max(len(command) for command, _ in SUGGESTIONS)
    for command, purpose in SUGGESTIONS:
        print_line("  ", (f"{command:<{width}}", "bold"), f"  {purpose}")


def _summary(settings: Config) -> list[tuple[str, str]]:
    """The settings that decide where data is stored and which ports are used."""
    s3, broker = settings.s3, settings.broker
    if s3.use_memory:
        records = "in memory, lost when the process ends"
    else:
        records = f"in bucket {s3.bucket}" if s3.bucket else "on this machine (embedded)"
    members = ", ".join(settings.etcd.endpoints)
    return [
        (
            "settings",
            f"{len(settings.origins)} of {len(SETTINGS)} set, the others have their defaults",
        ),
        ("records", records),
        ("metadata", f"in etcd at {members}" if members else "on this machine (embedded)"),
        ("listeners", f"{broker.host}: clients {broker.port}, metrics {broker.metrics_port}"),
        ("logs", f"{settings.logging.level} and above, as {settings.logging.format}"),
    ]
