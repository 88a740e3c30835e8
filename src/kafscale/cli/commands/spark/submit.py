"""What spark-submit runs in place of `kafscale spark`: `kafscale spark entry` prints where it is.

spark-submit --master yarn $(kafscale spark entry) check
"""

import sys


def main() -> None:
    """The rest of the command line is a job and its options."""
    # Python looks for modules beside a script first, where it would take ours for others.
    sys.path.pop(0)
    from kafscale.cli.main import main as kafscale  # noqa: PLC0415 - not before the line above.

    sys.argv[:1] = ["kafscale", "spark"]
    kafscale()


if __name__ == "__main__":
    main()
