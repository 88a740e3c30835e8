"""What to do with certificates that were made for trying TLS out: settings, and commands to run.

The law: everything can be copied as it stands; files are named by their whole paths. Pure.
"""

from typing import Final

from kafscale.security.tls.dev_ca import PASSWORD, Credential, DevCertificates

CONTROL_PORT: Final = 9095


def contents(made: DevCertificates) -> list[tuple[str, str]]:
    """All files, and what is in them."""
    rows = [
        (str(made.authority), "the authority, for everybody to trust"),
        (str(made.authority_key), "its private key; whoever has it can be anybody"),
        (str(made.truststore), f"the authority for Java, password {PASSWORD}"),
    ]
    named = {"the server": made.server} | {
        f"user {name}": each for name, each in made.users.items()
    }
    for name, files in named.items():
        rows += [
            (str(files.certificate), f"the certificate of {name}"),
            (str(files.key), "its private key"),
            (str(files.keystore), f"both of them for Java, password {PASSWORD}"),
        ]
    return rows


def broker_settings(made: DevCertificates) -> dict[str, str]:
    """A broker that encrypts, for clients and on the control plane, and asks who they are."""
    certificate, key = str(made.server.certificate), str(made.server.key)
    authority = str(made.authority)
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


def client_settings(made: DevCertificates, user: Credential) -> dict[str, str]:
    """Our own commands, as a user of that broker."""
    return {
        "KAFSCALE_CLIENT_SECURITY_PROTOCOL": "SSL",
        "KAFSCALE_CLIENT_TLS_CA_FILE": str(made.authority),
        "KAFSCALE_CLIENT_TLS_CERT_FILE": str(user.certificate),
        "KAFSCALE_CLIENT_TLS_KEY_FILE": str(user.key),
        "KAFSCALE_CLIENT_CONTROL_TLS": "true",
        "KAFSCALE_CONTROL_SERVERS": f"localhost:{CONTROL_PORT}",
    }


def java_settings(made: DevCertificates, user: Credential) -> dict[str, str]:
    """The properties of Kafka's own clients and tools."""
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(made.truststore),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(user.keystore),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }


def librdkafka_settings(made: DevCertificates, user: Credential) -> dict[str, str]:
    """The properties of kcat, and of others that are built on librdkafka."""
    return {
        "security.protocol": "ssl",
        "ssl.ca.location": str(made.authority),
        "ssl.certificate.location": str(user.certificate),
        "ssl.key.location": str(user.key),
    }
