"""Unit propagation and trial, slow and obvious: for formulas whose inputs are nearly all given."""

from __future__ import annotations

from collections.abc import Iterable

from xcount.baselines.cnf.formula import Formula


def clauses_of(formula: Formula) -> list[list[int]]:
    """Return the clauses as lists."""
    result: list[list[int]] = [[]]
    for literal in formula.clauses:
        if literal:
            result[-1].append(literal)
        else:
            result.append([])
    return result[:-1]


def propagate(clauses: list[list[int]], given: Iterable[int]) -> set[int] | None:
    """Return the literals that follow, or None on a contradiction."""
    true = set(given)
    occurrences: dict[int, list[list[int]]] = {}
    for clause in clauses:
        for literal in clause:
            occurrences.setdefault(-literal, []).append(clause)
    todo = [c for c in clauses if len(c) <= 1]
    for literal in list(true):
        todo += occurrences.get(literal, [])
    while todo:
        clause = todo.pop()
        if any(literal in true for literal in clause):
            continue
        open_ = [literal for literal in clause if -literal not in true]
        if not open_:
            return None
        if len(open_) == 1:
            true.add(open_[0])
            todo += occurrences.get(open_[0], [])
    return true


def has_model(clauses: list[list[int]], given: Iterable[int]) -> bool:
    """Tell whether some values of the other variables meet all clauses."""
    true = propagate(clauses, given)
    if true is None:
        return False
    for clause in clauses:
        if not any(literal in true for literal in clause):
            tried = next(literal for literal in clause if -literal not in true)
            return has_model(clauses, true | {tried}) or has_model(clauses, true | {-tried})
    return True
