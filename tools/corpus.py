"""Writes the small model files of ``tests/corpus/seeds``, one or more per format.

    python -m tools.corpus

Needs all the libraries (extra ``test``). The files are kept in the repository, so that fuzzing
needs none of the libraries and is the same everywhere; write them again when a library changes its
format.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

CORPUS = Path(__file__).parent.parent / "tests" / "corpus"


def rows_and_labels() -> tuple[Any, Any, Any]:
    """Return rows of numbers with missing values, labels of two classes and labels of three."""
    random = np.random.default_rng(3)
    rows = random.normal(size=(200, 4)).round(2)
    rows[:, 3] = random.integers(0, 5, 200)
    two = (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0).astype(int)
    three = two + (rows[:, 3] > 2)
    rows[random.random(rows.shape) < 0.05] = np.nan
    return rows, two, three


def xgboost_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield JSON, UBJSON and dumps: two classes, three classes, categories."""
    import xgboost

    rows, two, three = rows_and_labels()
    plain = xgboost.DMatrix(rows, two, feature_names=["age", "wage", "c", "d"])
    booster = xgboost.train({"max_depth": 2, "objective": "binary:logistic"}, plain, 2)
    yield "xgboost.json", bytes(booster.save_raw("json"))
    yield "xgboost.ubj", bytes(booster.save_raw("ubj"))
    yield "xgboost.json.gz", gzip.compress(bytes(booster.save_raw("json")), mtime=0)
    booster.dump_model(folder / "dump.json", dump_format="json")
    yield "xgboost-dump.json", (folder / "dump.json").read_bytes()
    options = {"max_depth": 1, "objective": "multi:softprob", "num_class": 3}
    softprob = xgboost.train(options, xgboost.DMatrix(rows, three), 1)
    yield "xgboost-multiclass.json", bytes(softprob.save_raw("json"))
    kinds = ["q", "q", "q", "c"]
    categories = xgboost.DMatrix(rows, two, feature_types=kinds, enable_categorical=True)
    chosen = xgboost.train({"max_depth": 2, "max_cat_to_onehot": 1}, categories, 2)
    yield "xgboost-categories.ubj", bytes(chosen.save_raw("ubj"))


def lightgbm_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield text: missing values and categories; three classes."""
    import lightgbm

    rows, two, three = rows_and_labels()
    options = {"num_leaves": 4, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    data = lightgbm.Dataset(rows, two, categorical_feature=[3], params={"verbose": -1})
    binary = lightgbm.train(options | {"objective": "binary"}, data, 2)
    yield "lightgbm.txt", binary.model_to_string().encode()
    data = lightgbm.Dataset(rows, three, params={"verbose": -1})
    several = lightgbm.train(options | {"objective": "multiclass", "num_class": 3}, data, 1)
    yield "lightgbm-multiclass.txt", several.model_to_string().encode()


def catboost_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield JSON: oblivious trees, others, categories."""
    import catboost

    rows, two, _ = rows_and_labels()
    for policy in ("SymmetricTree", "Depthwise"):
        model = catboost.CatBoostClassifier(
            iterations=2,
            depth=2,
            grow_policy=policy,
            verbose=False,
            allow_writing_files=False,
            thread_count=1,
            random_seed=0,
            border_count=8,
        )
        model.fit(rows, two).save_model(str(folder / "catboost.json"), format="json")
        yield f"catboost-{policy.lower()}.json", (folder / "catboost.json").read_bytes()
    yield "catboost-categories.json", _catboost_categories(folder)
    yield "catboost-buckets.json", _catboost_buckets(folder)


def _catboost_categories(folder: Path) -> bytes:
    """Return a model with a one-hot feature and one with statistics, and their names."""
    import catboost

    words = np.array(["a", "b", "c", "d"], dtype=object)
    _, two, three = rows_and_labels()
    texts = np.stack([words[three], words[2 * two + np.arange(len(two)) % 2]], axis=1)
    pool = catboost.Pool(texts, two, cat_features=[0, 1])
    model = catboost.CatBoostClassifier(
        iterations=3,
        depth=2,
        one_hot_max_size=3,
        max_ctr_complexity=1,
        verbose=False,
        allow_writing_files=False,
        thread_count=1,
        random_seed=0,
    )
    model.fit(pool).save_model(str(folder / "catboost.json"), format="json", pool=pool)
    return (folder / "catboost.json").read_bytes()


