#!/bin/sh
# Creates the Python environment of an image in /opt/kafscale, in steps that are cached as layers:
#
#   install.sh compiler                  a C compiler, which makes a broker faster (hatch_build.py)
#   install.sh uv                        the installer
#   install.sh dependencies [EXTRA...]   the dependencies of Kafscale and of these extras
#   install.sh kafscale                  Kafscale itself
#   install.sh trim [SERVICE...]         remove unneeded files; of botocore, keep only these services
#   install.sh java                      link the Java runtime of the packages as /opt/kafscale/java, for Spark
#
# requirements.lock pins every package by version and hash, also those that build Kafscale; a package that
# differs, or that it does not contain, is rejected.
set -eu

target=${TARGET:-/opt/kafscale}
step=$1
shift

case $step in
compiler)
  apt-get update -q
  apt-get install --quiet --yes --no-install-recommends gcc libc6-dev
  ;;
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
  uv pip install --quiet --no-cache --python "$target" --require-hashes --constraint requirements.lock \
    --requirement pyproject.toml "$@"
  ;;
kafscale)
  uv pip install --quiet --no-cache --python "$target" --no-deps --build-constraint requirements.lock \
    --require-build-hashes --preview-features build-dependency-hashes .
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
  # Tests, C sources, headers, and examples.
  find . -type d \( -name tests -o -path ./pyarrow/include -o -path ./pyspark/examples \) -prune -exec rm -r {} +
  find . -type f \( -name '*.c' -o -name '*.h' -o -name '*.pxd' -o -name '*.pyi' -o -name '*.pyx' \) -delete
  # The file system of a container is read-only, so bytecode is compiled here and not checked against the source.
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
