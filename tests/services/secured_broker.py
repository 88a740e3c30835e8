"""A broker with authentication and authorization, and the client configs to reach it.

    with SecuredBroker(tmp_path, users=("alice",)) as broker:
        admin = AdminClient(broker.plain("admin").librdkafka())

It has a listener of every security protocol. ACLs apply on all of them, so that at first only the
super user `admin` may do anything. A user's password is the same for every mechanism; SCRAM
credentials have to be created first, which clients do (`add_scram_users`).
"""

from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from services.broker import HOST, BrokerProcess
from services.certificates import Certificates, make_certificates
from services.client_config import ClientConfig
from services.identity_provider import IdentityProvider
from services.process import free_port

ADMIN = "admin"
PROTOCOLS = {"OPEN": "PLAINTEXT", "MUTUAL": "SSL", "SECURE": "SASL_SSL", "INSIDE": "SASL_PLAINTEXT"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
ITERATIONS = 4096


def password_of(user: str) -> str:
    """The password of a user, which no log may hold."""
    return f"secret-of-{user}"


class SecuredBroker(BrokerProcess):
    """One broker with four listeners."""

    def __init__(
        self,
        directory: Path,
        *,
        users: tuple[str, ...] = (),
        certificates: Certificates | None = None,
        **settings: str,
    ) -> None:
        """`users` and `admin` have certificates and PLAIN credentials.

        New certificates are created, unless `certificates` are given.
        """
        self.certificates = certificates or make_certificates(
            directory / "certificates", ADMIN, *users
        )
        self.provider = IdentityProvider(directory / "provider")
        self.ports = {name: free_port() for name in PROTOCOLS}
        super().__init__(directory, **(self._secured((ADMIN, *users)) | settings))

    def plain(self, user: str) -> ClientConfig:
        return self._secure("PLAIN", user=user, password=password_of(user))

    def scram(self, user: str, digest: str = "SHA-512") -> ClientConfig:
        return self._secure(f"SCRAM-{digest}", user=user, password=password_of(user))

    def token(self, user: str, *, lasts_s: float = 600, **claims: object) -> ClientConfig:
        def new() -> str:
            return self.provider.token(user, lasts_s=lasts_s, **claims)

        return self._secure("OAUTHBEARER", user=user, token=new, token_s=max(60, lasts_s))

    def certificate(self, user: str) -> ClientConfig:
        """Mutual TLS, without SASL."""
        return self._config("MUTUAL").with_changes(
            user=user,
            authority=self.certificates.authority,
            truststore=self.certificates.truststore,
            credential=self.certificates.users[user],
        )

    def inside(self, user: str) -> ClientConfig:
        """SCRAM without TLS."""
        return self._config("INSIDE").with_changes(
            mechanism="SCRAM-SHA-512", user=user, password=password_of(user)
        )

    def anonymous(self) -> ClientConfig:
        return self._config("OPEN")

    def add_scram_users(self, *users: str, admin: ClientConfig | None = None) -> None:
        """Create SCRAM-SHA-256 and SCRAM-SHA-512 credentials.

        As in Kafka, a request may name a user only once.
        """
        client = AdminClient((admin or self.plain(ADMIN)).librdkafka())
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, ITERATIONS)
            requested = [
                UserScramCredentialUpsertion(user, info, password_of(user).encode())
                for user in users
            ]
            for future in client.alter_user_scram_credentials(requested).values():
                future.result(timeout=15)

    def _secure(self, mechanism: str, **who: object) -> ClientConfig:
        return self._config("SECURE").with_changes(
            mechanism=mechanism,
            authority=self.certificates.authority,
            truststore=self.certificates.truststore,
            **who,
        )

    def _config(self, listener: str) -> ClientConfig:
        return ClientConfig(port=self.ports[listener], protocol=PROTOCOLS[listener])

    def _secured(self, users: tuple[str, ...]) -> dict[str, str]:
        files = self.certificates
        return {
            "broker_listeners": ",".join(
                f"{name}://{HOST}:{port}" for name, port in self.ports.items()
            ),
            "broker_listener_security_protocol_map": ",".join(
                f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()
            ),
            "tls_cert_file": str(files.server_certificate),
            "tls_key_file": str(files.server_key),
            "tls_ca_file": str(files.authority),
            "tls_client_auth": "none,MUTUAL=required",
            "tls_principal_mapping_rules": "RULE:^CN=(.*)$/$1/,DEFAULT",
            "sasl_enabled_mechanisms": ",".join((*MECHANISMS, "INSIDE=SCRAM-SHA-512")),
            "sasl_plain_users": ",".join(f"{user}:{password_of(user)}" for user in users),
            "sasl_oauth_jwks_file": str(self.provider.keys_file),
            "sasl_oauth_clock_skew_sec": "0",
            "sasl_failed_authentication_delay_max_ms": "100",
            "authorization_enabled": "true",
            "authorization_super_users": f"User:{ADMIN}",
            "group_initial_rebalance_delay_ms": "0",
        }