def _catboost_buckets(folder: Path) -> bytes:
    """Return a model of three classes: two one-hot features that share names, two with buckets."""
    import catboost

    words = np.array(list("abcdefgh"), dtype=object)
    _, two, three = rows_and_labels()
    step = np.arange(len(two))
    columns = [words[three], words[three + 2], words[(three + step) % 8], words[step * 3 % 8]]
    pool = catboost.Pool(np.stack(columns, axis=1), (three + two) % 3, cat_features=[0, 1, 2, 3])
    model = catboost.CatBoostClassifier(
        iterations=4,
        depth=2,
        one_hot_max_size=3,
        max_ctr_complexity=1,
        simple_ctr=["Buckets", "Counter"],
        logging_level="Silent",
        allow_writing_files=False,
        thread_count=1,
        random_seed=0,
    )
    model.fit(pool).save_model(str(folder / "catboost.json"), format="json", pool=pool)
    return (folder / "catboost.json").read_bytes()


def interpret_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the JSON export: numbers, categories, missing values and a pair."""
    import warnings

    from interpret.glassbox import ExplainableBoostingClassifier

    rows, two, _ = rows_and_labels()
    kinds = ["continuous", "continuous", "continuous", "nominal"]
    sizes = {"max_bins": 6, "max_interaction_bins": 4, "max_rounds": 20, "outer_bags": 1}
    model = ExplainableBoostingClassifier(
        feature_types=kinds, interactions=[(0, 3)], n_jobs=1, random_state=0, **sizes
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of missing values, and that the format may change
        model.fit(rows, two).to_json(str(folder / "ebm.json"), "minimal", None)
    yield "interpret-ebm.json", (folder / "ebm.json").read_bytes()


def node_tables(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield tables of trees: what XGBoost returns as one, and categories by name."""
    import xgboost

    rows, two, _ = rows_and_labels()
    booster = xgboost.train({"max_depth": 2}, xgboost.DMatrix(rows, two), 2)
    yield "table-xgboost.csv", booster.trees_to_dataframe().to_csv(index=False).encode()
    lines = (
        "tree,node,feature,test,split,left,right,missing,value",
        "0,0,job,in,cook|nurse,1,2,right,",
        "0,1,age,<,40,3,4,left,",
        "0,2,,,,,,,0.5",
        "0,3,,,,,,,-0.25",
        "0,4,,,,,,,1",
    )
    yield "table-plain.csv", "\n".join([*lines, ""]).encode()


def treelite_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield a checkpoint with numbers and categories."""
    import treelite
    import xgboost

    rows, two, _ = rows_and_labels()
    kinds = ["q", "q", "q", "c"]
    data = xgboost.DMatrix(rows, two, feature_types=kinds, enable_categorical=True)
    booster = xgboost.train({"max_depth": 2, "max_cat_to_onehot": 1}, data, 2)
    yield "treelite.bin", treelite.frontend.from_xgboost(booster).serialize_bytes()


def sklearn_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield skops files of the smallest models of each kind."""
    import skops.io
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

    rows, two, _ = rows_and_labels()
    rows = np.nan_to_num(rows)
    forest = RandomForestClassifier(1, max_depth=2, random_state=0).fit(rows, two)
    yield "sklearn-forest.skops", _packed(skops.io.dumps(forest))
    boosting = GradientBoostingClassifier(n_estimators=1, max_depth=1, random_state=0)
    yield "sklearn-boosting.skops", _packed(skops.io.dumps(boosting.fit(rows, two)))


def _packed(data: bytes) -> bytes:
    """Return a zip file compressed and without dates."""
    import io
    import zipfile

    target = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as source,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in source.namelist():
            packed.writestr(zipfile.ZipInfo(name), source.read(name), zipfile.ZIP_DEFLATED)
    return target.getvalue()


def main() -> int:
    import tempfile

    folder = CORPUS / "seeds"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for files in (
            xgboost_files,
            lightgbm_files,
            catboost_files,
            interpret_files,
            node_tables,
            treelite_files,
            sklearn_files,
        ):
            for name, data in files(Path(scratch)):
                (folder / name).write_bytes(data)
                print(f"{name}: {len(data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
