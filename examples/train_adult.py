"""Train the models that ship with the package: ``adult.json`` and ``adult-one-hot.json``.

The data is Adult (Becker and Kohavi 1996, UCI Machine Learning Repository, CC BY 4.0,
doi:10.24432/C5XW20) as one CSV file: a header, its columns under their usual names, and a last
column ``target`` that is 1 for an income above 50,000 dollars. The first model is made from the
whole file, which starts with UCI's training part; the second from the extract beside this file,
whose last 1,500 rows are held out and ship with the model (``adult-held-out.csv.gz``)::

    python examples/train_adult.py --data adult.csv.gz
    python examples/train_adult.py --one-hot

Needs ``xgboost-cpu`` and ``pandas``. One thread and a fixed seed: the same data and the same
XGBoost version give the same file.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import pandas as pd
import xgboost

SHIPPED = Path(__file__).parent.parent / "src" / "xcount" / "model" / "data"
EXTRACT = Path(__file__).parent / "adult-extract.csv.gz"
N_TRAINING_ROWS, N_EXTRACT_TRAINING_ROWS = 32561, 4500
LEFT_OUT = {
    "fnlwgt": "a weight of the survey; says nothing about the person",
    "education": "says the same as education_num",
}
ONE_HOT_COLUMNS = ["age", "sex", "race", "relationship", "education_num", "hours_per_week"]


def read_adult(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Return the features, texts as pandas categories, and the target."""
    table = pd.read_csv(path).drop(columns=list(LEFT_OUT), errors="ignore")
    target = table.pop("target")
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = table[name].astype("category")
    return table, target


def train(features: pd.DataFrame, target: pd.Series, n_trees: int) -> xgboost.XGBClassifier:
    """Fit trees of depth 4; categorical columns get native splits."""
    model = xgboost.XGBClassifier(
        n_estimators=n_trees,
        max_depth=4,
        learning_rate=0.2,
        tree_method="hist",
        enable_categorical=True,
        random_state=0,
        n_jobs=1,
    )
    model.fit(features, target)
    return model


def main() -> None:
    """Train a model, print its accuracy on the test part, and save it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="Adult as one CSV file")
    parser.add_argument("--one-hot", action="store_true", help="the second model")
    parser.add_argument("--output", type=Path, help="where to write the model")
    arguments = parser.parse_args()
    if arguments.data is None and not arguments.one_hot:
        parser.error("give --data FILE, or --one-hot")
    features, target = read_adult(arguments.data or EXTRACT)
    n_training, n_trees, name = N_TRAINING_ROWS, 50, "adult.json"
    if arguments.one_hot:
        features = pd.get_dummies(features[ONE_HOT_COLUMNS], dtype=int)
        n_training, n_trees, name = N_EXTRACT_TRAINING_ROWS, 30, "adult-one-hot.json"
    model = train(features[:n_training], target[:n_training], n_trees)
    predicted = model.predict(features[n_training:])
    accuracy = (predicted == target[n_training:]).mean()
    output = arguments.output or SHIPPED / name
    model.save_model(output)
    if arguments.one_hot:
        rows = features[n_training:].to_csv(index=False, lineterminator="\n")
        held_out = output.with_name("adult-held-out.csv.gz")
        held_out.write_bytes(gzip.compress(rows.encode(), 9, mtime=0))
    print(f"{output}: accuracy {accuracy:.4f} on the {len(predicted)} test rows")


if __name__ == "__main__":
    main()
