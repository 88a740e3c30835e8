#!/bin/sh
# Makes the Python environment of an image in /opt/kafscale, in steps that a builder keeps one by one:
#
#   install.sh uv                        the installer
#   install.sh dependencies [EXTRA...]   what Kafscale needs, and these extras of it
#   install.sh kafscale                  Kafscale itself
#   install.sh trim [SERVICE...]         without what no image needs; of AWS, only these services are left
#   install.sh java                      a Java for Spark, from the packages, as /opt/kafscale/java
#
# requirements.lock pins every package by version and hash, and whatever differs is refused.
set -eu

target=${TARGET:-/opt/kafscale}
step=$1
shift

case $step in
uv)
  sed -n '/^uv==/,/^    #/p' requirements.lock > uv.lock
  python -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --requirement uv.lock
  ;;
dependencies)
  for extra
  do
    shift
    set -- "$@" --extra "$extra"
  done
  uv venv --quiet "$target"
  uv pip install --quiet --no-cache --python "$target" --constraint requirements.lock --requirement pyproject.toml "$@"
  ;;
kafscale)
  uv pip install --quiet --no-cache --python "$target" --no-deps .
  ;;
trim)
  cd "$target"/lib/python3.*/site-packages
  for service in botocore/data/*/
  do
    case " $* " in
    *" $(basename "$service") "*) ;;
    *) rm -r "$service" ;;
    esac
  done
  # Tests, sources that are compiled already, declarations for compilers, and examples.
  find . -type d \( -name tests -o -path ./pyarrow/include -o -path ./pyspark/examples \) -prune -exec rm -r {} +
  find . -type f \( -name '*.c' -o -name '*.h' -o -name '*.pxd' -o -name '*.pyi' -o -name '*.pyx' \) -delete
  # Nothing is written into an image that runs: its bytecode is there, and is never compared with the source.
  "$target/bin/python" -m compileall -q -j 0 --invalidation-mode unchecked-hash .
  ;;
java)
  "$target/bin/python" - "$target" <<'PYTHON'
import pathlib, sys
from kafscale.spark import java

target = pathlib.Path(sys.argv[1])
home = java.home_for_spark(java.find({"PATH": ""}), target / "share")
(target / "java").symlink_to(home)
PYTHON
  ;;
*)
  echo "install.sh: no step $step" >&2
  exit 2
  ;;
esac
