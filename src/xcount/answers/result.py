"""What a count returns: the number, how sure it is, why the run stopped; to and from JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from xcount.counters.tally import MaskCount, PairCount, Profile, StopReason
from xcount.question.change import Change, change_from
from xcount.question.share import Limit
from xcount.support.numerals import to_json


class Verdict(StrEnum):
    """Whether the share stays below the asked maximum."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Which model was asked."""

    path: str | None
    sha256: str | None
    format: str
    n_trees: int
    max_depth: int
    n_features: int
    n_guards: int


@dataclass(frozen=True, slots=True)
class CountResult:
    """How many regions are sensitive, and how sure that is.

    ``low <= C <= high`` holds with probability at least ``confidence``. ``change`` makes two
    regions differ; ``class_label`` names the class asked about, where the model has several.
    """

    count: int
    low: int
    high: int
    confidence: float
    n_regions: int
    method: str
    stop_reason: StopReason
    sensitive: tuple[str, ...]
    change: Change
    distance: int | None
    precision: int | None
    model: ModelInfo
    epsilon: float = 0.1
    delta: float = 0.1
    seed: int = 0
    max_share: Limit | None = None
    seconds: float = 0.0
    peak_memory_bytes: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    profile: Profile | None = None
    class_label: str | None = None

    @property
    def exact(self) -> bool:
        return self.low == self.high and self.confidence == 1.0

    @property
    def gap(self) -> str:
        """The change as briefly as possible: ``"2"``, or of a decision ``"flip at 0"``."""
        return self.change.text

    @property
    def share(self) -> float:
        return self.count / self.n_regions

    @property
    def share_low(self) -> float:
        return self.low / self.n_regions

    @property
    def share_high(self) -> float:
        return self.high / self.n_regions

    @property
    def verdict(self) -> Verdict | None:
        """PASS when C / n_regions is at most ``max_share``, as far as the interval tells."""
        if self.max_share is None:
            return None
        return judged(self.max_share, (self.low, self.high), (self.n_regions, self.n_regions))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON contract of ``xcount count --json``."""
        data: dict[str, Any] = {
            "count": self.count,
            "low": self.low,
            "high": self.high,
            "exact": self.exact,
            "confidence": self.confidence,
            "n_regions": self.n_regions,
            "share": self.share,
            "share_low": self.share_low,
            "share_high": self.share_high,
            "method": self.method,
            "stop_reason": str(self.stop_reason),
            "verdict": None if self.verdict is None else str(self.verdict),
            "sensitive": list(self.sensitive),
            **self.change.to_dict(),
            "distance": "any" if self.distance is None else self.distance,
            "precision": "exact" if self.precision is None else self.precision,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "seed": self.seed,
            **limit_fields("max_share", self.max_share),
            "seconds": self.seconds,
            "peak_memory_bytes": self.peak_memory_bytes,
            "model": asdict(self.model),
            "versions": dict(self.versions),
            "details": dict(self.details),
        }
        if self.class_label is not None:
            data["class_label"] = self.class_label
        if self.profile is not None:
            data["profile"] = asdict(self.profile)
        return data

    def to_json(self, indent: int | None = None) -> str:
        """Return the result as one JSON object."""
        return to_json(self.to_dict(), indent)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the profile; with a path, save it (PNG, SVG, PDF). Needs the extra ``plots``."""
        from xcount.report import plot_count

        return plot_count(self, path)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CountResult:
        """Read back what :meth:`to_dict` wrote."""
        return cls(
            count=data["count"],
            low=data["low"],
            high=data["high"],
            confidence=data["confidence"],
            n_regions=data["n_regions"],
            method=data["method"],
            stop_reason=StopReason(data["stop_reason"]),
            sensitive=tuple(data["sensitive"]),
            change=change_from(data),
            distance=None if data["distance"] == "any" else data["distance"],
            precision=None if data["precision"] == "exact" else data["precision"],
            model=ModelInfo(**data["model"]),
            epsilon=data["epsilon"],
            delta=data["delta"],
            seed=data["seed"],
            max_share=limit_from(data, "max_share"),
            seconds=data["seconds"],
            peak_memory_bytes=data["peak_memory_bytes"],
            versions=data["versions"],
            details=data.get("details", {}),
            profile=_profile_from(data["profile"]) if "profile" in data else None,
            class_label=data.get("class_label"),
        )


def judged(limit: Limit, part: tuple[int, int], whole: tuple[int, int]) -> Verdict:
    """Tell whether part / whole is at most the limit, as far as their bounds tell."""
    if limit.allows(part[1], whole[0]):
        return Verdict.PASS
    return Verdict.UNDECIDED if limit.allows(part[0], whole[1]) else Verdict.FAIL


def limit_fields(name: str, limit: Limit | None) -> dict[str, Any]:
    """Return a limit's JSON fields: the number, and the fraction it stands for."""
    if limit is None:
        return {name: None}
    return {name: float(limit), f"{name}_text": limit.text}


def limit_from(data: Mapping[str, Any], name: str) -> Limit | None:
    """Return a limit as :meth:`CountResult.to_dict` writes it: a number, and its text if exact."""
    if data.get(name) is None:
        return None
    return Limit.of(data.get(f"{name}_text") or float(data[name]))


def _profile_from(data: Mapping[str, Any]) -> Profile:
    masks = [MaskCount(**{**row, "cells": tuple(row["cells"])}) for row in data["masks"]]
    pairs = [
        PairCount(**{**row, "cells": tuple(row["cells"]), "other_cells": tuple(row["other_cells"])})
        for row in data["pairs"]
    ]
    return Profile(tuple(masks), tuple(pairs))
