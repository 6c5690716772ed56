"""Verified witnesses are those that the library itself confirms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command

from xcount.answers.witness.verified import Verifier
from xcount.answers.witness.witness import Witness
from xcount.answers.witness.witnesses import witnesses
from xcount.errors import ModelFormatError, QueryWarning


def trained(library: str) -> tuple[Any, np.ndarray]:
    """Return a small trained classifier, and its inputs."""
    rng = np.random.default_rng(7)
    inputs = np.round(rng.normal(size=(400, 4)) * [10, 1, 5, 0.1], 3)
    target = (inputs[:, 0] / 10 + inputs[:, 1] * inputs[:, 2] > 0).astype(int)
    if library == "xgboost":
        from xgboost import XGBClassifier

        model: Any = XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1)
    else:
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=12, max_depth=3, n_jobs=1, verbose=-1)
    return model.fit(inputs, target), inputs


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_the_library_confirms_every_witness(library: str) -> None:
    """Predicted by the library that trained the model: drawn and near, gaps and flips."""
    model, inputs = trained(library)
    near = {"sensitive": 0, "gap": "0.3", "near": inputs[:3], "verify": True}
    for options in (
        {"sensitive": [0, 1], "gap": "0.5", "n": 20, "verify": True},
        {"sensitive": 1, "flip": True, "distance": "any", "n": 20, "verify": True},
        near,
    ):
        found = witnesses(model, **options)  # type: ignore[arg-type]
        assert found
        for witness in found:
            margins = (witness.margin, witness.other_margin)
            assert witness.library_margins == pytest.approx(margins, abs=1e-5)
    assert [w.row for w in witnesses(model, **near)] == [0, 1, 2]  # type: ignore[arg-type]


def forest_with_a_tie() -> Any:
    """Return a forest whose votes at (0, 0) are a half by exact sums; by floats, class 1 wins."""
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(511)
    inputs = rng.integers(0, 2, (30, 2)).astype(float)
    target = (inputs.sum(axis=1) + rng.normal(size=30) > 1).astype(int)
    return RandomForestClassifier(3, random_state=0).fit(inputs, target)


def test_a_flip_that_predict_does_not_make_is_not_verified() -> None:
    """The library's own decisions count, not margins within a tolerance."""
    model = forest_with_a_tie()
    question: dict[str, Any] = {"sensitive": 0, "flip": True, "n": 4}
    for witness in witnesses(model, **question):
        pair = model.predict(np.array([witness.point, witness.other]))
        assert pair.tolist() == [1, 1], "the example is one where predict does not flip"
    with pytest.warns(QueryWarning, match="20 of 20 pairs are left out, since the library does"):
        found = witnesses(model, **question, verify=True)
    assert (len(found), found.n_unconfirmed, found.to_dict()["unconfirmed"]) == (0, 20, 20)
    assert repr(found) == "Witnesses(none: the library confirms no pair)"
    with pytest.warns(QueryWarning, match="1 of 1 pairs are left out"):
        assert not witnesses(model, **question, near=np.zeros((1, 2)), verify=True)


def test_others_are_drawn_for_pairs_that_are_not_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rest of the pairs are those that the library confirms."""
    model = forest_with_a_tie()
    confirmed = Verifier.confirmed

    def every_third(self: Verifier, found: list[Witness]) -> list[Witness]:
        confirmed(self, found)
        return found[::3]

    monkeypatch.setattr(Verifier, "confirmed", every_third)
    with pytest.warns(QueryWarning, match="13 of 22 pairs are left out"):
        found = witnesses(model, sensitive=0, gap="0.01", n=9, verify=True)
    assert (len(found), found.n_unconfirmed) == (9, 13)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_verified_changes_are_those_of_predict(library: str) -> None:
    """Decisions, probabilities and the probability that a decision starts from."""
    model, _ = trained(library)
    sure: dict[str, Any] = {"flip": True, "from_probability": "0.6"}
    changes: list[dict[str, Any]] = [{"flip": True}, sure]
    for asked in (*changes, {"probability_gap": "0.2", "direction": "up"}):
        found = witnesses(model, sensitive=[0, 1], distance="any", n=20, verify=True, **asked)
        assert len(found) == 20
        for witness in found:
            pair = np.array([witness.point, witness.other])
            (before, after), (start, end) = model.predict_proba(pair)[:, 1], model.predict(pair)
            if "flip" not in asked:
                assert after - before > 0.2
                continue
            assert start != end
            assert asked is not sure or (before if start else 1 - before) >= 0.6


def test_a_contradiction_by_the_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A witness that the library does not confirm is an error, not an answer."""
    from xcount.model.loaders import check

    model, _ = trained("xgboost")
    monkeypatch.setattr(check, "check", lambda *a, **k: None)
    monkeypatch.setattr(check, "library_margins", lambda e, m, rows, **k: np.zeros((len(rows), 1)))
    with pytest.raises(ModelFormatError, match="does not hold"):
        witnesses(model, sensitive=0, gap="0.3", n=1, verify=True)


def test_the_command_line_verifies_a_file(xcount_command: Command, tmp_path: Path) -> None:
    """--verify asks the library about the file, and shows what it says."""
    model, _ = trained("xgboost")
    model.save_model(tmp_path / "model.json")
    run = xcount_command(
        "witness", tmp_path / "model.json", "--sensitive", 1, "--gap", "0.3", "--verify", "-n", 2
    )
    assert (run.status, run.err) == (0, "")
    assert "Library" in run.out
