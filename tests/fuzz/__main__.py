"""`make fuzz`: runs targets for a while, guided by coverage.

    python -m fuzz                                all targets, one after the other
    python -m fuzz requests "WAL objects" --seconds 600
    python -m fuzz requests --input FILE          one input, such as one that failed

libFuzzer, by Atheris, keeps the inputs that reach new code in `.fuzz/TARGET/corpus`, and begins
with them the next time; an input that fails is in `.fuzz/TARGET`. Where Atheris is not installed,
inputs are mutated without coverage.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from random import Random

try:
    import atheris
except ImportError:
    atheris = None

DIRECTORY = Path(".fuzz")
KERNEL = "kafscale.spark.codec.decoder_kernel"
"""Numba compiles it, and cannot if it is instrumented."""
INSTRUMENTED_SECONDS_MAX = 5.0
"""The limit for an input: instrumented code is slower."""


def fuzz(name: str, seconds: int) -> None:
    """Run one target in this process, which ends with it."""
    if atheris is None:
        from fuzz.runner import run
        from fuzz.targets import TARGETS

        checker = run(TARGETS[name], seconds, Random())
        print(f"{name}: {checker.decoded} inputs decoded, {checker.refused} refused")
        return
    with atheris.instrument_imports(include=["kafscale"], exclude=[KERNEL]):
        from fuzz.target import INPUT_BYTES_MAX, Checker
        from fuzz.targets import TARGETS
    checker = Checker(TARGETS[name], INSTRUMENTED_SECONDS_MAX)
    _instrument_codecs()
    directory = DIRECTORY / name.replace(" ", "-")
    corpus = directory / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = {
        "max_total_time": seconds,
        "max_len": INPUT_BYTES_MAX,
        "artifact_prefix": f"{directory}/",
        "verbosity": 0,
        "print_final_stats": 1,
        "rss_limit_mb": 0,  # The checker limits memory.
    }
    arguments = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup([sys.argv[0], *arguments, str(corpus)], checker.check)
    atheris.Fuzz()


def _instrument_codecs() -> None:
    """The decoders of messages are generated, so no import instruments them."""
    from kafscale.protocol.apis import APIS

    for api in APIS:
        for version in api.versions:
            atheris.instrument_func(api.request_codec(version).decode_at)
            atheris.instrument_func(api.response_codec(version).decode_at)


def check(name: str, file: Path) -> None:
    from fuzz.target import Checker
    from fuzz.targets import TARGETS

    Checker(TARGETS[name]).check(file.read_bytes())


def fuzz_each(names: list[str], seconds: int) -> int:
    """Run targets in processes of their own; return the number of those that failed."""
    failed = []
    for name in names:
        command = [sys.executable, "-m", "fuzz", name, "--seconds", str(seconds)]
        print(f"--- {name}", flush=True)
        if subprocess.run(command, check=False).returncode:  # noqa: S603 - this program.
            failed.append(name)
    print("failed: " + ", ".join(failed) if failed else f"{len(names)} targets, no failure")
    return len(failed)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--seconds", type=int, default=2, help="for each target")
    parser.add_argument("--input", type=Path, help="check this file only")
    options = parser.parse_args()
    match options.targets:
        case [name] if options.input:
            check(name, options.input)
        case [name]:
            fuzz(name, options.seconds)
        case names:
            if not names:
                from fuzz.targets import TARGETS

                names = list(TARGETS)
            sys.exit(bool(fuzz_each(names, options.seconds)))


if __name__ == "__main__":
    main()
