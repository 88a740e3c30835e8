"""The scripts of the images, run with stubs of the programs that they call."""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from unit.deploy.chart import ROOT

DIRECTORY = ROOT / "deploy" / "docker"
RECORDER = """#!/bin/sh
printf '%s\\n' "$0" "$@"
"""
EXECUTOR_ENVIRONMENT = {
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_DRIVER_URL": "spark://scheduler@driver:7078",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_EXECUTOR_POD_IP": "192.0.2.7",
    "SPARK_EXECUTOR_POD_NAME": "exec-7",
    "SPARK_JAVA_OPT_0": "-Da=one two",
    "SPARK_JAVA_OPT_1": "-Db=*",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


def run_script(script, *arguments, **environment):
    """Run a script; return the lines that it prints."""
    system = {"PATH": os.environ["PATH"]}
    done = subprocess.run(  # noqa: S603 - our own script.
        [DIRECTORY / script, *arguments],
        env={**system, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """Stubs of the programs of an image, which print their arguments."""
    for name in ("java/bin/java", "spark/bin/spark-submit", "bin/kafscale"):
        program = tmp_path / name
        program.parent.mkdir(parents=True)
        program.write_text(RECORDER)
        program.chmod(0o755)
    return {
        "JAVA_HOME": str(tmp_path / "java"),
        "SPARK_HOME": str(tmp_path / "spark"),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    }


def test_job_runs_the_kafscale_command(programs):
    program, *arguments = run_script(
        "spark-entry.sh", "spark", "merge", "--topic", "a b", **programs
    )
    assert Path(program).name == "kafscale"
    assert arguments == ["spark", "merge", "--topic", "a b"]


def test_driver_runs_spark_submit_in_client_mode(programs):
    address = {"SPARK_DRIVER_BIND_ADDRESS": "192.0.2.1"}
    program, *arguments = run_script(
        "spark-entry.sh", "driver", "job.py", "lake", **programs, **address
    )
    assert Path(program).name == "spark-submit"
    assert arguments == [
        "--deploy-mode",
        "client",
        "--conf",
        "spark.driver.bindAddress=192.0.2.1",
        "--conf",
        "spark.executorEnv.SPARK_DRIVER_POD_IP=192.0.2.1",
        "job.py",
        "lake",
    ]


def test_executor_is_configured_by_environment_variables(programs):
    program, *arguments = run_script(
        "spark-entry.sh", "executor", **programs, **EXECUTOR_ENVIRONMENT
    )
    assert Path(program).name == "java"
    assert arguments == [
        "-Da=one two",
        "-Db=*",
        "-Xms1024m",
        "-Xmx1024m",
        "-cp",
        f"/opt/spark/conf:{programs['SPARK_HOME']}/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        "--driver-url",
        "spark://scheduler@driver:7078",
        "--executor-id",
        "7",
        "--cores",
        "2",
        "--app-id",
        "spark-1",
        "--hostname",
        "192.0.2.7",
        "--resourceProfileId",
        "0",
        "--podName",
        "exec-7",
    ]


def test_executor_uses_spark_classpath(programs):
    extra = {"SPARK_CLASSPATH": "more.jar"}
    arguments = run_script(
        "spark-entry.sh", "executor", **programs, **EXECUTOR_ENVIRONMENT, **extra
    )
    path = arguments[arguments.index("-cp") + 1]
    assert path.split(":")[:2] == ["more.jar", "/opt/spark/conf"]


def test_trim_removes_unneeded_files(tmp_path: Path):
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    kept = ["botocore/data/endpoints.json", "botocore/data/s3/service.json", "one/module.py"]
    dropped = ["botocore/data/ec2/service.json", "one/tests/test_one.py", "one/fast.c", "one/a.pyi"]
    for name in (*kept, *dropped):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text("")

    run_script("install.sh", "trim", "s3", "sts", TARGET=str(tmp_path))

    remaining = {str(path.relative_to(packages)) for path in packages.rglob("*") if path.is_file()}
    compiled = {name for name in remaining if name.endswith(".pyc")}
    assert remaining - compiled == set(kept)
    assert [name.partition(".")[0] for name in compiled] == ["one/__pycache__/module"]


def test_uv_is_installed_from_the_lock_file():
    lock = (ROOT / "requirements.lock").read_text()
    expression = "/^uv==/,/^    #/p"
    assert f"sed -n '{expression}'" in (DIRECTORY / "install.sh").read_text()
    done = subprocess.run(  # noqa: S603 - our own expression.
        ["sed", "-n", expression],  # noqa: S607
        input=lock,
        capture_output=True,
        text=True,
        check=True,
    )
    first, *rest = done.stdout.splitlines()
    assert first.startswith("uv==")
    assert all(line.strip().startswith(("--hash=sha256:", "#")) for line in rest)
    assert any("--hash" in line for line in rest)


def write_wheel(directory: Path, name: str) -> Path:
    wheel = directory / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}.py", "")
        information = f"{name}-1.dist-info"
        archive.writestr(
            f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
        )
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{information}/RECORD", "")
    return wheel


def test_packages_are_installed_only_with_a_hash_of_the_lock_file(tmp_path: Path):
    wheel = write_wheel(tmp_path, "needed")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "any"\nversion = "1"\ndependencies = ["needed"]\n'
        "[tool.uv.pip]\nno-index = true\nfind-links = ['.']\n"
    )

    def install(lock: str) -> str:
        """Install the dependencies; return the errors."""
        (tmp_path / "requirements.lock").write_text(lock)
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TARGET": str(tmp_path / "environment"),
            "UV_VENV_CLEAR": "1",
        }
        done = subprocess.run(  # noqa: S603 - our own script.
            [DIRECTORY / "install.sh", "dependencies"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert bool(done.returncode) == bool(done.stderr)
        return done.stderr

    assert "no trusted hash" in install("")
    assert "Hash mismatch" in install(f"needed==1 --hash=sha256:{'0' * 64}\n")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert not install(f"needed==1 --hash=sha256:{digest}\n")
    assert list((tmp_path / "environment").rglob("needed.py"))


def test_unknown_step_fails():
    with pytest.raises(subprocess.CalledProcessError):
        run_script("install.sh", "everything")
