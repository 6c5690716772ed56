"""The native core: folders are layers, and headers say what they hold and where it is proved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CPP = ROOT / "cpp"

ABOVE = {
    "support": set[str](),
    "trees": {"support"},
    "exact": {"support", "trees"},
    "sampling": {"support", "trees", "exact"},
    "worst": {"support", "trees"},
    "diagrams": {"support", "trees"},
    "population": {"support"},
    "tables": {"support"},
}
"""Which other folders the files of a folder may include."""

HEADERS = sorted((CPP / "include" / "xcount").rglob("*.hpp"))
NAMED_SECTION = re.compile(r'docs/([\w-]+\.md)((?:, "[^"]+")+)')


def files() -> Iterator[tuple[str, Path]]:
    """Yield the core's headers and sources, each with its folder."""
    for base in (CPP / "include" / "xcount", CPP / "src"):
        for path in sorted(base.rglob("*.?pp")):
            yield path.relative_to(base).parts[0], path


def sections(page: str) -> set[str]:
    """Return the titles of a page: its headings, and the bold words that open its paragraphs."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"^(?:#+ (.+)|(?:- )?\*\*([^*]+?)\.?\*\*)", text, re.MULTILINE)
    return {heading or bold for heading, bold in found}


def opening(path: Path) -> str:
    """Return the comment that a file opens with, as one line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return " ".join(line.removeprefix("//").strip() for line in lines[:end])


def test_every_file_has_a_known_folder() -> None:
    """Nothing stands beside the folders, and no folder is unknown to this test."""
    assert {folder for folder, _ in files()} == set(ABOVE)


def test_folders_include_only_what_stands_above_them() -> None:
    """A folder includes itself and the folders above it, and nothing knows nanobind."""
    wrong = []
    for folder, path in files():
        included = re.findall(r'#include ["<]([^">]+)[">]', path.read_text(encoding="utf-8"))
        for name in included:
            own = name.startswith("xcount/")
            if "nanobind" in name or (own and name.split("/")[1] not in {folder, *ABOVE[folder]}):
                wrong.append(f"{path.relative_to(CPP)} includes {name}")
    assert not wrong


@pytest.mark.parametrize("path", HEADERS, ids=lambda p: p.stem)
def test_headers_say_what_they_hold(path: Path) -> None:
    """Each header opens with a comment; the sections of documents that it names exist."""
    comment = opening(path)
    assert len(comment) > 40
    for page, titles in NAMED_SECTION.findall(comment):
        for title in re.findall(r'"([^"]+)"', titles):
            assert title in sections(page), f"{page} has no section {title!r}"


def test_every_class_of_the_exact_counter_names_its_proof() -> None:
    """What the exact count rests on is proved somewhere, and the header says where."""
    unproved = {"brute", "limits"}
    for path in HEADERS:
        if path.parent.name == "exact" and path.stem not in unproved:
            assert NAMED_SECTION.search(opening(path)), f"{path.name} names no section"


def test_every_header_has_a_test() -> None:
    """Each header has a test file of its own, or stands in this list with its reason."""
    covered_by = {
        "assert": "a macro that every sanitized test runs through",
        "held_bytes": "value and limits tests of its users",
        "random": "sampler_test",
        "stopping": "threads_test",
        "parallel": "threads_test",
        "limits": "counter_test: limits_are_kept_and_said",
        "diagram_recorder": "solution_diagram_test",
        "subproblem": "counter_test",
        "elimination": "counter_test",
        "cell_order": "corner_sums_test",
        "corner_filter": "corner_sums_test",
        "corner_judge": "probability_link_test",
        "corner_layout": "corner_sums_test",
        "corner_list": "corner_sums_test",
        "corner_plan": "corner_sums_test",
        "corner_stream": "corner_sums_test",
        "corner_tile": "corner_sums_test",
        "wide_tile": "corner_sums_test: rounded_leaves_decide",
        "tile_probability": "probability_link_test",
        "lanes": "corner_sums_test",
        "change": "corner_sums_test",
        "add": "diagram_test",
        "bdd": "diagram_test",
        "bdd_count": "diagram_test",
        "begin_vector_unit": "slices_test",
        "end_vector_unit": "slices_test",
        "vector_unit": "slices_test",
        "slice_indices": "slices_test",
        "mask_scope": "row_decider_test",
        "sliced_forest": "row_decider_test",
        "region_search": "region_sampler_test",
        "region_trees": "region_sampler_test",
        "task_cover": "cover_test",
        "climb": "pair_search_test",
        "objective": "pair_search_test",
    }
    tests = {path.stem.removesuffix("_test") for path in (CPP / "tests").rglob("*_test.cpp")}
    assert {path.stem for path in HEADERS} - tests - set(covered_by) == set()
    assert not tests & set(covered_by), "a header with a test of its own needs no reason"
