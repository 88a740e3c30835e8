"""ACLs, users and quotas in the pages, on a broker that requires authentication."""

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import expect

from services.console import ConsoleProcess
from services.secured_broker import ADMIN, SecuredBroker, password_of

# Component tests, and tests of the API, cover the same pages in every run.
pytestmark = [pytest.mark.long, pytest.mark.timeout(90)]

ALICE_PASSWORD = "wonderland-7"  # noqa: S105 - opens nothing but tests.


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    with SecuredBroker(tmp_path_factory.mktemp("secured")) as broker:
        broker.add_scram_users(ADMIN)
        admin = AdminClient(broker.plain(ADMIN).librdkafka())
        admin.create_topics([NewTopic("shop-orders", 1)])["shop-orders"].result(timeout=20)
        yield broker


@pytest.fixture(scope="module")
def console(secured, tmp_path_factory):
    settings = {
        "bootstrap_servers": f"127.0.0.1:{secured.ports['INSIDE']}",
        "control_servers": secured.control_address,
        "client_security_protocol": "SASL_PLAINTEXT",
        "client_sasl_mechanism": "SCRAM-SHA-512",
        "client_username": ADMIN,
        "client_password": password_of(ADMIN),
        "data_dir": str(secured.data),
    }
    with ConsoleProcess(tmp_path_factory.mktemp("console"), **settings) as running:
        yield running


def can_read(broker):
    """True if alice can read the topic with the password set in the pages."""
    config = broker.inside("alice").with_changes(password=ALICE_PASSWORD)
    consumer = Consumer(config.librdkafka() | {"group.id": "alices"})
    try:
        return "shop-orders" in consumer.list_topics(timeout=10).topics
    except KafkaException:
        return False
    finally:
        consumer.close()


def test_user_is_created_allowed_limited_and_deleted(window, secured):
    page = window.open("/access?part=users", "Access")
    window.button("Create user").click()
    dialog = window.dialog("Create a user")
    dialog.get_by_label("Name", exact=False).first.fill("alice")
    dialog.locator("input[type=password]").fill(ALICE_PASSWORD)
    dialog.get_by_role("button", name="Create user").click()
    expect(page.get_by_text("User alice created.")).to_be_visible()
    expect(window.row("Users", "alice")).to_contain_text("SCRAM-SHA-512")
    assert not can_read(secured), "she may log in, and nothing more"

    page.get_by_role("tab", name="ACLs").click()
    window.button("Create ACL").click()
    dialog = window.dialog("Create an ACL")
    dialog.get_by_label("Principal").fill("User:alice")
    dialog.get_by_label("Operation").select_option("READ")
    dialog.get_by_label("Pattern type").select_option("PREFIXED")
    dialog.get_by_label("Resource name").fill("shop-")
    dialog.get_by_role("button", name="Create ACL").click()
    expect(page.get_by_text("ACL created: User:alice is allowed READ.")).to_be_visible()
    expect(window.row("ACLs", "User:alice")).to_contain_text("shop-…")
    assert can_read(secured)

    page.get_by_role("tab", name="Quotas").click()
    window.button("Set quota").click()
    dialog = window.dialog("Set a quota")
    dialog.get_by_label("Name", exact=False).first.fill("alice")
    dialog.get_by_label("Quota type").select_option("producer_byte_rate")
    dialog.get_by_label("Limit").fill("fast")
    expect(dialog.get_by_text("Not a valid rate.")).to_be_visible()
    dialog.get_by_label("Limit").fill("2 MiB")
    dialog.get_by_role("button", name="Set quota").click()
    expect(window.row("Quotas", "alice")).to_contain_text("producer_byte_rate")
    page.get_by_role("button", name="Remove producer_byte_rate").click()
    window.dialog("Remove a quota").get_by_role("button", name="Remove quota").click()
    expect(page.get_by_text("There are no quotas.")).to_be_visible()

    page.get_by_role("tab", name="ACLs").click()
    window.row("ACLs", "User:alice").get_by_role("button").click()
    window.dialog("Delete an ACL").get_by_role("button", name="Delete ACL").click()
    expect(window.row("ACLs", "User:alice")).to_have_count(0)

    page.get_by_role("tab", name="Users").click()
    window.button("Delete alice").click()
    dialog = window.dialog("Delete alice")
    expect(dialog.get_by_role("button", name="Delete user")).to_be_disabled()
    dialog.get_by_role("textbox").fill("alice")
    dialog.get_by_role("button", name="Delete user").click()
    expect(window.row("Users", "alice")).to_have_count(0)
    assert not can_read(secured)


def test_password_is_changed(window):
    page = window.open("/access?part=users", "Access")
    window.button(f"Change password of {ADMIN}").click()
    dialog = window.dialog(f"New password for {ADMIN}")
    dialog.locator("input[type=password]").fill(password_of(ADMIN))
    dialog.get_by_role("button", name="Change password").click()
    expect(page.get_by_text(f"Password of {ADMIN} changed.")).to_be_visible()
    page.reload()
    expect(window.row("Users", ADMIN)).to_be_visible()


def test_invalid_acl_is_rejected_with_a_message(window):
    window.expect_status(400)
    page = window.open("/access", "Access")
    window.button("Create ACL").click()
    dialog = window.dialog("Create an ACL")
    dialog.get_by_label("Principal").fill("alice")
    dialog.get_by_label("Resource name").fill("orders")
    dialog.get_by_role("button", name="Create ACL").click()
    expect(dialog.get_by_role("alert")).to_contain_text("User:")
    page.keyboard.press("Escape")
    expect(window.row("ACLs", "alice")).to_have_count(0)
