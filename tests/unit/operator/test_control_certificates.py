"""Tests of the control planes' certificates: what each gives access to, over real connections."""

import asyncio
import stat
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509

from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError, UnreachableError
from kafscale.control_plane.server import ControlServer
from kafscale.control_plane.tls import AllowedSubjects, ServerTls
from kafscale.operator.certificates import entries_of
from kafscale.operator.control_certificates import CA_SECRET
from kafscale.operator.kube.api import SECRETS
from kafscale.operator.manifests import names
from unit.control_plane.scripted_broker import ScriptedBroker
from unit.operator.issued_certificates import PLATFORM, IssuedCertificates, cluster_of

DAY_MS = 86_400_000
SHOP, OTHER = cluster_of("shop", "tenant"), cluster_of("shop", "attacker")


@pytest.fixture
def certificates(tmp_path):
    return IssuedCertificates(tmp_path)


@asynccontextmanager
async def broker_of(certificates, cluster):
    """A broker's control plane with the settings that the operator gives it; yields its address."""
    files = await certificates.mount(cluster.namespace, names.control_tls(cluster))
    allowed = names.control_subjects(cluster.namespace, cluster.name, PLATFORM)
    server = ControlServer(
        ScriptedBroker(), tls=ServerTls(files), allowed_subjects=AllowedSubjects(allowed)
    )
    await server.start("127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        await server.close()


async def query(address, files):
    async with ControlClient(address, files.as_client()) as client:
        return (await client.status()).broker_id


def test_operator_and_clients_of_the_cluster_reach_its_brokers(certificates):
    async def scenario():
        await certificates.issuer.reconcile(SHOP)
        mounted = [
            await certificates.mount("tenant", name)
            for name in (names.control_tls(SHOP), names.control_client_tls(SHOP))
        ]
        async with broker_of(certificates, SHOP) as address:
            for files in (certificates.issuer.files, *mounted):
                assert await query(address, files) == "3"

    asyncio.run(scenario())


def test_certificates_of_a_cluster_of_the_same_name_elsewhere_are_rejected(certificates):
    async def scenario():
        await certificates.issuer.reconcile(SHOP)
        await certificates.issuer.reconcile(OTHER)
        async with broker_of(certificates, SHOP) as address:
            for name in (names.control_tls(OTHER), names.control_client_tls(OTHER)):
                with pytest.raises(ControlError, match="may not use the control plane") as denied:
                    await query(address, await certificates.mount("attacker", name))
                assert denied.value.status == "PERMISSION_DENIED"

    asyncio.run(scenario())


def test_what_a_tenant_writes_into_its_secret_is_not_trusted(certificates, tmp_path):
    async def scenario():
        # A tenant with a CA of its own replaces the Secret of its cluster.
        foreign = IssuedCertificates(tmp_path / "foreign")
        await foreign.issuer.reconcile(OTHER)
        forged = await foreign.kube.get(SECRETS, "attacker", names.control_tls(OTHER))
        metadata = names.metadata(OTHER, names.control_tls(OTHER), names.BROKER_APP)
        await certificates.kube.apply(forged | {"metadata": metadata})
        await certificates.issuer.reconcile(OTHER)
        await certificates.issuer.reconcile(SHOP)
        async with broker_of(certificates, SHOP) as address:
            with pytest.raises(UnreachableError):
                await query(address, await foreign.mount("attacker", names.control_tls(OTHER)))
        replaced = await certificates.kube.get(SECRETS, "attacker", names.control_tls(OTHER))
        assert entries_of(replaced) != entries_of(forged)

    asyncio.run(scenario())


def test_secrets_are_written_once_and_survive_a_new_operator(certificates):
    async def scenario():
        await certificates.issuer.reconcile(SHOP)
        before = await all_entries(certificates.kube)
        await certificates.issuer.reconcile(SHOP)
        certificates.issuer = certificates.restarted()
        await certificates.issuer.reconcile(SHOP)
        assert await all_entries(certificates.kube) == before

    asyncio.run(scenario())


def test_certificates_are_renewed_before_they_expire_without_a_break(certificates):
    async def scenario():
        certificates.now_ms -= 250 * DAY_MS
        await certificates.issuer.reconcile(SHOP)
        first = (await all_entries(certificates.kube))[names.control_tls(SHOP)]["tls.crt"]
        async with broker_of(certificates, SHOP) as address:
            certificates.now_ms += 250 * DAY_MS
            await certificates.issuer.reconcile(SHOP)
            await certificates.mount("tenant", names.control_tls(SHOP))
            assert await query(address, certificates.issuer.files) == "3"
        second = (await all_entries(certificates.kube))[names.control_tls(SHOP)]["tls.crt"]
        assert expiry(second) > expiry(first)

    asyncio.run(scenario())


def test_lost_ca_is_replaced_and_the_former_one_stays_trusted(certificates):
    async def scenario():
        await certificates.issuer.reconcile(SHOP)
        former = await certificates.mount("tenant", names.control_client_tls(SHOP))
        await certificates.kube.delete(SECRETS, PLATFORM.namespace, CA_SECRET)
        await certificates.issuer.reconcile(SHOP)
        async with broker_of(certificates, SHOP) as address:
            assert await query(address, former) == "3"
            assert await query(address, certificates.issuer.files) == "3"

    asyncio.run(scenario())


def test_key_of_the_ca_is_in_the_namespace_of_the_operator_only(certificates):
    async def scenario():
        await certificates.issuer.reconcile(SHOP)
        key = (await all_entries(certificates.kube))[CA_SECRET]["tls.key"]
        secrets = await certificates.kube.list(SECRETS)
        holders = [each for each in secrets if key in entries_of(each).values()]
        assert [each["metadata"]["namespace"] for each in holders] == [PLATFORM.namespace]

    asyncio.run(scenario())


def test_files_of_the_operator_are_private(certificates):
    asyncio.run(certificates.issuer.renew())
    key = Path(certificates.issuer.files.key_file)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700


async def all_entries(kube):
    return {each["metadata"]["name"]: entries_of(each) for each in await kube.list(SECRETS)}


def expiry(certificate_pem):
    return x509.load_pem_x509_certificate(certificate_pem).not_valid_after_utc
