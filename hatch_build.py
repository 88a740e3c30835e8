"""Compiles the modules of `MODULES` with mypyc when the package is built or installed.

They are ordinary Python: where there is no C compiler, the package contains them uncompiled.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULES = ("kafscale/records/compaction.py", "kafscale/records/scan.py")

# A process of its own, because setuptools exits where it cannot compile. mypy's settings in
# pyproject.toml are for checking the whole tree, so they are not used.
COMPILE = """
import sys
from mypyc.build import mypycify
from setuptools import setup

build, *modules = sys.argv[1:]
options = ["--config-file=", "--follow-imports=skip", f"--cache-dir={build}/cache"]
setup(
    name="kafscale-compiled",
    ext_modules=mypycify(
        [*options, *modules], target_dir=f"{build}/c", opt_level="3", separate=True
    ),
    script_args=["build_ext", f"--build-lib={build}/lib", f"--build-temp={build}/objects"],
)
"""


class CompiledModules(BuildHookInterface[Any]):
    """Puts the compiled modules beside their sources, for wheels and editable installations."""

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        source = Path(self.root, "src")
        for module in MODULES:
            for stale in (source / module).parent.glob(f"{Path(module).stem}*.so"):
                stale.unlink()
        with TemporaryDirectory() as build:
            compiled = subprocess.run(  # noqa: S603 - the arguments are ours.
                [sys.executable, "-c", COMPILE, build, *MODULES],
                cwd=source,
                capture_output=True,
                text=True,
                check=False,
            )
            if compiled.returncode:
                reason = (compiled.stderr or compiled.stdout).strip().rpartition("\n")[2]
                self.app.display_warning(f"{', '.join(MODULES)} stays uncompiled: {reason}")
                return
            library = Path(build, "lib")
            extensions = [each.relative_to(library) for each in library.rglob("*.so")]
            for extension in extensions:
                shutil.copy(library / extension, source / extension)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"] += [str(Path("src", extension)) for extension in extensions]
