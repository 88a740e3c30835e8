"""Runs the `kafscale` command by `python -m kafscale`."""

from kafscale.cli.main import main

if __name__ == "__main__":
    main()
