"""Certificate subjects and principals are equal to those of Java and Kafka."""

import subprocess
from pathlib import Path

import pytest

from kafscale.security.tls.distinguished_name import format_name
from kafscale.security.tls.principal_mapping import PrincipalMapper
from services import java
from unit.security.certificate_names import NAMES, element
from unit.security.mapping_rules import RULES

PROGRAM = Path(__file__).with_name("Names.java")
SECONDS_MAX = 60

pytestmark = [
    pytest.mark.skipif(not java.is_available(), reason="no Java here"),
    pytest.mark.timeout(2 * SECONDS_MAX),
]


def run_java(lines):
    """The output of the Java program."""
    done = subprocess.run(  # noqa: S603 - the program is our own.
        ["java", "-cp", f"{java.jars()}/*", PROGRAM],  # noqa: S607
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    return [bytes.fromhex(line[1:]).decode() for line in done.stdout.splitlines()]


def test_subject_equals_java():
    names = run_java(f"name {element(0x30, name).hex()}" for name in NAMES.values())
    assert names == [format_name(name) for name in NAMES.values()]


def test_principal_mapping_equals_kafka():
    names = run_java(
        f"rule {rules.encode().hex()} {name.encode().hex()}" for rules, name, _ in RULES
    )
    assert names == [PrincipalMapper(rules).principal(name) for rules, name, _ in RULES]
