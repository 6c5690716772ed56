"""The folder tree is the pipeline: a module imports only what stands above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import xcount

SOURCES = Path(xcount.__file__).parent

ORDER = (
    "_version",
    "_core",
    "errors",
    "support",
    "model",
    "question",
    "problem",
    "counters",
    "baselines",
    "answers",
    "runs",
    "cluster",
    "report",
    "cli",
    "__main__",
)

UPWARDS = {
    ("counters", "cluster"): "long counts are spread",
    ("answers", "cluster"): "count is the front door of a cluster's count",
    ("answers", "report"): "CountResult.plot is the plots' front door",
    ("runs", "cluster"): "runs are the front door of a cluster's counts",
    ("runs", "report"): "AuditResult.to_html and its like are the reports' front door",
}
"""Imports against the order, each with its reason; they must be lazy."""

HEAVY = {
    "catboost",
    "dask",
    "distributed",
    "jinja2",
    "joblib",
    "lightgbm",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "sklearn",
    "skops",
    "treelite",
    "xgboost",
}
"""Libraries that are only imported inside the function that needs them."""

MAX_LINES = 500


def modules() -> Iterator[tuple[str, Path, ast.Module]]:
    """Yield the place in the pipeline, the file, and the syntax tree of every module."""
    for path in sorted(SOURCES.rglob("*.py")):
        place = path.relative_to(SOURCES).parts[0].removesuffix(".py")
        if place != "__init__":  # the list of public names, which imports lazily
            yield place, path, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.AST) -> set[str]:
    """Return the dotted names of all imported modules, lazy ones included."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "xcount":
            names |= {f"xcount.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def at_import_time(tree: ast.Module) -> set[str]:
    """Return what is imported as soon as the module is, not what functions import."""
    statements = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return imported(ast.Module(body=list(statements), type_ignores=[]))


def test_every_module_has_its_place() -> None:
    """A new module is entered in the order above."""
    assert {place for place, _, _ in modules()} <= set(ORDER)


def test_a_module_imports_only_what_stands_above_it() -> None:
    """Lazy imports are imports too."""
    rank = {place: i for i, place in enumerate(ORDER)}
    wrong = []
    for place, path, tree in modules():
        for name in imported(tree):
            parts = name.split(".")
            target = parts[1] if parts[0] == "xcount" and len(parts) > 1 else None
            if target not in rank or (place, target) in UPWARDS:
                continue
            if rank[target] > rank[place]:
                wrong.append(f"{path.name} imports {name}")
    assert wrong == []


def test_imports_against_the_order_are_lazy_and_needed() -> None:
    """An exception that nobody uses any more is removed."""
    used, at_once = set(), set()
    for place, _, tree in modules():
        for source, target in UPWARDS:
            if place == source:
                used |= {(source, target)} if _imports(imported(tree), target) else set()
                at_once |= {(source, target)} if _imports(at_import_time(tree), target) else set()
    assert used == set(UPWARDS)
    assert at_once == set()


def _imports(names: set[str], target: str) -> bool:
    return any(f"{name}.".startswith(f"xcount.{target}.") for name in names)


def test_heavy_libraries_are_imported_when_needed() -> None:
    """Importing xcount costs numpy and nothing else."""
    wrong = [
        f"{path.name} imports {name}"
        for _, path, tree in modules()
        for name in at_import_time(tree)
        if name.partition(".")[0] in HEAVY
    ]
    assert wrong == []


def test_only_the_command_line_prints() -> None:
    """Results are values; who prints them is the user's business."""
    wrong = [
        f"{path.name}:{node.lineno}"
        for place, path, tree in modules()
        for node in ast.walk(tree)
        if place != "cli"
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert wrong == []


def test_no_file_is_a_labyrinth() -> None:
    """Files stay short enough to be one room."""
    long = {path.name for _, path, _ in modules() if len(path.read_text().splitlines()) > MAX_LINES}
    assert long == set()
