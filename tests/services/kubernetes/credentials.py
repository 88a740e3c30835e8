"""Credentials of a control plane: certificates, keys, tokens and kubeconfigs, as files."""

import base64
import datetime as dt
import secrets
from collections.abc import Sequence
from pathlib import Path

import yaml

from kafscale.security.tls.issuer import CertificateIssuer, IssuedCertificate

ADMIN = "admin"
CONTROLLERS = "system:kube-controller-manager"
AGGREGATOR = "aggregator"
_GROUPS = {ADMIN: "system:masters", CONTROLLERS: ""}


class Credentials:
    """New credentials in a directory, for an API server with these host names."""

    def __init__(self, directory: Path, url: str, hosts: Sequence[str]) -> None:
        self.directory = directory
        self.ca_file = self._file("ca.crt")
        """One CA for the API server and for its clients."""
        self.tokens = {user: secrets.token_hex(16) for user in _GROUPS}
        self.tokens_file = self._file("tokens.csv")
        self.accounts_key = self._file("accounts.key")
        """Signs the tokens of ServiceAccounts."""
        self._url = url
        self._issuer = CertificateIssuer.create(dt.datetime.now(dt.UTC), days=1, name="kubernetes")
        directory.mkdir(parents=True, exist_ok=True)
        self.ca_file.write_bytes(self._issuer.own.certificate_pem)
        self.server = self.issue("server", hosts)
        self.aggregator = self._write(AGGREGATOR, self._issuer.client(AGGREGATOR))
        """With it the API server authenticates to extension API servers."""
        self._write(self.accounts_key.stem, self._issuer.client("accounts"))
        self.tokens_file.write_text(
            "".join(f'{t},{user},{user},"{_GROUPS[user]}"\n' for user, t in self.tokens.items())
        )

    def issue(self, name: str, hosts: Sequence[str]) -> tuple[Path, Path]:
        """Certificate and key of a server that the API server trusts."""
        return self._write(name, self._issuer.server(name, hosts))

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of a user with a token."""
        trusted = base64.b64encode(self.ca_file.read_bytes()).decode()
        cluster = {"server": self._url, "certificate-authority-data": trusted}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        }
        file = self._file(f"{user.rpartition(':')[2]}.kubeconfig")
        file.write_text(yaml.safe_dump(config))
        # Helm warns about a kubeconfig that others can read.
        file.chmod(0o600)
        return file

    def _write(self, name: str, issued: IssuedCertificate) -> tuple[Path, Path]:
        certificate, key = self._file(f"{name}.crt"), self._file(f"{name}.key")
        certificate.write_bytes(issued.certificate_pem)
        key.write_bytes(issued.key_pem)
        return certificate, key

    def _file(self, name: str) -> Path:
        return self.directory / name
