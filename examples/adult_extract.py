"""Draw the extract of Adult that the tutorial trains on: ``examples/adult-extract.csv.gz``.

The data is Adult (Becker and Kohavi 1996, UCI Machine Learning Repository, CC BY 4.0,
doi:10.24432/C5XW20) as one CSV file with a header and a last column ``target`` that is 1 for an
income above 50,000 dollars. The extract has 6,000 of its 48,842 rows, drawn at random with a fixed
seed, and 12 of its 14 features: it leaves out the survey's weight, and the education as a word,
since it is also there as a number::

    python examples/adult_extract.py --data adult.csv.gz

Needs ``pandas``.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import pandas as pd

EXTRACT = Path(__file__).parent / "adult-extract.csv.gz"
N_ROWS = 6000
LEFT_OUT = ["fnlwgt", "education"]


def extract(path: Path) -> str:
    """Return the drawn rows as CSV."""
    table = pd.read_csv(path).drop(columns=LEFT_OUT)
    drawn: str = table.sample(N_ROWS, random_state=0).to_csv(index=False, lineterminator="\n")
    return drawn


def main() -> None:
    """Write the extract; its bytes are the same each time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="Adult as one CSV file")
    parser.add_argument("--output", type=Path, default=EXTRACT, help="where to write the extract")
    arguments = parser.parse_args()
    arguments.output.write_bytes(gzip.compress(extract(arguments.data).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
