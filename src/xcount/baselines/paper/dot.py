"""Decision diagrams as Graphviz text.

Boxes are terminals, ellipses are guards; a solid edge is taken if the guard holds, a dashed one if
it does not.
"""

from __future__ import annotations

from fractions import Fraction

from xcount import _core
from xcount.baselines.paper.guards import GuardSpace
from xcount.problem.integers import LIMB_BITS


def guard_names(space: GuardSpace) -> list[str]:
    """Return the guard of each variable, by level, e.g. ``f8 < 0.02``."""
    names = []
    for group in space.groups:
        axis = space.problem.grid.axes[group.feature]
        name = axis.feature.name + ("'" if group.primed else "")
        for i in range(group.size):
            edge = axis.edge(i)
            names.append(f"cell of {name} <= {i}" if edge is None else f"{name} < {edge:g}")
    return names


def terminal_value(limbs: list[int]) -> int:
    """Return the integer of two's complement limbs."""
    value = sum(limb << (LIMB_BITS * i) for i, limb in enumerate(limbs))
    width = LIMB_BITS * len(limbs)
    return value - (1 << width) if value >> (width - 1) else value


def to_dot(space: GuardSpace, diagram: _core.Diagram, title: str, *, boolean: bool = False) -> str:
    """Return the diagram as a Graphviz digraph; terminals are shown in units of margin."""
    names = guard_names(space)
    lines = ["digraph {", f"  label={_quoted(title)}; labelloc=t;"]
    for node, level, low, high, limbs in space.table.rows(diagram):
        if level < 0:
            value = terminal_value(limbs)
            text = str(value) if boolean else _margin(space, value)
            lines.append(f"  n{node} [shape=box, label={_quoted(text)}];")
            continue
        lines.append(f"  n{node} [label={_quoted(names[level])}];")
        lines.append(f"  n{node} -> n{high};")
        lines.append(f"  n{node} -> n{low} [style=dashed];")
    return "\n".join([*lines, "}"]) + "\n"


def _margin(space: GuardSpace, value: int) -> str:
    return f"{float(Fraction(value) / space.problem.space.trees.scale):g}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
