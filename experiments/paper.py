"""The paper's own numbers, from ``paper.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

PAPER: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
LIMIT_SECONDS: float = PAPER["limit_seconds"]
N_INSTANCES: int = PAPER["n_instances"]
PUBLISHED: list[int] = PAPER["published"]
"""The counts that the authors publish, for 1 to 10 trees."""
SOLVED: dict[str, tuple[int, str]] = PAPER["solved"]
"""How many instances each tool solved, and its PAR-2."""
TOOLS: dict[str, str] = PAPER["tools"]
"""Our methods that are the paper's tools, and their names there."""
SHARES = {method: SOLVED[tool][0] / N_INSTANCES for method, tool in TOOLS.items()}
"""The share of its instances that each of the paper's tools solved."""
N_ABLATED: int = PAPER["ablations"].pop("n_instances")
ABLATIONS: dict[str, tuple[int, str]] = PAPER["ablations"]
"""How many of its questions each configuration solved, and its PAR-2."""
