"""The file that spark-submit runs instead of `kafscale spark`; see `kafscale spark entry`.

spark-submit --master yarn $(kafscale spark entry) check
"""

import sys


def main() -> None:
    """Run `kafscale spark` with the remaining arguments."""
    # Python searches the directory of a script first; our modules would shadow others.
    sys.path.pop(0)
    from kafscale.cli.main import main as kafscale  # noqa: PLC0415 - not before the line above.

    sys.argv[:1] = ["kafscale", "spark"]
    kafscale()


if __name__ == "__main__":
    main()
