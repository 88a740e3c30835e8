"""Lets `python -m kafscale` do what `kafscale` does."""

from kafscale.cli.main import main

if __name__ == "__main__":
    main()
