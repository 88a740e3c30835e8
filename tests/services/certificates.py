"""Certificates of an authority that exists only for a test: for a server, and for its clients.

They are those of `kafscale cert dev`, so that what users try TLS out with is what is tested.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafscale.security.tls.dev_ca import Credential, create_dev_certificates


@dataclass(frozen=True)
class Certificates:
    """Files in PEM, and in PKCS#12 for Java."""

    authority: Path
    server_certificate: Path
    server_key: Path
    client_certificate: Path
    client_key: Path
    truststore: Path
    users: Mapping[str, Credential]
    """Certificates of clients by their names, that of `client` included."""


def make_certificates(directory: Path, *users: str, name: str = "CA of a test") -> Certificates:
    """New ones, for servers on this machine, and for clients: one called `client`, and others."""
    created = create_dev_certificates(
        directory,
        users=("client", *users),
        now=dt.datetime.now(dt.UTC),
        days=1,
        authority_name=name,
    )
    client = created.users["client"]
    return Certificates(
        created.authority,
        created.server.certificate,
        created.server.key,
        client.certificate,
        client.key,
        created.truststore,
        created.users,
    )
