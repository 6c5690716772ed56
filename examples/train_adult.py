"""Train the model that ships as ``src/xcount/model/data/adult.json``.

The data is Adult (Becker and Kohavi 1996, UCI Machine Learning Repository, CC BY 4.0,
doi:10.24432/C5XW20) as one CSV file: a header, the 14 columns under their usual names, and a last
column ``target`` that is 1 for an income above 50,000 dollars. UCI's training part comes first::

    python examples/train_adult.py --data adult.csv.gz

Needs ``xgboost-cpu`` and ``pandas``. One thread and a fixed seed: the same data and the same
XGBoost version give the same file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
import xgboost

SHIPPED = Path(__file__).parent.parent / "src" / "xcount" / "data" / "adult.json"
N_TRAINING_ROWS = 32561
LEFT_OUT = {
    "fnlwgt": "a weight of the survey, nothing about the person",
    "education": "says the same as education_num",
}


def read_adult(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Return the features, texts as pandas categories, and the target."""
    table = pd.read_csv(path).drop(columns=list(LEFT_OUT))
    target = table.pop("target")
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = table[name].astype("category")
    return table, target


def train(features: pd.DataFrame, target: pd.Series) -> xgboost.XGBClassifier:
    """Fit 50 trees of depth 4 with native categorical splits."""
    model = xgboost.XGBClassifier(
        n_estimators=50,
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
    """Train, say how good the model is on the test part, and save it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="Adult as one CSV file")
    parser.add_argument("--output", type=Path, default=SHIPPED, help="where the model goes")
    arguments = parser.parse_args()
    features, target = read_adult(arguments.data)
    model = train(features[:N_TRAINING_ROWS], target[:N_TRAINING_ROWS])
    predicted = model.predict(features[N_TRAINING_ROWS:])
    accuracy = (predicted == target[N_TRAINING_ROWS:]).mean()
    model.save_model(arguments.output)
    print(f"{arguments.output}: accuracy {accuracy:.4f} on the {len(predicted)} test rows")


if __name__ == "__main__":
    main()
