"""The folder tree is the pipeline: a module imports only what stands above it."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import xcount

SOURCES = Path(xcount.__file__).parent

ROOMS: dict[str, tuple[str, ...]] = {
    "_version": (),
    "_core": (),
    "errors": (),
    "support": (
        "numerals",
        "nearest",
        "process",
        "files",
        "visible",
        "workspace",
        "parse",
        "options",
        "display",
        "records",
        "record_check",
        "interval",
    ),
    "model": (
        "inputs",
        "ensemble",
        "grafts",
        "rounding",
        "examples",
        "one_hot",
        "loaders",
        "table_values",
        "group_columns",
        "tables",
        "align",
        "two_models",
    ),
    "question": (
        "cell",
        "share",
        "probability",
        "change",
        "gap",
        "flip",
        "change_fields",
        "query",
        "values",
        "condition",
        "domain",
        "guards",
        "rules",
        "allowed",
        "grid",
        "column_groups",
        "cell_words",
    ),
    "problem": (
        "integers",
        "exact_sums",
        "laid_trees",
        "subproblem",
        "asked",
        "margins",
        "neighbours",
        "corner_question",
        "form",
        "switch",
        "gap_form",
        "directed_gap_form",
        "flip_encoding",
        "margin_rows",
        "flip_form",
        "probability_form",
        "problem",
        "joint",
        "parts",
    ),
    "counters": (
        "costs",
        "tally",
        "engine",
        "settings",
        "__init__",
        "profile",
        "region_search",
        "decisions",
        "swings",
        "class_swings",
        "moves",
        "visit",
        "cover",
        "worst",
        "known_counts",
        "exact",
        "solutions",
        "sampling",
        "auto",
        "parts",
    ),
    "measures": (
        "measured",
        "products",
        "portrait",
        "population",
        "fitting",
        "weighting",
        "draws",
        "exact_shares",
        "measure",
        "mixture",
        "rows",
        "weigh",
        "shares",
    ),
    "baselines": ("paper", "cnf"),
    "verified": (
        "packing",
        "question_file",
        "check_question",
        "samples",
        "counter",
        "model_check",
    ),
    "answers": (
        "explanation",
        "options",
        "witness",
        "explain",
        "people",
        "result",
        "verify",
        "count",
        "worst",
        "monotone",
        "person",
        "diff_result",
        "diff_witnesses",
        "diff",
        "template",
        "inspection",
    ),
    "repairs": (
        "writers",
        "sufficient",
        "questions",
        "pair_bounds",
        "objective",
        "program",
        "shrink",
        "certify",
        "search",
        "labels",
        "effect",
        "retrain",
        "result",
        "testing",
        "repair",
    ),
    "runs": (
        "journal",
        "journal_lines",
        "inputs",
        "protected",
        "plan",
        "task",
        "verify",
        "shards",
        "batch",
        "options",
        "ranked",
        "audit",
        "compared",
        "compare",
    ),
    "cluster": ("spread", "worker", "client"),
    "report": (),
    "testing": (),
    "cli": (),
    "__main__": (),
}
"""The rooms in the order in which data passes through them, and the files or folders of each in
theirs; files that are not listed (loaders, reports, commands) stand side by side."""

DOORS = {
    ("answers.count", "cluster"): "count is the front door of a cluster's count",
    ("answers.diff", "cluster"): "diff is the front door of a cluster's diff",
    ("answers.person", "report"): "PersonResult.to_html is the report's front door",
    ("answers.monotone", "report"): "MonotoneResult.to_html is the report's front door",
    ("answers.diff_result", "report"): "DiffResult.to_html is the report's front door",
    ("repairs.result", "report"): "RepairResult.to_html and its like are the reports' front door",
    ("support.options", "report"): "public functions show a bar in a notebook",
    ("support.display", "report"): "results are the front door of cards, tables and plots",
    ("runs.batch", "cluster"): "runs are the front door of a cluster's counts",
    ("runs.audit", "report"): "AuditResult.to_html and its like are the reports' front door",
    ("runs.compare", "report"): "CompareResult.to_html and its like are the reports' front door",
}
"""Imports against the order, each with its reason; those of other rooms must be lazy."""

HEAVY = {
    "IPython",
    "catboost",
    "clarabel",
    "dask",
    "distributed",
    "jinja2",
    "joblib",
    "lightgbm",
    "matplotlib",
    "mlflow",
    "onnx",
    "onnxruntime",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "scipy",
    "sklearn",
    "skops",
    "treelite",
    "xgboost",
}
"""Libraries that are only imported inside the function that needs them."""

RANK = {room: place for place, room in enumerate(ROOMS)}


@functools.cache
def modules() -> tuple[tuple[str, Path, ast.Module], ...]:
    """Return the dotted name below xcount, the file, and the syntax tree of every module."""
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        if parts != ("__init__",):  # the list of public names, which imports lazily
            found.append((".".join(parts), path, ast.parse(path.read_text(encoding="utf-8"))))
    return tuple(found)


def imported(tree: ast.AST) -> set[str]:
    """Return the dotted names of all imported modules, lazy ones included."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            folder = SOURCES.parent / node.module.replace(".", "/")
            if node.module.startswith("xcount") and folder.is_dir():
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def at_import_time(tree: ast.Module) -> set[str]:
    """Return what is imported as soon as the module is, not what functions import."""
    statements = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return imported(ast.Module(body=list(statements), type_ignores=[]))


