"""The version stands in one place, and everything that repeats it agrees."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path

from xcount._version import __version__

ROOT = Path(__file__).parent.parent
CITATION = (ROOT / "CITATION.cff").read_text()


def citation(field: str) -> str:
    """Return a top-level field of CITATION.cff."""
    found = re.search(rf'^{field}: "?([^"\n]+)"?$', CITATION, re.MULTILINE)
    assert found is not None, field
    return found[1]


def test_the_package_takes_its_version_from_the_one_place() -> None:
    """The build reads _version.py; pyproject.toml has no number of its own."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"]
    assert "version" not in settings["project"]
    source = settings["tool"]["scikit-build"]["metadata"]["version"]["input"]
    assert source == "src/xcount/_version.py"


def test_the_citation_has_the_version_and_a_date() -> None:
    """CITATION.cff cannot read _version.py."""
    assert citation("version") == __version__
    assert date.fromisoformat(citation("date-released"))


def test_documents_name_the_tag_of_this_version() -> None:
    """The hook for pre-commit and the action for GitHub are used by a tag."""
    tags = re.findall(r"\bv\d+\.\d+\.\d+\b", (ROOT / "docs" / "howto" / "ci-gate.md").read_text())
    assert {*tags} == {f"v{__version__}"}


def test_the_changelog_starts_with_this_version_or_what_follows_it() -> None:
    """A released version has its date, which is that of the citation."""
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    if headings[0] == "Unreleased":
        headings = headings[1:]
    if headings:
        assert headings[0] == f"{__version__} ({citation('date-released')})"
