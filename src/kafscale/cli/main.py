"""`kafscale`: the command line as a whole, and the overview it prints when it is asked for nothing.

The law: an error of ours is shown as a sentence, with exit code 1 and no traceback; wrong usage
exits with 2. Each group of commands is a module of this room and is added here in one line.
"""

import os
import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kafscale import __version__
from kafscale.cli.commands import (
    broker,
    cert,
    config,
    console,
    docs,
    mcp,
    monitoring,
    operator,
    protocol,
    up,
)
from kafscale.cli.commands.acl import command as acl_command
from kafscale.cli.commands.cluster import command as cluster_command
from kafscale.cli.commands.consume import command as consume_command
from kafscale.cli.commands.etcd import command as etcd_command
from kafscale.cli.commands.group import command as group_command
from kafscale.cli.commands.produce import command as produce_command
from kafscale.cli.commands.quota import command as quota_command
from kafscale.cli.commands.segment import command as segment_command
from kafscale.cli.commands.spark import command as spark_command
from kafscale.cli.commands.sql import command as sql_command
from kafscale.cli.commands.topic import command as topic_command
from kafscale.cli.commands.user import command as user_command
from kafscale.cli.connection.kafka import take_command_config
from kafscale.cli.output import print_error, print_line
from kafscale.config import SETTINGS, Config, load
from kafscale.errors import KafscaleError

STATE = (
    "Brokers serve Kafka clients, and keep what they write on this machine or in a bucket; with"
    " etcd they are a cluster."
)
NEXT = (
    ("kafscale up", "run a broker and the console here"),
    ("kafscale broker", "run a broker here; it needs no settings"),
    ("kafscale topic create orders -p 3", "create a topic; list, describe, alter, delete it"),
    ("kafscale produce orders", "send records, one a line of standard input"),
    ("kafscale consume orders", "print records, from the beginning"),
    ("kafscale consume orders -g billing", "share them out among all who read in the group"),
    ("kafscale group describe billing", "how far a group has come, and who its members are"),
    ("kafscale cluster status", "all brokers, how they do and what they own"),
    ('kafscale sql "select * from orders"', "query topics, straight from where they are kept"),
    ("kafscale spark lake orders --to lake", "make a table of a topic, exactly once"),
    ("kafscale user create alice", "let somebody log in with a password"),
    ("kafscale acl add --help", "say who may do what"),
    ("kafscale cert dev", "certificates to try TLS out with, and what to do with them"),
    ("kafscale config show", "every setting, its value and where it was set"),
    ("kafscale segment list kafscale-data", "the objects that hold the records"),
    ("kafscale protocol show produce 9", "the fields of a Kafka message on the wire"),
    ("kafscale --help", "all commands"),
)
"""The commands that the overview suggests."""


class _Commands(TyperGroup):
    """The top of the command line: the one place where our errors become words."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KafscaleError as error:
            print_error(str(error))
            raise typer.Exit(1) from None


_HELP = (
    "Kafscale, a Kafka-compatible streaming platform whose brokers keep nothing.\n\n"
    "Records live in object storage and metadata in etcd; with no settings at all, both live on "
    "this machine. Without a command, an overview is printed."
)

app = typer.Typer(
    cls=_Commands,
    help=_HELP,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command("broker")(broker.broker)
app.command("console")(console.console)
app.command("produce")(produce_command.produce)
app.command("consume")(consume_command.consume)
app.command("sql")(sql_command.sql)
app.command("mcp")(mcp.mcp)
app.command("up")(up.up)
app.add_typer(acl_command.app, name="acl")
app.add_typer(cert.app, name="cert")
app.add_typer(cluster_command.app, name="cluster")
app.add_typer(config.app, name="config")
app.add_typer(docs.app, name="docs")
app.add_typer(etcd_command.app, name="etcd")
app.add_typer(group_command.app, name="group")
app.add_typer(monitoring.app, name="monitoring")
app.add_typer(operator.app, name="operator")
app.add_typer(protocol.app, name="protocol")
app.add_typer(quota_command.app, name="quota")
app.add_typer(segment_command.app, name="segment")
app.add_typer(spark_command.app, name="spark")
app.add_typer(topic_command.app, name="topic")
app.add_typer(user_command.app, name="user")
take_command_config(app)


def main() -> None:
    """What the installed `kafscale` command runs."""
    # What goes wrong with gRPC is told in our words; its own lines would come on top of them.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if os.getpid() == 1:
        # The first process of a container is spared by signals about which it says nothing. Until
        # a command says more, it ends; otherwise stopping what has just started takes very long.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    app(prog_name="kafscale")


def _print_version(asked: bool) -> None:
    if asked:
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
        _start(load(os.environ))


@app.command()
def version() -> None:
    """Print the version."""
    _print_version(asked=True)


def _start(effective: Config) -> None:
    # Logs load slowly, and a command that only looks something up writes none.
    from kafscale.observability import logging  # noqa: PLC0415

    logging.configure(effective.logging.level, effective.logging.format)
    logging.log_configuration(effective)
    _print_overview(effective)


def _print_overview(effective: Config) -> None:
    print_line((f"Kafscale {__version__}", "bold"))
    print_line("A Kafka-compatible streaming platform whose brokers keep nothing.\n")
    print_line(f"{STATE}\n")
    for label, value in _summary(effective):
        print_line((f"  {label:<11}", "dim"), value)
    print_line("\nTry next:\n")
    width = max(len(command) for command, _ in NEXT)
    for command, purpose in NEXT:
        print_line("  ", (f"{command:<{width}}", "bold"), f"  {purpose}")


def _summary(effective: Config) -> list[tuple[str, str]]:
    """The few settings that say what kind of Kafscale this is."""
    s3, broker = effective.s3, effective.broker
    if s3.use_memory:
        records = "in memory, lost with the process"
    else:
        records = f"in bucket {s3.bucket}" if s3.bucket else "on this machine (embedded)"
    members = ", ".join(effective.etcd.endpoints)
    return [
        ("settings", f"{len(effective.origins)} of {len(SETTINGS)} set, the others at default"),
        ("records", records),
        ("metadata", f"in etcd at {members}" if members else "on this machine (embedded)"),
        ("listeners", f"{broker.host}: clients {broker.port}, metrics {broker.metrics_port}"),
        ("logs", f"{effective.logging.level} and above, as {effective.logging.format}"),
    ]