def place(name: str) -> tuple[int, int] | None:
    """Return where a module stands: the rank of its room, and of its file there; -1 if unlisted."""
    room, _, rest = name.partition(".")
    if room not in RANK:
        return None
    file, listed = rest.partition(".")[0], ROOMS[room]
    return RANK[room], listed.index(file) if file in listed else -1


def is_upward(name: str, target: str) -> bool:
    """Tell whether an import goes against the order of rooms, or of files in a room."""
    here, there = place(name), place(target)
    if here is None or there is None:
        return False
    if here[0] != there[0]:
        return there[0] > here[0]
    return -1 not in (here[1], there[1]) and there[1] > here[1]


def upward_imports(names: set[str], name: str) -> set[str]:
    """Return the imports of a module that go against the order."""
    targets = {n.removeprefix("xcount.") for n in names if n.startswith("xcount.")}
    return {target for target in targets if is_upward(name, target)}


def through_a_door(name: str, target: str) -> tuple[str, str] | None:
    """Return the exception that allows an import, if there is one."""
    for source, room in DOORS:
        if name == source and f"{target}.".startswith(f"{room}."):
            return source, room
    return None


def test_every_module_has_its_place() -> None:
    """A new room, or a new file of a room whose files have an order, is entered above."""
    unknown = []
    for name, _, _ in modules():
        room, _, rest = name.partition(".")
        file = rest.partition(".")[0]
        known = room in ROOMS and (not ROOMS[room] or file in (*ROOMS[room], "__init__"))
        unknown += [] if known else [name]
    assert unknown == []


def test_a_module_imports_only_what_stands_above_it() -> None:
    """Lazy imports are imports too."""
    wrong = [
        f"{name} imports {target}"
        for name, _, tree in modules()
        for target in upward_imports(imported(tree), name)
        if through_a_door(name, target) is None
    ]
    assert wrong == []


def test_doors_are_lazy_and_needed() -> None:
    """An exception that nobody uses any more is removed; other rooms are imported when needed."""
    used, at_once = set(), set()
    for name, _, tree in modules():
        used |= {through_a_door(name, target) for target in upward_imports(imported(tree), name)}
        for target in upward_imports(at_import_time(tree), name):
            if target.partition(".")[0] != name.partition(".")[0]:
                at_once.add((name, target))
    assert used - {None} == set(DOORS)
    assert at_once == set()


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
        for name, path, tree in modules()
        for node in ast.walk(tree)
        if not name.startswith("cli.")
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert wrong == []
