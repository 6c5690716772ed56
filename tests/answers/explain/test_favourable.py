"""The favourable decision: named by the user, or an assumption that every report states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xcount
from xcount.answers.explanation import GroupRates
from xcount.cli import main
from xcount.errors import QueryError

lgb = pytest.importorskip("lightgbm")

ASSUMED = "assumed; --favourable names it"


def trained(names: tuple[str, ...]) -> Any:
    """Return a LightGBM classifier of applicants, by the names of its classes."""
    random = np.random.default_rng(0)
    rows = np.stack([random.integers(18, 80, 400), random.integers(0, 2, 400)], axis=1)
    score = rows[:, 0] + 20 * rows[:, 1] + random.normal(0, 5, 400)
    places = np.searchsorted(np.quantile(score, np.arange(1, len(names)) / len(names)), score)
    model = lgb.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    return model.fit(rows.astype(np.float64), np.array(names)[places])


def rates(model: Any, **options: Any) -> GroupRates:
    """Return the rates of the groups of the second column."""
    result = xcount.count(model, sensitive=[1], flip=True, explain=True, **options)
    assert result.explanation is not None
    return result.explanation.rates[0]


def test_it_is_assumed_unless_it_is_named() -> None:
    """And JSON says so."""
    model = trained(("approved", "denied"))
    found = rates(model)
    assert (found.favourable, found.is_assumed) == ("denied", True)
    named = rates(model, favourable="approved")
    assert (named.favourable, named.is_assumed) == ("approved", False)
    assert [a.rate.least + b.rate.least for a, b in zip(found.cells, named.cells, strict=True)] == [
        pytest.approx(1)
    ] * 2
    result = xcount.count(model, sensitive=[1], flip=True, explain=True)
    assert result.to_dict()["explanation"]["rates"][0]["favourable_assumed"] is True


@pytest.mark.parametrize("cutoff", [None, "-0.3"])
@pytest.mark.parametrize(("word", "value"), [("1", 1), ("0", 0), ("denied", 1), ("approved", 0)])
def test_classes_are_known_by_number_and_by_name(word: str, value: int, cutoff: str | None) -> None:
    """At the model's own cut-off and at another one; a file has no names."""
    model = trained(("approved", "denied"))
    at = {} if cutoff is None else {"cutoff": cutoff}
    found = rates(model, favourable=word, **at)
    side = rates(model, favourable=("below", "above")[value], **at)
    assert [cell.rate for cell in found.cells] == [cell.rate for cell in side.cells]


def test_a_file_knows_its_classes_by_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A binary model's one margin is that of class 1; several classes have one each."""
    binary, several = tmp_path / "binary.txt", tmp_path / "several.txt"
    trained(("approved", "denied")).booster_.save_model(binary)
    trained(("a", "b", "c")).booster_.save_model(several)
    asked = ["--sensitive", "1", "--gap", "0.1", "--json"]
    counts = []
    for words in ([], ["--class", "1"], ["--class", "0"]):  # 0 is the index of the margin
        assert main(["count", str(binary), *words, *asked]) == 0
        counts.append(json.loads(capsys.readouterr().out)["count"])
    assert counts[0] == counts[1] == counts[2] > 0
    assert main(["count", str(several), "--class", "2", *asked]) == 0
    assert json.loads(capsys.readouterr().out)["class_label"] == "2"


def test_class_names_are_accepted_where_the_model_has_them() -> None:
    """The positive class of a binary model is its margin; another name is an error."""
    model = trained(("approved", "denied"))
    plain = xcount.count(model, sensitive=[1], gap="0.1")
    assert xcount.count(model, sensitive=[1], gap="0.1", class_="denied").count == plain.count
    with pytest.raises(QueryError, match="that of class denied, not of approved"):
        xcount.count(model, sensitive=[1], gap="0.1", class_="approved")
    with pytest.raises(QueryError, match="unknown class 'refused'; the classes are approved, den"):
        xcount.count(model, sensitive=[1], gap="0.1", class_="refused")
    several = trained(("approved", "denied", "review"))
    assert xcount.count(several, sensitive=[1], gap="0.1", class_="review").class_label == "review"


def test_every_report_says_that_it_is_assumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And none does once it is named."""
    file, page, card = tmp_path / "model.txt", tmp_path / "page.html", tmp_path / "card.md"
    trained(("approved", "denied")).booster_.save_model(file)
    asked = ["--sensitive", "1", "--flip"]
    for named, is_assumed in (([], True), (["--favourable", "0"], False)):
        reports = ["--html", str(page), "--markdown", str(card)]
        assert main(["audit", str(file), *asked, *named, *reports]) == 0
        assert main(["count", str(file), *asked, *named, "--explain"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        texts = [shown, *(path.read_text(encoding="utf-8") for path in (page, card))]
        assert [ASSUMED in text for text in texts] == [is_assumed] * 3
        assert shown.count(ASSUMED) == 2 * is_assumed
        result = xcount.count(
            file, sensitive=[1], flip=True, explain=True, favourable=named[1] if named else None
        )
        assert result.explanation is not None
        assert (ASSUMED in result.explanation._repr_html_()) == is_assumed
