#!/usr/bin/env python3
"""Check that a question file asks about a model file: the step that no proof covers.

    python check_question.py QUESTION MODEL

It reads both files itself (XGBoost's JSON, LightGBM's text) and compares in exact fractions:
- every cell lies on one side of every test of the model, and has the names that comments say;
- distances count the model's thresholds between two cells;
- every tree has the tests of the model's tree, and every leaf is the model's leaf times the scale;
- the gap or cut-off and the sensitive features are those that the comments say.
Exit status: 0 all of it holds, 1 a difference, 2 a file that cannot be read.
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

Interval = tuple[float, float]  # low <= x < high; up to infinity itself if high is infinite
Tree = tuple[Any, ...]  # (leaf,), (feature, cells, left, right), in a model (Test, left, right)
ZERO = 1.0000000180025095e-35  # 1e-35 in 32 bits: LightGBM calls x zero if -ZERO <= x <= ZERO


class Difference(Exception):  # noqa: N818  # not an error of the program
    """The question is not about the model."""


def _require(holds: object, message: str, kind: type[Exception] = Difference) -> None:
    if not holds:
        raise kind(message)


class Test(NamedTuple):
    """What goes left at a node of the model: numbers, or (not) the listed codes of categories."""

    column: str
    missing_left: bool
    numbers: tuple[Interval, ...] = ()
    codes: frozenset[int] | None = None
    is_listed_left: bool = True

    def sends_left(self, value: Any) -> bool | None:
        """Tell where an interval, a category code or a missing value goes; None if both ways."""
        if value is None:
            return self.missing_left
        if self.codes is not None:
            code = value[0] if isinstance(value, tuple) else value
            return (int(code) in self.codes) is self.is_listed_left
        low, high = value
        if any(a <= low and high <= b for a, b in self.numbers):
            return True
        return None if any(a < high and low < b for a, b in self.numbers) else False


def read_question(text: str) -> Any:
    """Read a question: its comments, and the numbers that can be compared with a model."""
    notes: dict[str, Any] = {"domain": None}
    features, lines = list[dict[str, Any]](), list[list[str]]()
    for line in text.split("\n"):
        hash_, word, rest = (*line.split(" ", 2), "", "")[:3]
        if hash_ == "#" and word == "feature":
            features.append(json.loads(rest))
        elif hash_ == "#" and word in ("model", "asked", "domain", "outputs", "scale"):
            notes[word] = json.loads(rest)
        elif line and not line.startswith("#"):
            lines.append(line.split(" "))
    found = iter(lines)

    def listed(word: str) -> list[list[str]]:
        name, number = next(found)
        _require(name == word, f"a line of the question starts with {name} instead of {word}")
        return [next(found) for _ in range(int(number))]

    _require(next(found) == ["xcount-question", "1"], "no question file of format 1")
    places = [_places(line) for line in listed("features")]
    (_, _, *sensitive), (_, distance), (_, *change) = next(found), next(found), next(found)
    listed("closed")
    notes["conditions"] = [listed(word) for word in ("along", "rules", "from", "to")]
    n_outputs = int(next(found)[1])
    outputs = [[_tree(iter(line)) for line in listed("trees")] for _ in range(n_outputs)]
    question = SimpleNamespace(notes=notes, places=places, outputs=outputs, change=change)
    question.features = [features[i] for i in range(len(places))]
    question.sensitive, question.distance = [int(word) for word in sensitive], distance
    return question


def _places(line: list[str]) -> list[int | None]:
    *order, kind, n_cells = line
    _require(kind == "cells", "a question with weights", ValueError)
    if order[0] == "placed":
        return [None if place == "-" else int(place) for place in order[2:]]
    return [i if order[0] == "ordered" else None for i in range(int(n_cells))]


def _tree(words: Any) -> Tree:
    if next(words) == "l":
        return (int(next(words)),)
    feature, n_ranges = int(next(words)), int(next(words))
    ranges = [range(int(next(words)), int(next(words))) for _ in range(n_ranges)]
    return feature, frozenset(c for cells in ranges for c in cells), _tree(words), _tree(words)


def _read_model(data: bytes) -> Any:
    if data.lstrip()[:1] == b"{":
        return _xgboost(json.loads(data)["learner"])
    _require(data.startswith(b"tree"), "neither XGBoost's JSON nor LightGBM's text", ValueError)
    return _lightgbm(data.decode())


def _float32(number: Any) -> float:
    return float(struct.unpack("<f", struct.pack("<f", float(number)))[0])


def _xgboost(learner: Any) -> Any:
    booster, param = learner["gradient_booster"], learner["learner_model_param"]
    names = learner.get("feature_names") or [f"f{i}" for i in range(int(param["num_feature"]))]
    _require(booster["name"] == "gbtree", "a booster of another kind", ValueError)
    model = booster["model"]
    kept, attributes = len(model["trees"]), learner.get("attributes") or {}
    if attributes.keys() >= {"scikit_learn", "best_iteration"}:  # the wrapper predicts with that
        kept = model["iteration_indptr"][: int(attributes["best_iteration"]) + 2][-1]
    sizes = {tree["tree_param"].get("size_leaf_vector", "1") for tree in model["trees"]}
    _require(sizes <= {"0", "1"}, "leaves with a value for each class", ValueError)
    each = zip(model["tree_info"], model["trees"][:kept], strict=False)
    trees = [(int(output), _xgboost_tree(tree, names)) for output, tree in each]
    is_logit = learner["objective"]["name"] in ("binary:logistic", "reg:logistic")
    scores = [_float32(score) for score in str(param["base_score"]).strip("[]").split(",")]
    if is_logit:
        scores = [math.log(s / (1 - s)) for s in (min(max(s, 1e-6), 1 - 1e-6) for s in scores)]
    n_outputs = max(1, int(param.get("num_class", 0)), int(param.get("num_target", 1)))
    bases = scores * (n_outputs // len(scores))
    labels = dict(enumerate(map(_category_names, (model.get("cats") or {}).get("enc") or [])))
    found = SimpleNamespace(names=names, labels=labels, trees=trees, bases=bases)
    found.divisor, found.base_is_rounded = 1, is_logit
    return found


def _category_names(encoding: Any) -> list[str]:
    values, offsets = encoding["values"], encoding.get("offsets")
    if offsets is None:
        return list(map(str, values))
    texts = (bytes(values[a:b]) for a, b in pairwise(offsets))
    is_ascii = all(0 <= code < 128 for code in values)  # XGBoost cuts other names in wrong places
    return [t.decode() if is_ascii else f"category {i}" for i, t in enumerate(texts)]


def _xgboost_tree(tree: Any, names: list[str], node: int = 0) -> Tree:
    left, right = tree["left_children"][node], tree["right_children"][node]
    if left < 0:
        return (Fraction(_float32(tree["split_conditions"][node])),)
    column, missing = names[tree["split_indices"][node]], bool(tree["default_left"][node])
    if tree.get("split_type", [0] * (node + 1))[node] == 1:
        row = tree["categories_nodes"].index(node)
        start, size = tree["categories_segments"][row], tree["categories_sizes"][row]
        codes = tree["categories"][start : start + size]
        test = Test(column, missing, codes=frozenset(codes), is_listed_left=False)
    else:
        test = Test(column, missing, ((-math.inf, _float32(tree["split_conditions"][node])),))
    return (test, *(_xgboost_tree(tree, names, child) for child in (left, right)))


def _lightgbm(text: str) -> Any:
    head, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    header = dict(line.partition("=")[::2] for line in head.split("\n"))
    n_outputs, names = int(header["num_tree_per_iteration"]), header["feature_names"].split(" ")
    trees: list[Any] = []
    for block in blocks:
        pairs = (line.partition("=")[::2] for line in block.split("\n")[1:])
        columns = {name: value.split() for name, value in pairs}
        root = 0 if int(columns["num_leaves"][0]) > 1 else ~0
        trees.append((len(trees) % n_outputs, _lightgbm_tree(columns, names, root)))
    # Labels of categories, if the file says which features they belong to.
    found_labels = re.search(r"^pandas_categorical:(\[.*\])", text, re.MULTILINE)
    numbers = re.search(r"^\[categorical_feature: ([\d,]+)\]", text, re.MULTILINE)
    labels = json.loads(found_labels[1]) if found_labels else []
    features = sorted(map(int, numbers[1].split(","))) if numbers else []
    labels = [[str(label) for label in own] for own in labels] * (len(labels) == len(features))
    found = SimpleNamespace(labels=dict(zip(features, labels, strict=False)), trees=trees)
    found.names, found.bases, found.base_is_rounded = names, [0.0] * n_outputs, False
    found.divisor = len(trees) // n_outputs if "average_output" in header else 1
    return found


def _lightgbm_tree(columns: dict[str, list[str]], names: list[str], node: int) -> Tree:
    if node < 0:
        return (Fraction(float(columns["leaf_value"][~node])),)
    kind, at = int(columns["decision_type"][node]), float(columns["threshold"][node])
    column = names[int(columns["split_feature"][node])]
    if kind & 1:
        start, end = (int(word) for word in columns["cat_boundaries"][int(at) : int(at) + 2])
        words = [int(word) for word in columns["cat_threshold"][start:end]]
        codes = (code for code in range(32 * len(words)) if words[code // 32] >> code % 32 & 1)
        test = Test(column, False, codes=frozenset(codes))
    else:
        test = _lightgbm_test(column, kind, math.inf if at == 1e300 else at)
    children = (int(columns[side][node]) for side in ("left_child", "right_child"))
    return (test, *(_lightgbm_tree(columns, names, child) for child in children))


def _lightgbm_test(column: str, kind: int, at: float) -> Test:
    """Return what goes left: x <= at, but all of the zero range like 0, or the default way."""
    default, missing = bool(kind & 2), kind >> 2 & 3  # missing: 0 none, 1 zero, 2 NaN
    zero_left = default if missing == 1 else at >= 0
    zero, end = (-ZERO, math.nextafter(ZERO, math.inf)), math.nextafter(at, math.inf)
    parts = [(-math.inf, min(end, zero[0])), *[zero] * zero_left, (zero[1], end)]
    joined: list[Interval] = []
    for low, high in (part for part in parts if part[0] < part[1]):
        is_next = bool(joined) and joined[-1][1] == low
        joined.append((joined.pop()[0], high) if is_next else (low, high))
    return Test(column, at >= 0 if missing == 0 else default, tuple(joined))


class Check:
    """Compares a question with a model; raises Difference at the first one."""

    def __init__(self, question: Any, model: Any) -> None:
        self.question, self.model, self.notes = question, model, question.notes
        self.scale, self.n_leaves = Fraction(question.notes["scale"]), 0
        self.feature_of: dict[str, int] = {}
        self.left_cells: dict[Test, frozenset[int]] = {}

    def run(self) -> None:
        """Check names, then all tests of the model, then trees, cells and the change."""
        self._check_names()
        nodes = [tree for _, tree in self.model.trees]  # the grid has the guards of all outputs
        while nodes:
            test, *children = nodes.pop()
            if children and test not in self.left_cells:
                cells = range(len(self.question.places[self.feature_of[test.column]]))
                self.left_cells[test] = frozenset(c for c in cells if self._side(test, c))
            nodes += children
        for output, trees in zip(self.notes["outputs"], self.question.outputs, strict=True):
            self._check_output(output, trees)
        for number in range(len(self.question.features)):
            self._check_cells(number)
        self._check_change()

    def _check_names(self) -> None:
        one_hot = (self.notes["domain"] or {}).get("one_hot", {})
        for number, feature in enumerate(self.question.features):
            names = [feature["name"]]
            if "columns" in feature:
                names = [name for name in one_hot.get(feature["name"], []) if name != "+none"]
            for name in names:
                is_new = name in self.model.names and name not in self.feature_of
                _require(is_new, f"the model has no column {name!r}, or it is used twice")
                self.feature_of[name] = number
        missing = [name for name in self.model.names if name not in self.feature_of]
        _require(not missing, f"the question lacks the model's columns {missing}")
        is_free = self.notes["domain"] or not any(self.notes["conditions"])
        _require(is_free, "the question has rules, but no domain is named")

    def _side(self, test: Test, cell: int) -> bool:
        """Return whether a cell goes left."""
        about = self.question.features[self.feature_of[test.column]]
        sides = {test.sends_left(value) for value in _values(about, cell, test.column)}
        _require(sides in ({True}, {False}), f"a test cuts cell {cell} of {test.column!r}")
        return bool(sides.pop())

    def _check_output(self, output: int, trees: list[Tree]) -> None:
        own = [tree for index, tree in self.model.trees if index == output]
        base = self._integer(Fraction(self.model.bases[output]))
        is_gap = self.question.change[0] in ("gap", "rise", "fall")
        constants = [] if is_gap or base == 0 else trees[:1]
        _require(len(trees) == len(constants) + len(own), f"output {output}: {len(trees)} trees")
        self.is_base_rounded = self.model.base_is_rounded and not is_gap
        room = abs(base) // 10**6 + 1 if self.is_base_rounded else 0
        is_near = all(len(c) == 1 and abs(c[0] - base) <= room for c in constants)
        _require(is_near, f"the base score of output {output} is {constants}, not {base}")
        for number, pair in enumerate(zip(trees[len(constants) :], own, strict=True)):
            self._compare([pair], f"output {output}, tree {number}")

    def _integer(self, value: Fraction) -> Any:
        """Return a leaf or base in the integers of the question."""
        scaled = value * self.scale
        return scaled if self.notes["asked"]["precision"] == "exact" else round(scaled)

    def _compare(self, pairs: list[tuple[Tree, Tree]], where: str) -> None:
        while pairs:
            own, (test, *ways) = pairs.pop()
            _require((len(own) == 1) == (not ways), f"{where}: a leaf instead of a test, or so")
            if not ways:
                self.n_leaves += 1
                is_same = own[0] == self._integer(test / self.model.divisor)
                _require(is_same, f"{where}: a leaf is {own[0]}, the model's is {float(test)}")
                continue
            feature, left = self.feature_of[test.column], self.left_cells[test]
            others = frozenset(range(len(self.question.places[feature]))) - left
            is_same = own[0] == feature and own[1] in (left, others)
            _require(is_same, f"{where}: a test of {test.column!r} differs")
            pairs += zip(own[2:], ways if own[1] == left else ways[::-1], strict=True)

    def _check_cells(self, number: int) -> None:
        about, places = self.question.features[number], self.question.places[number]
        tests = [test for test in self.left_cells if self.feature_of[test.column] == number]
        n_values = len(places) - ("missing" in about)
        _require(about.get("missing", n_values) == n_values, "missing is not last")
        if "numbers" in about:
            is_whole = _check_numbers(about, places, n_values, tests)
        else:
            _require(set(places) == {None}, f"{about['name']!r} has an order")
            seen = {tuple(c in self.left_cells[t] for t in tests) for c in range(n_values)}
            has_all = "columns" in about or self._has_codes(about, tests)
            is_whole = len(seen) == n_values and has_all
        message = f"the cells of {about['name']!r} are not the model's; no domain is named"
        _require(is_whole or self.notes["domain"], message)

    def _has_codes(self, about: dict[str, Any], tests: list[Test]) -> bool:
        """Check the labels of categories; return whether all categories of the model are there."""
        labels = self.model.labels.get(self.model.names.index(about["name"]), [])
        codes = [code for cell in about["codes"] for code in cell]
        named = [label for cell in about.get("labels", []) for label in cell]
        is_same = not named or (labels and named == [labels[code] for code in codes])
        _require(is_same, f"the labels of {about['name']!r} are not those of the model")
        tested = {code for test in tests for code in test.codes or ()}
        return tested | set(range(len(labels))) <= set(codes) and len(set(codes)) == len(codes)

    def _check_change(self) -> None:
        asked, (word, *numbers) = self.notes["asked"], self.question.change
        names = [self.question.features[f]["name"] for f in self.question.sensitive]
        is_same = names == asked["sensitive"] and self.question.distance == str(asked["distance"])
        _require(is_same, "the sensitive features or the distance are not those of the comment")
        way, at, expected = asked["direction"], "0", 0
        if not asked.get("flip"):
            kind, at = {"any": "gap", "up": "rise", "down": "fall"}[way], numbers[0]
            expected = math.floor(Fraction(asked["gap_text"].split()[0]) * self.scale)
            _require(self.notes["outputs"] == [asked["class"]], "these trees are of another class")
        elif asked["cutoff_text"] is None:
            kind = "class"
        else:
            sure = "-sure" * ("from_probability" in asked)
            kind = f"flip{'' if way == 'any' else f'-{way}'}{sure}"
            cut = Fraction(asked["cutoff_text"]) * self.scale
            expected = math.ceil(cut) - 1 if asked.get("tie_is_above") else math.floor(cut)
            at = numbers[1 if sure and way != "down" else 0]
        is_same = word == kind and int(at) == expected
        _require(is_same, f"the change is {word} {at}, asked is {kind} {expected}")


def _check_numbers(about: Any, places: list[Any], n_values: int, tests: list[Test]) -> bool:
    """Check disjoint cells and their distances; return whether they are all of the model's."""
    cells = [_values(about, cell, "") for cell in range(n_values)]
    edges = [end for piece in sorted(p for cell in cells for p in cell) for end in piece]
    _require(edges == sorted(edges), f"cells of {about['name']!r} overlap")
    guards = {end for t in tests for part in t.numbers for end in part if math.isfinite(end)}
    below = [sum(guard <= cell[0][0] for guard in guards) for cell in cells]
    is_same = [p - places[0] for p in places[:n_values]] == [n - below[0] for n in below]
    _require(is_same, f"the places of {about['name']!r} do not count the model's thresholds")
    ends = [-math.inf, *edges, math.inf]
    return ends[::2] == ends[1::2] and len(set(below)) == n_values


