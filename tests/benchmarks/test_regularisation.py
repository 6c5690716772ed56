"""What the regularisation study makes of its splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmark_runs import HEADER

from experiments import regularisation_report


def split(*shares: tuple[float, ...], labels: str = "right", seed: int = 42) -> dict[str, Any]:
    """Return a split as the study writes it: the shares of each feature, by alpha."""
    entries = [
        {"depth": 3, "n_trees": 20, "feature": str(i), "regions": s, "rows": s, "is_used": True}
        for i, s in enumerate(shares)
    ]
    return HEADER | {"labels": labels, "seed": seed, "scores": [], "counts": entries}


def test_configurations_that_say_nothing_are_left_out() -> None:
    """A baseline of zero, and a feature that a model lacks, as in the paper."""
    line = split((0.1, 0.08, 0.06, 0.05), (0.0, 0.1, 0.1, 0.1), (0.4, 0.4, 0.4, 0.4))
    line["counts"][2]["is_used"] = False
    assert [entry["feature"] for entry in regularisation_report.kept(line)] == ["0"]
    assert "| 10 | 1 | 0.500 |" in regularisation_report.ratio_table(line)


def test_counts_that_rise_from_zero_are_told() -> None:
    """No ratio can show them: their number stands beside the ratios."""
    line = split((0.1, 0.08, 0.06, 0.05), (0.0, 0.1, 0.0, 0.1), (0.0, 0.0, 0.0, 0.1))
    found = [regularisation_report.from_zero(line, alpha) for alpha in (1, 5, 10)]
    assert found == [(2, 1), (2, 0), (2, 2)]
    assert "| 1 | 0 | 2 | 2 |" in regularisation_report.ratio_table(line).splitlines()[-1]


def test_one_split_stands_beside_all() -> None:
    """The same number of one split and of the median split, in one row."""
    by_seed = {42: (0.4, 0.4, 0.4, 0.2), 0: (0.4, 0.4, 0.4, 0.3), 1: (0.4, 0.4, 0.4, 0.4)}
    lines = [split(shares, seed=seed) for seed, shares in by_seed.items()]
    words = "the right labels"
    configurations = regularisation_report.configuration_table(lines).splitlines()[-1]
    assert configurations.startswith(f"| {words} | 10 | 3 | 0.500 | 0.750 |")
    shares = regularisation_report.split_table(lines).splitlines()[-1]
    assert shares.startswith(f"| {words} | people (test rows) | 10 | 3 | 0.500 | 0.750 |")


def test_every_revision_of_the_study_is_named() -> None:
    """Each with its number of studies, its dates and its loads."""
    lines = [split((0.4, 0.3, 0.2, 0.1), seed=seed) for seed in range(3)]
    lines[2] |= {"revision": "s", "load": 2.0, "placement": "pinned to 1 core"}
    lines[1] |= {"load": 3.0}
    text = regularisation_report.report(lines)
    assert "2 at r (2026-01-01, load 1.5 to 3); " in text
    assert "1 at s (2026-01-01, load 2, pinned to 1 core)." in text


def test_scores_are_held_against_all_of_the_papers() -> None:
    """The largest difference of each metric, and the model that has it."""
    names = regularisation_report.METRICS
    scores: list[dict[str, Any]] = [
        {"depth": int(size[0]), "n_trees": int(size[2:]), "alpha": alpha}
        | dict(zip(names, values, strict=True))
        for size, by_alpha in regularisation_report.PAPER_SCORES.items()
        for alpha, values in zip(regularisation_report.ALPHAS, by_alpha, strict=True)
    ]
    scores[-1]["recall"] += 0.24
    line = split(labels="paper") | {"scores": scores}
    table = regularisation_report.difference_table([line])
    assert "| recall | 24 | 0.000 | 0.010 | 0.240 | depth 4, 40 trees, alpha 10 |" in table
    assert "| AUC | 24 | 0.000 | 0.000 | 0.000 |" in table
    nearest = regularisation_report.nearest_splits([line, split(labels="right") | line])
    assert nearest.splitlines()[2:] == ["| 42 | 0.0020 | 0.0000 | 0.0000 | 0.240 | 1 |"]


def test_a_split_is_one_number() -> None:
    """The mean share over all features with a penalty, over that without."""
    line = split((0.1, 0.2, 0.1, 0.05), (0.3, 0.2, 0.1, 0.15))
    ratios = [regularisation_report.split_ratio(line, "rows", alpha) for alpha in (1, 5, 10)]
    assert ratios == pytest.approx([1.0, 0.5, 0.5])


def test_the_test_over_splits_flips_signs() -> None:
    """Exact where all flips can be listed, two-sided; many splits alike are never by chance."""
    assert regularisation_report.sign_flip_test([1.0, 2.0, 3.0]) == 2 / 8
    assert regularisation_report.sign_flip_test([1.0, -1.0]) == 1
    assert regularisation_report.sign_flip_test([0.1] * 30) == pytest.approx(1 / 20_001)


@pytest.mark.parametrize(
    ("by_alpha", "words"),
    [
        ((0.4, 0.3, 0.2, 0.1), "alpha 1: fewer; alpha 5: fewer; alpha 10: fewer"),
        ((0.2, 0.3, 0.2, 0.1), "alpha 1: more; alpha 5: no clear change; alpha 10: fewer"),
    ],
)
def test_the_conclusion_follows_the_splits(by_alpha: tuple[float, ...], words: str) -> None:
    """Ten splits alike are enough to say what a penalty does."""
    lines = [split(by_alpha, seed=seed) for seed in range(10)]
    assert f"the right labels, regions: {words}" in regularisation_report.conclusion(lines)
    assert words in regularisation_report.report(lines)


def test_the_box_plots_are_drawn(tmp_path: Path) -> None:
    """Both pictures are files that have something in them."""
    pytest.importorskip("matplotlib")
    lines = [split((0.1, 0.08, 0.3, 0.1), seed=seed) for seed in range(3)]
    regularisation_report.draw(lines, tmp_path / "box.svg")
    both = [split((0.1, 0.08, 0.3, 0.1), labels=labels) for labels in ("paper", "right")]
    regularisation_report.draw_configurations(both, tmp_path / "one.svg")
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("box.svg", "one.svg"))
