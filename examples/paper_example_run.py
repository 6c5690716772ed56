"""The paper's "Example Run" (its appendix), step by step and with the corrections.

Three trees of depth 2, S = {f2}, d = 1, G = 0.1. The pictures of the trees are not in the paper's
source. The trees used here are grown by its recipe on the diabetes data (``appendix_model``); they
have the guards of f2 that it prints (0.005, 0.009 and 0.073), and also test f3 and f8.

Masks have the paper's numbers: m0 is the last cell of f2, where all guards are false. The paper
lists ordered pairs, so each subproblem here stands for two of its own.

    python examples/paper_example_run.py                    prints every step
    python examples/paper_example_run.py --output FOLDER    also draws the diagrams

The trees and diagrams are written as Graphviz text, and as pictures if ``dot`` is installed. Each
pruned tree is drawn twice, before and after the constraint of monotone bits.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from xcount import Grid, Query, _core
from xcount.baselines.paper.dot import terminal_value, to_dot
from xcount.baselines.paper.guards import GuardSpace
from xcount.baselines.paper.subproblem import Pair, pruned_tree
from xcount.baselines.paper.union import SampledUnion
from xcount.counters import counter
from xcount.counters.settings import Settings
from xcount.model.ensemble import Tree
from xcount.model.examples import appendix_model
from xcount.problem.problem import Problem

PLUS, MINUS = _core.AddOp.PLUS, _core.AddOp.MINUS


class ExampleRun:
    """Walks through algorithm 1 and describes each step."""

    def __init__(self, problem: Problem, folder: Path | None) -> None:
        self.problem = problem
        self.folder = folder
        others = [f for f in range(len(problem.grid.axes)) if f not in problem.query.sensitive]
        self.space = GuardSpace(problem, others)
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        self.lines += lines

    def walk(self) -> int:
        """Do every step; return the count."""
        self.say("1. The splits")
        for axis in self.problem.grid.axes:
            if len(axis.thresholds):
                guards = ", ".join(f"{t:.3f}" for t in axis.thresholds)
                self.say(f"   {axis.feature.name}: {guards}")
        self.say("", "2. The masks: k guards make k + 1 of them (as printed, one is missing)")
        for mask in reversed(range(self.problem.n_masks)):
            cells = self.problem.masks.cells(mask)
            self.say(f"   {self.name(mask)} = {self.bits(mask)}  {self.problem.describe(cells)}")
        for index, tree in enumerate(self.problem.trees):
            self.write(f"tree{index}", tree_to_dot(self.problem, tree, f"tree {index}"))
        pairs = list(self.problem.pairs())
        self.say("", "3. The subproblems: unordered pairs of masks at distance 1")
        for i, (a, b) in enumerate(pairs):
            numbers = f"the paper's {2 * i} and {2 * i + 1}"
            self.say(f"   {self.both(a, b)}  {self.bits(a)} {self.bits(b)}  {numbers}")
        union = SampledUnion(0.1, 0.1, len(pairs), seed=0)
        for step, pair in enumerate(pairs, start=4):
            self.subproblem(step, pair, union)
        self.say(
            "", f"{len(pairs) + 4}. The union: |X| = {union.size}, p = 1, so the count is exact"
        )
        self.say(f"   C = {union.size} of {self.problem.n_regions} regions")
        return union.size

    def name(self, mask: int) -> str:
        """Return the paper's name of a mask: it counts from the last cell down."""
        return f"m{self.problem.n_masks - 1 - mask}"

    def both(self, a: int, b: int) -> str:
        """Return the name of a subproblem."""
        return f"{{{self.name(a)}, {self.name(b)}}}"

    def bits(self, mask: int) -> str:
        """Return a mask as the paper writes it: bit i is 1 iff f2 < guard i."""
        (cell,) = self.problem.masks.cells(mask)
        n_bits = self.problem.n_masks - 1
        return "(" + ", ".join("1" if cell <= i else "0" for i in range(n_bits)) + ")"

    def subproblem(self, step: int, pair: Pair, union: SampledUnion) -> None:
        """ProcessSubproblem, and the merging of its solutions."""
        table, name = self.space.table, "_".join(map(self.name, pair))
        self.say("", f"{step}. Subproblem {self.both(*pair)}")
        diff_sum = self.space.number(0)
        for tree in range(len(self.problem.trees)):
            adds = [pruned_tree(self.space, tree, mask) for mask in pair]
            for mask, add in zip(pair, adds, strict=True):
                self.say(f"   tree {tree} pruned by {self.name(mask)}: {self.about(add)}")
                as_encoded = self.space.encode(tree, self.space.mask_cells(mask))
                self.draw(f"{name}_tree{tree}_pruned_{self.name(mask)}_before", as_encoded)
                self.draw(f"{name}_tree{tree}_pruned_{self.name(mask)}", add)
            difference = table.arithmetic(MINUS, adds[0], adds[1], monotone=True)
            diff_sum = table.arithmetic(PLUS, diff_sum, difference, monotone=True)
            self.say(f"   DiffSum after tree {tree}: {self.about(diff_sum)}")
            self.draw(f"{name}_diffsum_after_tree{tree}", diff_sum)
        bdd = self.space.above_gap(diff_sum)
        self.draw(f"{name}_bdd", bdd, boolean=True)
        solutions = self.space.solutions(bdd)
        before = union.size
        union.add(pair, solutions)
        self.say(
            f"   BDD of |DiffSum| > G: {table.size(bdd)} nodes, {solutions.count} solutions, "
            f"each at both masks: {2 * solutions.count} regions",
            f"   X grows from {before} to {union.size} regions",
        )

    def about(self, add: _core.Diagram) -> str:
        """Return the size of an ADD and its terminals."""
        scale = self.problem.space.trees.scale
        values = [
            float(terminal_value(limbs) / scale)
            for _, level, _, _, limbs in self.space.table.rows(add)
            if level < 0
        ]
        listed = ", ".join(f"{value:g}" for value in sorted(values))
        return f"{self.space.table.size(add)} nodes, values {listed}"

    def draw(self, name: str, diagram: _core.Diagram, *, boolean: bool = False) -> None:
        """Draw a diagram."""
        self.write(name, to_dot(self.space, diagram, name.replace("_", " "), boolean=boolean))

    def write(self, name: str, text: str) -> None:
        """Write Graphviz text, and a picture of it if Graphviz is installed."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.dot"
        path.write_text(text)
        if shutil.which("dot"):
            picture = path.with_suffix(".png")
            subprocess.run(["dot", "-Tpng", str(path), "-o", str(picture)], check=True)


def tree_to_dot(problem: Problem, tree: Tree, title: str) -> str:
    """Return a tree as a Graphviz digraph; a dashed edge is taken if the guard does not hold."""
    lines = ["digraph {", f'  label="{title}"; labelloc=t;']
    for node in range(tree.n_nodes):
        feature = int(tree.feature[node])
        if feature < 0:
            lines.append(f'  n{node} [shape=box, label="{tree.value[node]:.3f}"];')
            continue
        name = problem.grid.axes[feature].feature.name
        lines.append(f'  n{node} [label="{name} < {tree.threshold[node]:.3g}"];')
        lines.append(f"  n{node} -> n{tree.left[node]};")
        lines.append(f"  n{node} -> n{tree.right[node]} [style=dashed];")
    return "\n".join([*lines, "}"]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the run; return 0 when enumeration finds the same count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, help="folder for the diagrams")
    options = parser.parse_args(arguments)
    ensemble = appendix_model()
    query = Query.of(ensemble, "f2", "0.1", distance=1, precision=3)
    problem = Problem(ensemble, Grid.of(ensemble), query)
    run = ExampleRun(problem, options.output)
    found = run.walk()
    enumerated = counter("brute")(problem, Settings()).count
    run.say("", f"Enumeration of all regions finds {enumerated}.")
    print("\n".join(run.lines))
    return 0 if found == enumerated else 1


if __name__ == "__main__":
    raise SystemExit(main())
