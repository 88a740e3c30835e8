"""Writes the generated files that are out of date, and prints their paths.

python -m generators              all files
python -m generators DIRECTORY    only those below a directory of the repository
"""

import sys
from pathlib import Path

from generators.files import generated_files


def write_files(root: Path, directory: str = "") -> None:
    """Write the files below a directory of the repository at `root`."""
    files = {name: text for name, text in generated_files().items() if name.startswith(directory)}
    stale = [name for name, text in files.items() if _read(root / name) != text]
    for name in stale:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name], encoding="utf-8")
        print(f"wrote {name}")
    print(f"{len(files) - len(stale)} of {len(files)} generated files were up to date")


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    write_files(Path(__file__).parents[1], *sys.argv[1:])