def _values(about: Any, cell: int, column: str) -> list[Any]:
    """Return what a cell holds: codes, intervals of numbers (those of a column), or a None."""
    if cell == about.get("missing"):
        return [None]
    if "codes" in about:
        return list(about["codes"][cell])
    if "columns" in about:
        ones = (float(name == column) for name in about["columns"][cell])
        return [(one, math.nextafter(one, math.inf)) for one in ones]
    pieces = about["numbers"][cell]
    return [(-math.inf if a is None else a, math.inf if b is None else b) for a, b in pieces]


def compare(question_path: str, model_path: str) -> tuple[int, str]:
    """Return the exit status, and what was found in words."""
    try:
        data, text = Path(model_path).read_bytes(), Path(question_path).read_text("utf-8")
        check = Check(read_question(text), _read_model(data))
        check.run()
    except Difference as error:
        return 1, f"different: {error}"
    except Exception as error:
        return 2, f"cannot be read: {error!r}"
    notes, change = check.notes, check.question.change[0]
    said = {
        f"same: {check.n_leaves} leaves, {len(check.question.features)} features": True,
        "note: another file, by its SHA-256": notes["model"]["sha256"] != sha256(data).hexdigest(),
        f"note: not checked: the domain {json.dumps(notes['domain'])}": notes["domain"],
        "note: not checked: where a decision is sure enough": "sure" in change,
        "note: the base score is a logarithm, checked to 6 digits": check.is_base_rounded,
    }
    return 0, "\n".join(line for line, holds in said.items() if holds)


if __name__ == "__main__":
    sys.setrecursionlimit(20_000)
    status, found = compare(*sys.argv[1:]) if len(sys.argv) == 3 else (2, __doc__)
    sys.stdout.write(f"{found}\n")
    sys.exit(status)
