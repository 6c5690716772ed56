"""The fields that ``--json`` promises (see docs/json.md)."""

from __future__ import annotations

CONTRACT = {
    "count", "low", "high", "exact", "confidence", "n_regions", "share", "share_low",
    "share_high", "method", "stop_reason", "verdict", "sensitive", "gap", "distance",
    "precision", "epsilon", "delta", "seed", "seconds", "peak_memory_bytes", "model", "versions",
}  # fmt: skip
MODEL_CONTRACT = {"path", "sha256", "format", "n_trees", "max_depth", "n_features", "n_guards"}
