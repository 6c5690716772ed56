"""Results as tables for pandas, which is imported when one is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import singledispatch
from typing import Any

import numpy as np

from xcount.answers.explanation import Explanation
from xcount.answers.inspection import Inspection
from xcount.answers.person import PersonResult
from xcount.answers.result import CountResult
from xcount.answers.witness.witness import Witness, Witnesses
from xcount.answers.worst import WorstResult
from xcount.counters.tally import Profile
from xcount.errors import MissingExtraError
from xcount.measures.measured import Measured
from xcount.measures.population import Population, Portrait
from xcount.model.ensemble import Ensemble, Tree
from xcount.repairs.result import RepairResult
from xcount.report.spreadsheet import keys_of, value_of
from xcount.runs.audit import AuditResult
from xcount.runs.compare import CompareResult
from xcount.runs.compared import Compared, finite
from xcount.runs.ranked import Ranked
from xcount.support.interval import Interval
from xcount.support.records import columns_of, to_dict

Row = Mapping[str, Any]


def frame_of(result: object) -> Any:
    """Return a result as a DataFrame: a row per count, input, feature or node."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError(
            "tables of results need pandas; install it with: pip install 'xcount[tables]'"
        ) from None
    rows = list(rows_of(result))
    return pandas.DataFrame(rows) if rows else pandas.DataFrame()


@singledispatch
def rows_of(result: Any) -> Iterable[Row]:
    """Return the rows of a result's table, a mapping of columns each."""
    raise TypeError(f"there is no table of a {type(result).__name__}")


@rows_of.register
def _(result: CountResult) -> Iterable[Row]:
    """Yield one row, with a column of the share under each measure."""
    row = {str(field.json.column): field.cell_of(result) for field in columns_of(CountResult)}
    for name, measured in result.measures.items():
        row |= {f"{name}_{key}": value_of(measured, key) for key in keys_of(name)}
    yield row


@rows_of.register
def _(result: AuditResult) -> Iterable[Row]:
    """Yield a row per count."""
    return [row for each in result.results for row in rows_of(each)]


@rows_of.register
def _(result: CompareResult) -> Iterable[Row]:
    """Yield a row per question and model, with the ratio to the first model."""
    for compared in result.rows:
        yield from _compared(compared, result.names)


@rows_of.register
def _(result: Compared) -> Iterable[Row]:
    """Yield a row per model, numbered from 1, with the ratio to the first model."""
    return _compared(result, [f"model {number}" for number in range(1, len(result.results) + 1)])


def _compared(compared: Compared, names: Sequence[str]) -> Iterable[Row]:
    for index, each in enumerate(compared.results):
        if each is None:
            continue
        ratio = compared.ratio(index)
        bounds = (None,) * 3 if ratio is None else (ratio.value, ratio.low, finite(ratio.high))
        ratios = dict(zip(("ratio", "ratio_low", "ratio_high"), bounds, strict=True))
        for name in compared.measures:
            weighed = compared.ratio(index, name)
            ratios[f"{name}_ratio"] = None if weighed is None else weighed.value
        (row,) = rows_of(each)
        yield {"model": names[index], **ratios, **row}


@rows_of.register
def _(result: Ranked) -> Iterable[Row]:
    """Yield a row per count."""
    return [row for each in result.results for row in rows_of(each)]


@rows_of.register
def _(result: Measured) -> Iterable[Row]:
    """Yield one row: the share and its bounds, and the numbers of rows."""
    sure = {"exact": result.exact, "confidence": result.confidence}
    yield {"name": result.name, **{k: value_of(result, k) for k in keys_of(result.name)}, **sure}


@rows_of.register
def _(result: Portrait) -> Iterable[Row]:
    """Yield a row per component."""
    for component in result.components:
        traits = "; ".join(trait.text for trait in component.traits)
        yield {"weight": component.weight, "traits": traits}


