"""Prints the installed versions of everything that the tests need.

    python -m tools.lock > requirements/test.lock
    pip install -r requirements/test.lock && pip install --no-deps .

Only names and versions: where packages come from is up to the installer.
"""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def locked(root: str = "xcount[test]") -> dict[str, str]:
    """Return the versions of everything that the requirement needs, except itself."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(root)]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        extras = requirement.extras or {""}
        for extra in {"", *extras} - {e for n, e in seen if n == name}:
            seen.add((name, extra))
            waiting += _needs(name, extra)
        found[name] = metadata.version(name)
    del found[canonicalize_name(Requirement(root).name)]
    return dict(sorted(found.items()))


def _needs(name: str, extra: str) -> list[Requirement]:
    """Return the requirements that one extra of a distribution adds ("" for those without one)."""
    requirements = [Requirement(text) for text in metadata.requires(name) or []]
    environment = {"extra": extra}
    return [r for r in requirements if r.marker is None or r.marker.evaluate(environment)]


def main() -> int:
    print(f"# python -m tools.lock, on {platform.system()} with Python {platform.python_version()}")
    for name, version in locked().items():
        print(f"{name}=={version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
