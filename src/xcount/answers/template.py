"""A template for a domain: a TOML file with the one-hot groups and the features of a model.

Columns are proposed as a one-hot group if their names share the part before the first separator
(``race_White``, ``race_Black``) and all of their tests separate 0 from 1. Data confirms a group, or
rules it out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble
from xcount.model.loaders import load
from xcount.model.tables import read_table
from xcount.question.domain import WITH_NONE
from xcount.question.grid import Axis, Grid

_SEPARATOR = re.compile(r"(?<=[^\W_])[\W_]+(?=.)")
_LISTED = 12


def domain_template(model: Any, data: Any = None, *, trust_pickle: bool = False) -> str:
    """Return a TOML file for ``--domain``.

    Args:
        model: a model file, a live model, or an ensemble.
        data: a table whose rows confirm one-hot groups.
        trust_pickle: whether a pickle may be opened.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> print(domain_template(figure_1()).splitlines()[-1])
        # "f1": guards 2, 3
    """
    ensemble = load(model, trust_pickle=trust_pickle)
    grid = Grid.of(ensemble)
    rows = None if data is None else read_table(data, ensemble).rows
    groups = {
        name: columns
        for name, own in _by_name(grid).items()
        if (columns := _confirmed(ensemble, own, rows)) is not None
    }
    lines = [
        "# Which regions exist; for --domain. Remove the # of what holds, and change it.",
        "",
        "# Conditions that every region fulfils.",
        f"# where = [{_text(_example(grid))}]",
        "",
        *_group_lines(groups, has_data=rows is not None),
        "",
        "# The features:",
        *(_feature_line(axis) for axis in grid.axes),
    ]
    return "\n".join(lines) + "\n"


def proposed_groups(grid: Grid) -> dict[str, tuple[str, ...]]:
    """Return the columns of each one-hot group that the column names suggest."""
    names = [axis.feature.name for axis in grid.axes]
    return {name: tuple(names[c] for c in own) for name, own in _by_name(grid).items()}


def _by_name(grid: Grid) -> dict[str, list[int]]:
    """Return the columns that can be 0 or 1, grouped by the prefix that several names share.

    For ``a_b_c`` the prefix is ``a_b`` if other names start with it, else ``a``.
    """
    binary = {i: axis.feature.name for i, axis in enumerate(grid.axes) if _is_binary(axis)}
    shared: dict[str, list[int]] = {}
    for index, name in binary.items():
        for match in _SEPARATOR.finditer(name):
            shared.setdefault(name[: match.start()], []).append(index)
    found: dict[str, list[int]] = {}
    for name in sorted(shared, key=len, reverse=True):  # the longest prefixes first
        free = [i for i in shared[name] if not any(i in own for own in found.values())]
        if len(free) > 1:
            found[name] = free
    taken = {axis.feature.name for axis in grid.axes}
    in_order = sorted(found.items(), key=lambda item: item[1])
    return {name: own for name, own in in_order if name not in taken}


def _is_binary(axis: Axis) -> bool:
    """Return whether all tests of a column separate 0 from 1, or nothing."""
    if axis.feature.categories is not None:
        return {*axis.feature.categories} <= {0, 1}
    return bool(((axis.thresholds > 0) & (axis.thresholds <= 1)).all())


def _confirmed(
    ensemble: Ensemble, columns: Sequence[int], rows: NDArray[np.float64] | None
) -> list[str] | None:
    """Return a group's columns, with ``+none`` if rows need it; None if rows rule it out."""
    names = [ensemble.features[column].name for column in columns]
    if rows is None:
        return names
    values = rows[:, columns]
    if not np.isin(values, (0.0, 1.0)).all():
        return None
    ones = values.sum(axis=1)
    if (ones > 1).any():
        return None
    return [*names, WITH_NONE] if (ones == 0).any() else names


def _group_lines(groups: dict[str, list[str]], *, has_data: bool) -> list[str]:
    about = "confirmed by the data" if has_data else "suggested by their names: check them"
    lines = [f"# Columns of which exactly one is 1 ({WITH_NONE}: or all are 0), {about}."]
    if not groups:
        return [*lines, "# [one-hot]", '# name = ["column", "column"]']
    return [*lines, "[one-hot]", *(f"{_text(n)} = {_listed(own)}" for n, own in groups.items())]


def _example(grid: Grid) -> str:
    """Return an example of a condition that some region satisfies."""
    for axis in grid.axes:
        if not axis.feature.is_categorical and len(axis.thresholds):
            return f"{axis.feature.name} >= {axis.thresholds[0]:g}"
    return "age >= 25"


def _feature_line(axis: Axis) -> str:
    """Return a comment line about a feature: its guards, or its categories."""
    feature = axis.feature
    if feature.categories is not None:
        words: Sequence[object] = feature.labels or feature.categories
        what = "categories"
    else:
        words, what = [f"{guard:g}" for guard in axis.thresholds], "guards"
    shown = ", ".join(map(str, words[:_LISTED])) + (", ..." if len(words) > _LISTED else "")
    return (
        f"# {_text(feature.name)}: {what} {shown}" if words else f"# {_text(feature.name)}: unused"
    )


def _listed(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, words))}]"


def _text(text: str) -> str:
    """Return a text as a TOML string; the escapes of JSON are valid in TOML, too."""
    return json.dumps(text)
