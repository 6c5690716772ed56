"""Writes ``docs/xcount.schema.json``, the schema of the JSON that commands print.

    python -m tools.json_schema

The fields of results are defined with the results (see ``xcount.support.records``); this module
adds the rest: the details that counters add, and the objects that contain results.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import xcount.answers.diff_result
import xcount.answers.inspection
import xcount.answers.monotone
import xcount.answers.person
import xcount.answers.witness.witness
import xcount.answers.worst
import xcount.repairs.result
import xcount.runs.audit
import xcount.runs.compare  # noqa: F401  # whoever is imported has named its records
from xcount.counters.tally import StopReason
from xcount.measures.weighting import MEASURES
from xcount.support.records import OBJECTS, RECORDS, reference, schema_of

SCHEMA = Path(__file__).parent.parent / "docs" / "xcount.schema.json"

COMMANDS = (
    "count",
    "audit",
    "compare",
    "worst",
    "diff",
    "witnesses",
    "repair",
    "monotone",
    "person",
    "verify",
    "inspect",
    "population",
)
PARTS = (
    "model",
    "verified_estimate",
    "domain",
    "input",
    "component",
    "trait",
    "realism",
    "check",
    "profile",
    "explanation",
    "effect",
    "curve",
    "curve_point",
    "curve_gap",
    "quantile",
    "highest_cell",
    "share_interval",
    "value_interval",
    "place",
    "group_rates",
    "group_rate",
    "rate_interval",
    "ratio_interval",
    "mask",
    "pair",
    "cell",
    "monotone_feature",
    "ranked",
    "ratio",
    "compared",
    "model_summary",
    "repair_question",
    "repair_moves",
    "repair_quality",
    "repair_test",
    "person_cell",
    "groups",
    "group_table",
    "group_row",
    "swap",
)
WITNESS_PARTS = ("witness", "crossing", "contribution", "feature", "leaves")

_SHARE = {"type": "number", "minimum": 0, "maximum": 1}

_CUT_SHORT = {
    "exact_cut_short": {
        "type": "boolean",
        "description": "Present if an estimate stands where the time limit ended or left out exact "
        "counting: another machine, or more time, may give the exact answer.",
    },
    "samples_cut_short": {
        "type": "boolean",
        "description": "Present if the time limit ended the trial samples that choose how an "
        "estimate draws: another machine may give another estimate.",
    },
}

MEASURED = {
    "type": "object",
    "description": "What the sensitive regions weigh under another measure.",
    "properties": {
        "share": {
            **_SHARE,
            "type": ["number", "null"],
            "description": "Weight of the sensitive regions, or an estimate of it; null if only "
            "`low` and `high` are known. All regions together weigh 1.",
        },
        "low": {**_SHARE, "description": "Not less than this, with probability `confidence`."},
        "high": {**_SHARE, "description": "Not more than this, with probability `confidence`."},
        "exact": {
            "type": "boolean",
            "description": "Whether nothing was sampled (floats are still rounded).",
        },
        "confidence": {**_SHARE, "description": "1, or 1 - delta."},
        "stop_reason": {"enum": list(StopReason), "description": "Why the weighing ended."},
        **_CUT_SHORT,
        "note": {"type": "string", "description": "Why it was refused, in a sentence."},
        "note_code": {
            "type": "string",
            "description": "The same in a word: `too_many_masks`, or `too_large` in general.",
        },
        "n_rows": {
            "type": "integer",
            "description": "Rows of the data (`marginals`, `rows`).",
            "minimum": 0,
        },
        "source": {"type": "string", "description": "Where the data came from."},
        "n_components": {
            "type": "integer",
            "description": "`population`: how many components it has.",
            "minimum": 1,
        },
        "realism": {
            **reference("realism"),
            "description": "`population`: how well it fits held-out rows.",
        },
        "fitted_to_other_data": {
            "type": "string",
            "description": "`population`: present only if it was fitted to a table other than the "
            "one given.",
        },
        "outside": {
            "type": "integer",
            "description": "`rows`: how many of them the domain leaves out: not asked about.",
            "minimum": 0,
        },
        "left_out": {
            "type": "integer",
            "description": "`rows`: how many of the others have no place: not sensitive in `low`, "
            "sensitive in `high`; `share` is that of the rows with a place.",
            "minimum": 0,
        },
        "left_out_reasons": {
            "type": "object",
            "description": "`rows`: why they have no place: how many rows by reason.",
            "additionalProperties": {"type": "integer", "minimum": 1},
        },
        "left_out_rows": {
            "type": "array",
            "description": "`rows`: their numbers, from 0.",
            "items": {"type": "integer", "minimum": 0},
        },
        "n_fixed": {
            "type": "integer",
            "description": "`rows`: how many of those with a place cannot be sensitive because no "
            "other values of the sensitive features are in the domain there.",
            "minimum": 0,
        },
        "n_sensitive": {
            "type": "integer",
            "description": "`rows`: how many of them are sensitive.",
            "minimum": 0,
        },
        "sensitive_rows": {
            "type": "array",
            "description": "`rows`: numbers of the sensitive rows, from 0.",
            "items": {"type": "integer", "minimum": 0},
        },
    },
    "required": ["share", "low", "high", "exact", "confidence", "stop_reason"],
}

DETAILS = {
    "type": "object",
    "description": "The counter's own numbers (steps, samples, sizes), which may change from "
    "version to version; and the following, which will stay.",
    "properties": {
        "measures": {
            "type": "object",
            "description": "`--measure`: one entry per requested measure.",
            "additionalProperties": reference("measured"),
            "propertyNames": {"enum": list(MEASURES[1:])},  # not regions: that is the count
        },
        "witnesses": {
            "type": "array",
            "description": "`audit --witnesses`: example pairs, as in `xcount witness --json`.",
            "items": reference("witness"),
        },
        **_CUT_SHORT,
        "may_be_zero": {
            "type": "boolean",
            "description": "Whether the count may be 0: no sensitive region has been found for "
            "certain.",
        },
    },
}

WITNESSES = {
    "type": "object",
    "description": "`xcount witness --json`.",
    "properties": {
        "kind": {"const": "witnesses", "description": "What this object is."},
        "domain": {
            **reference("domain"),
            "description": "Which regions exist; only if a domain was given.",
        },
        "unconfirmed": {
            "type": "integer",
            "minimum": 1,
            "description": "Only with `--verify`: number of pairs that were left out because the "
            "library does not confirm them.",
        },
        "witnesses": {
            "type": "array",
            "description": "The pairs of inputs.",
            "items": reference("witness"),
        },
    },
    "required": ["kind", "witnesses"],
    "additionalProperties": False,
}

SEAL = {
    "after": {
        "type": ["string", "null"],
        "description": "The `check` of the previous line; null in the first.",
    },
    "check": {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": 'SHA-256 of the bytes of the line before `, "check"`.',
    },
}

RUN_LINE = {
    "type": "object",
    "properties": {"kind": {"const": "run"}, **SEAL},
    "required": ["kind", *SEAL],
}

RESULT_LINE = {
    "type": "object",
    "description": "A finished count.",
    "properties": {
        "kind": {"const": "result", "description": "What this line is."},
        "key": {
            "type": "string",
            "description": "Identifies the count: a hash of model, grid, question, accuracy and "
            "seed.",
        },
        "model": {"type": "string", "description": "Which model of the run."},
        "limits": {"type": "object", "description": "The limits that the count had."},
        "explained": {
            "type": ["object", "null"],
            "description": "What the explanation covers: the favourable decision, and whether "
            "places and group rates; null without one.",
        },
        "question": {
            "type": "string",
            "description": "The question file that was verified, compressed (zlib, base64).",
        },
        "result": {**reference("count"), "description": "As in `xcount count --json`."},
        **SEAL,
    },
    "required": ["kind", "key", "model", "limits", "result", *SEAL],
    "additionalProperties": False,
}

JOURNAL_LINE = {
    "description": "One line of `--journal FILE`: a run, or one finished count of it.",
    "oneOf": [RUN_LINE, RESULT_LINE],
}


def schema() -> dict[str, Any]:
    """Return the whole schema."""
    written = {
        "details": DETAILS,
        "measured": MEASURED,
        "witnesses": WITNESSES,
        "journal_line": JOURNAL_LINE,
    }
    ours = {name: cls for name, cls in RECORDS.items() if cls.__module__.startswith("xcount.")}
    derived = {name: schema_of(cls) for name, cls in ours.items()}
    order = [*COMMANDS, *PARTS, "details", "measured", *WITNESS_PARTS, "journal_line"]
    found = derived | OBJECTS | written
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What xcount prints with --json",
        "description": f"One object per command: $defs/{', '.join(COMMANDS)}; and the lines of a "
        "journal.",
        "anyOf": [reference(name) for name in COMMANDS],
        "$defs": {name: found[name] for name in sorted(found, key=order.index)},
    }


def text() -> str:
    """Return the file's text."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")
    sys.exit(0)