@rows_of.register
def _(result: Witnesses) -> Iterable[Row]:
    """Yield two rows per pair: the inputs, with the names of categories, and what they get."""
    for number, witness in enumerate(result, start=1):
        for row in rows_of(witness):
            yield {"witness": number, **row}


@rows_of.register
def _(result: Witness) -> Iterable[Row]:
    first = ("point", result.margin, result.decision, result.probability)
    second = ("other", result.other_margin, result.other_decision, result.other_probability)
    for (side, margin, decision, probability), values, labels in (
        (first, result.point, result.labels),
        (second, result.other, result.other_labels),
    ):
        said = {"decision": decision, "probability": probability}
        inputs = zip(result.features, values, strict=True)
        yield {
            "side": side,
            "margin": margin,
            **{name: value for name, value in said.items() if value is not None},
            **{name: labels.get(name, value) for name, value in inputs},
        }


@rows_of.register
def _(result: Explanation) -> Iterable[Row]:
    """Yield a row per share: of a direction, a gap, a group's favourable decisions, a place."""
    for effect in result.effects:
        for way, end in (("up", effect.up), ("down", effect.down)):
            yield _share(effect.measure, "direction", way, end)
    for curve in result.curves:
        for point in curve.points:
            yield _share(curve.measure, "gap", point.gap_text, point.share)
    for rates in result.rates:
        for group in rates.cells:
            yield _share(rates.measure, "rate", group.text, group.rate)
    for place in result.places:
        yield _share(place.measure, "place", place.text, place.part)


def _share(measure: str, what: str, of: str, share: Interval) -> Row:
    numbers = {"share": share.value, "low": share.low, "high": share.high}
    return {"measure": measure, "what": what, "of": of, **numbers}


@rows_of.register
def _(result: Profile) -> Iterable[Row]:
    """Yield a row per mask, then one per pair of neighbours."""
    for what, entries in (("mask", result.masks), ("pair", result.pairs)):
        for each in entries:
            bounds = {"low": each.low, "high": each.high, "n_combinations": each.n_combinations}
            yield {"what": what, "cells": each.description, **bounds}


@rows_of.register
def _(result: Population) -> Iterable[Row]:
    """Yield a row per check of how realistic it is."""
    return [asdict(check) for check in result.realism.checks]


@rows_of.register
def _(result: WorstResult) -> Iterable[Row]:
    """Yield the two inputs of the pair, if there is one."""
    return () if result.pair is None else rows_of(result.pair)


@rows_of.register
def _(result: RepairResult) -> Iterable[Row]:
    """Yield a row per question, before and after."""
    for number, question in enumerate(result.questions):
        for label, count in (("before", question.before), ("after", question.after)):
            for row in rows_of(count):
                yield {"question": number, "model": label, **row}


@rows_of.register
def _(result: PersonResult) -> Iterable[Row]:
    """Yield a row per cell."""
    return [to_dict(cell) for cell in result.cells]


@rows_of.register
def _(result: Inspection) -> Iterable[Row]:
    """Yield a row per feature."""
    return [to_dict(feature) for feature in result.features]


@rows_of.register
def _(result: Ensemble) -> Iterable[Row]:
    """Yield a row per node of every tree; the children of a leaf are -1."""
    for number, tree in enumerate(result.trees):
        for node in range(tree.n_nodes):
            yield {"tree": number, "output": tree.output, **_node(result, tree, node)}


def _node(ensemble: Ensemble, tree: Tree, node: int) -> Row:
    feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
    is_leaf = feature < 0
    return {
        "node": node,
        "feature": None if is_leaf else ensemble.features[feature].name,
        "threshold": None if math.isnan(threshold) else threshold,
        "left": int(tree.left[node]),
        "right": int(tree.right[node]),
        "missing_left": bool(tree.missing_left[node]),
        "leaf": float(np.divide(tree.value[node], ensemble.divisor)) if is_leaf else None,
    }
