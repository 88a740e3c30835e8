"""Runs pytest, then the tests that failed once more, alone.

    python tests/runner.py NAME [pytest options...]

Brokers, clients and injected faults of many tests share the cores, so a test may fail only because
the machine was busy. Such a test must pass when it runs alone. The run fails when a test fails
twice, or when more than `SECOND_TRIES_MAX` tests needed the second try: that is not a busy machine.
Both attempts leave a JUnit report with all durations in `.test-reports/`.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

SECOND_TRIES_MAX: Final = 3
REPORTS: Final = Path(".test-reports")
TESTS_FAILED: Final = 1
WORKER_OPTIONS: Final = ("-n", "--dist")
ALONE: Final = ("-p", "no:xdist")


def main(name: str, options: list[str]) -> int:
    REPORTS.mkdir(exist_ok=True)
    code, failed = run(name, options)
    if code != TESTS_FAILED:
        return code
    if not failed or len(failed) > SECOND_TRIES_MAX:
        print_line(
            f"{len(failed)} tests failed; at most {SECOND_TRIES_MAX} are tried a second time"
        )
        return code
    code, _ = run(f"{name}-second-try", [*without_workers(options), *ALONE, "--last-failed"])
    outcome = "passed" if code == 0 else "failed again"
    print_line("\n  ".join([f"second try, alone: {outcome}", *failed]))
    return code


def run(name: str, options: list[str]) -> tuple[int, list[str]]:
    """Run pytest; return its exit code and the tests that failed."""
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *options]
    code = subprocess.run(command, check=False).returncode  # noqa: S603 - pytest, by ourselves.
    if not report.exists():
        return code or 1, []
    cases = ET.parse(report).iter("testcase")  # noqa: S314 - written by pytest a moment ago.
    failed = [
        f"{case.get('classname')}.{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return code, failed


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def without_workers(options: list[str]) -> list[str]:
    """Leave out how tests are distributed; each of these options has a value of its own.

    >>> without_workers(["-n", "3", "--dist", "loadfile", "-m", "not long"])
    ['-m', 'not long']
    """
    values = {index + 1 for index, option in enumerate(options) if option in WORKER_OPTIONS}
    return [
        option
        for index, option in enumerate(options)
        if index not in values and option not in WORKER_OPTIONS
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
