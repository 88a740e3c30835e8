"""`kafscale cert`: create certificates for trying out TLS, and print settings that use them.

All printed settings and commands can be copied unchanged; files are named by absolute paths.
"""

# ruff: noqa: B006, D301, PLC0415 - typer copies lists; \b keeps the lines of examples apart;
# cryptography is slow to import.

import re
import shlex
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafscale.cli.output import Output, OutputOption, print_data, print_line, print_table
from kafscale.text.formatting import pluralize

if TYPE_CHECKING:
    from kafscale.security.tls.dev_ca import Credential, DevCertificates

USER_DEFAULT: Final = "client"
CONTROL_PORT: Final = 9095

_HOST: Final = re.compile(r"(\*\.)?[0-9A-Za-z._-]+|[0-9A-Fa-f:]+")
_USER: Final = re.compile(r"[0-9A-Za-z._@-]{1,64}")

app = typer.Typer(no_args_is_help=True, help="Create certificates for trying out TLS.")


@app.callback()
def certificates() -> None:
    """Without this callback, typer would merge `dev`, the only command, into `cert`."""


@app.command()
def dev(  # noqa: PLR0917 - typer makes options of them.
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output directory.")] = Path(
        "kafscale-certs"
    ),
    host: Annotated[
        list[str],
        typer.Option(
            "--host",
            metavar="NAME",
            help="Additional host name or IP address of the server; may be repeated.",
        ),
    ] = [],
    user: Annotated[
        list[str],
        typer.Option(
            "--user",
            metavar="NAME",
            help=f"User of a client certificate, by default {USER_DEFAULT}; may be repeated.",
        ),
    ] = [],
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="Validity in days.")] = 365,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a certificate authority, and certificates for a server and its clients.

    The server certificate is valid for the names of this machine and for each --host. Use these
    certificates for development only; in production, use a CA whose private key is kept safe.

    \b
    kafscale cert dev
    kafscale cert dev --host broker-0.example.com --user alice --user bob
    """
    from kafscale.security.tls import dev_ca

    users = list(dict.fromkeys(user)) or [USER_DEFAULT]
    _check("--host", _HOST, host)
    _check("--user", _USER, users)
    now = datetime.now(UTC)
    certificates = dev_ca.create_dev_certificates(
        out.absolute(),
        # Brokers without an advertised host use the name of their machine.
        hosts=[*host, *filter(_HOST.fullmatch, [socket.getfqdn()])],
        users=users,
        now=now,
        days=days,
        overwrites=force,
    )
    end = f"{now + timedelta(days=days):%Y-%m-%d}"
    if output is Output.TABLE:
        _print(certificates, f"{pluralize(days, 'day')}, until {end}")
    else:
        print_data(_data(certificates, end), output)


def _check(option: str, pattern: re.Pattern[str], values: Sequence[str]) -> None:
    for value in values:
        if not pattern.fullmatch(value):
            raise typer.BadParameter(f"invalid value {value!r}", param_hint=option)


def _data(certificates: "DevCertificates", end: str) -> dict[str, object]:
    return {
        "validUntil": end,
        "files": [{"path": path, "holds": what} for path, what in list_files(certificates)],
        "brokerSettings": broker_settings(certificates),
        "users": [
            {
                "name": name,
                "principal": f"User:CN={name}",
                "settings": client_settings(certificates, files),
                "javaProperties": java_settings(certificates, files),
                "librdkafkaProperties": librdkafka_settings(certificates, files),
            }
            for name, files in certificates.users.items()
        ],
    }


def _print(certificates: "DevCertificates", validity: str) -> None:
    print_line(f"created a certificate authority and certificates, valid for {validity}\n")
    print_table(("file", "content"), list_files(certificates))
    name, files = next(iter(certificates.users.items()))
    print_line("\nRun a broker with TLS and client certificates:\n")
    _print_exports(broker_settings(certificates))
    _print_lines("kafscale broker")
    print_line(f"\nRun kafscale commands as {name} (principal User:CN={name}):\n")
    _print_exports(client_settings(certificates, files))
    _print_lines("kafscale topic list", "kafscale cluster status")
    print_line("\nkcat:\n")
    options = librdkafka_settings(certificates, files).items()
    pairs = " ".join(f"-X {shlex.quote(f'{key}={value}')}" for key, value in options)
    _print_lines(f"kcat -b localhost:9092 -L {pairs}")
    print_line("\nKafka's tools, with these lines in the file of --command-config:\n")
    _print_lines(*(f"{key}={value}" for key, value in java_settings(certificates, files).items()))


def _print_exports(variables: Mapping[str, str]) -> None:
    _print_lines(*(f"export {name}={shlex.quote(value)}" for name, value in variables.items()))


def _print_lines(*lines: str) -> None:
    """Print lines to copy; long lines are not wrapped."""
    for line in lines:
        typer.echo(f"  {line}")


def list_files(certificates: "DevCertificates") -> list[tuple[str, str]]:
    """All files with their content."""
    from kafscale.security.tls.dev_ca import PASSWORD

    rows = [
        (str(certificates.authority), "CA certificate, for all truststores"),
        (str(certificates.authority_key), "private key of the CA; keep it secret"),
        (str(certificates.truststore), f"Java truststore with the CA, password {PASSWORD}"),
    ]
    named = {"the server": certificates.server} | {
        f"user {name}": each for name, each in certificates.users.items()
    }
    for name, files in named.items():
        rows += [
            (str(files.certificate), f"certificate of {name}"),
            (str(files.key), f"private key of {name}"),
            (str(files.keystore), f"Java keystore with both, password {PASSWORD}"),
        ]
    return rows


def broker_settings(certificates: "DevCertificates") -> dict[str, str]:
    """Settings of a broker with mutual TLS for clients and for the control plane."""
    certificate, key = str(certificates.server.certificate), str(certificates.server.key)
    authority = str(certificates.authority)
    return {
        "KAFSCALE_BROKER_SECURITY_PROTOCOL": "SSL",
        "KAFSCALE_TLS_CERT_FILE": certificate,
        "KAFSCALE_TLS_KEY_FILE": key,
        "KAFSCALE_TLS_CA_FILE": authority,
        "KAFSCALE_TLS_CLIENT_AUTH": "required",
        "KAFSCALE_CONTROL_ADDR": f":{CONTROL_PORT}",
        "KAFSCALE_CONTROL_TLS_ENABLED": "true",
        "KAFSCALE_CONTROL_TLS_CERT_FILE": certificate,
        "KAFSCALE_CONTROL_TLS_KEY_FILE": key,
        "KAFSCALE_CONTROL_TLS_CA_FILE": authority,
    }


def client_settings(certificates: "DevCertificates", user: "Credential") -> dict[str, str]:
    """Settings of `kafscale` commands as a user of that broker."""
    return {
        "KAFSCALE_CLIENT_SECURITY_PROTOCOL": "SSL",
        "KAFSCALE_CLIENT_TLS_CA_FILE": str(certificates.authority),
        "KAFSCALE_CLIENT_TLS_CERT_FILE": str(user.certificate),
        "KAFSCALE_CLIENT_TLS_KEY_FILE": str(user.key),
        "KAFSCALE_CLIENT_CONTROL_TLS_ENABLED": "true",
        "KAFSCALE_CONTROL_SERVERS": f"localhost:{CONTROL_PORT}",
    }


def java_settings(certificates: "DevCertificates", user: "Credential") -> dict[str, str]:
    """Properties of Java clients and Kafka's tools."""
    from kafscale.security.tls.dev_ca import PASSWORD

    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(certificates.truststore),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(user.keystore),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }


def librdkafka_settings(certificates: "DevCertificates", user: "Credential") -> dict[str, str]:
    """Properties of kcat and other librdkafka clients."""
    return {
        "security.protocol": "ssl",
        "ssl.ca.location": str(certificates.authority),
        "ssl.certificate.location": str(user.certificate),
        "ssl.key.location": str(user.key),
    }
