"""The models of the paper's suite that ship with the repository, so that nobody must train them.

``benchmarks/models`` has a file for each data set: of each depth the model of 100 trees, without
the statistics that no prediction needs, and the notes of its training. Shorter models are its
first trees.

    python -m benchmarks.harness.shipped --cache FOLDER    # packs the models of a cache
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.harness import models
from benchmarks.harness.datasets import BY_KEY, PROJECT
from benchmarks.harness.options import parser_of

FOLDER = PROJECT / "benchmarks" / "models"
STATISTICS = ("base_weights", "loss_changes", "sum_hessian")


def unpack(training: models.Training, folder: Path) -> dict[str, Any] | None:
    """Write the models of a training into a folder; return their notes, None if none ship."""
    shipped = _content(training.dataset).get(str(training.depth))
    if shipped is None or shipped["notes"]["training"] != training.describe():
        return None
    for note in shipped["notes"]["models"]:
        path = folder / note["file"]
        path.write_text(json.dumps(first_trees(shipped["model"], note["n_trees"])))
    notes: dict[str, Any] = shipped["notes"]
    return notes


@lru_cache(maxsize=1)
def _content(dataset: str) -> dict[str, Any]:
    """Return what ships of a data set, by depth."""
    path = FOLDER / f"{dataset}.json.xz"
    content: dict[str, Any] = (
        json.loads(lzma.decompress(path.read_bytes())) if path.exists() else {}
    )
    return content


def first_trees(model: dict[str, Any], n_trees: int) -> dict[str, Any]:
    """Return the model of the first trees: what XGBoost's ``booster[:n]`` makes."""
    learner = model["learner"]
    kept = learner["gradient_booster"]["model"]
    kept = kept | {
        "trees": kept["trees"][:n_trees],
        "tree_info": kept["tree_info"][:n_trees],
        "iteration_indptr": kept["iteration_indptr"][: n_trees + 1],
        "gbtree_model_param": kept["gbtree_model_param"] | {"num_trees": str(n_trees)},
    }
    booster = learner["gradient_booster"] | {"model": kept}
    return model | {"learner": learner | {"gradient_booster": booster}}


def pack(dataset: str, cache: str | Path | None) -> bytes:
    """Return the file of a data set; the same models give the same bytes."""
    content = {}
    for training in models.paper_trainings([dataset]):
        largest = models.models_of(training, cache)[-1]
        notes = json.loads((largest.path.parent / f"{training.name}.notes.json").read_text())
        model = json.loads(largest.path.read_text())
        for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
            for name in STATISTICS:
                tree[name] = [0] * len(tree[name])
        content[training.depth] = {"notes": notes, "model": model}
    return lzma.compress(json.dumps(content, separators=(",", ":")).encode(), preset=9)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.harness.shipped", __doc__)
    parser.add_argument("--only", nargs="*", choices=BY_KEY, help="data sets (default: all)")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(exist_ok=True)
    for key in options.only or BY_KEY:
        path = FOLDER / f"{key}.json.xz"
        path.write_bytes(pack(key, options.cache))
        print(f"{path.stat().st_size} {path.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
