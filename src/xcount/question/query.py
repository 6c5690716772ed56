"""The query: a question validated against an ensemble.

The question, for sensitive features S, a distance d and a change: how many regions ``b`` have
another region ``b'`` with the same cells outside S and ``1 <= distance(b, b') <= d`` that differs
from it as the change says (see :mod:`xcount.question.change`)?
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from xcount.errors import QueryError, QueryWarning, UnknownFeatureError
from xcount.model.ensemble import Ensemble
from xcount.question.change import DIRECTIONS, Change, Direction
from xcount.question.flip import Flip, Sureness
from xcount.question.gap import Gap, ProbabilityGap
from xcount.question.probability import Link, link_named
from xcount.support.nearest import nearest
from xcount.support.parse import exact_number, plain_float

MAX_PRECISION = 30
_MOST_NAMES = 20
MAX_GAP = Fraction(sys.float_info.max)


@dataclass(frozen=True, slots=True)
class Query:
    """One question about an ensemble.

    Attributes:
        sensitive: indices of the sensitive features, ascending.
        change: what makes two regions differ.
        distance: d, the largest distance of two masks; None for any distance.
        precision: decimals that leaves are rounded to; None for the leaves as stored.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> Query.of(figure_1(), "f0", gap="1/2").change.text
        '0.5'
    """

    sensitive: tuple[int, ...]
    change: Change
    distance: int | None = None
    precision: int | None = None

    @classmethod
    def of(
        cls,
        ensemble: Ensemble,
        sensitive: str | int | Iterable[str | int],
        gap: object = None,
        *,
        distance: object = "any",
        class_: object = None,
        precision: object = "exact",
        **change: Any,
    ) -> Query:
        """Validate a question in the user's words.

        Features are given by name, as ``fN`` or by index; a string may list several with commas.
        The remaining arguments describe the change, see :func:`resolve_change`.

        Example:
            >>> from xcount.model.examples import figure_1
            >>> Query.of(figure_1(), "f0", "80").sensitive
            (0,)
        """
        features = resolve_features(ensemble, sensitive)
        steps, decimals = parse_distance(distance), parse_precision(precision)
        asked = resolve_change(ensemble, gap, class_=class_, **change)
        return cls(features, asked, steps, decimals)


def resolve_change(
    ensemble: Ensemble,
    gap: object = None,
    *,
    probability_gap: object = None,
    flip: bool = False,
    cutoff: object = None,
    direction: object = "any",
    from_probability: object = None,
    class_: object = None,
) -> Change:
    """Return the change that the user's options describe: a gap of some kind, or a flip."""
    if flip:
        if gap is not None or probability_gap is not None:
            raise QueryError("use either --flip or a gap, not both")
        return resolve_flip(ensemble, class_, cutoff, direction, from_probability)
    refuse_without_flip(cutoff, from_probability)
    if gap is not None and probability_gap is not None:
        raise QueryError("use either a gap in margin or a gap in probability, not both")
    if probability_gap is not None:
        return resolve_probability_gap(ensemble, probability_gap, class_, direction)
    if gap is None:
        raise QueryError(
            "no gap given; give --gap or --probability-gap (probability_gap), or --flip to ask "
            "about the decision"
        )
    return Gap(parse_gap(gap), resolve_output(ensemble, class_), parse_direction(direction))


def refuse_without_flip(cutoff: object, from_probability: object) -> None:
    """Reject options that only apply to flips."""
    if cutoff is not None:
        raise QueryError("a cut-off only applies to flips; add --flip")
    if from_probability is not None:
        raise QueryError("--from-probability (from_probability) only applies to flips; add --flip")


def resolve_probability_gap(
    ensemble: Ensemble, gap: object, output: object = None, direction: object = "any"
) -> ProbabilityGap:
    """Return a change of the model's own probability by more than the gap."""
    link = resolve_link(ensemble)
    share = parse_probability(gap, "probability gap")
    index = resolve_output(ensemble, output)
    return ProbabilityGap(share, index, parse_direction(direction), link)


def resolve_link(ensemble: Ensemble) -> Link:
    """Return the link from the model's margins to its probability."""
    kind = ensemble.probability
    if kind == "none":
        raise QueryError(
            f"this {ensemble.task} model predicts no probability; ask about its margin with --gap"
        )
    if kind == "unknown" and ensemble.task != "unknown":
        raise QueryError(
            "this model's probability is calibrated, or computed from its margin in an unknown "
            "way; ask about the margin with --gap, or load the model inside"
        )
    if kind == "unknown":
        raise QueryError(
            "the file does not say how to compute a probability from the margin (a dump has no "
            "objective); save the whole model, or ask about the margin with --gap"
        )
    if not ensemble.slope > 0:
        raise QueryError(
            f"the probability falls as the margin grows (slope {ensemble.slope:g}); ask about the "
            "margin with --gap"
        )
    return link_named(kind, Fraction(ensemble.slope))


def parse_direction(direction: object) -> Direction:
    """Return the direction."""
    for known in DIRECTIONS:
        if direction == known:
            return known
    raise QueryError(f"the direction must be up, down or any, not {direction!r}")


def parse_probability(share: object, what: str) -> Fraction:
    """Return a probability as the exact value of its decimal text."""
    value = _parse_margin(share, what)
    if not 0 <= value <= 1:
        raise QueryError(f"the {what} must be between 0 and 1, not {share!r}")
    return value


def resolve_features(
    ensemble: Ensemble, sensitive: str | int | Iterable[str | int]
) -> tuple[int, ...]:
    """Return the sorted indices of the named features."""
    given: list[str | int]
    if sensitive is None:
        sensitive = ()
    if isinstance(sensitive, str) or not isinstance(sensitive, Iterable):
        given = [sensitive]
    else:
        given = list(sensitive)
    words = [word for item in given for word in _split(ensemble, item)]
    indices = [resolve_feature(ensemble, word) for word in words if word != ""]
    if not indices:
        raise QueryError("no sensitive feature given; name at least one")
    if len(set(indices)) != len(indices):
        raise QueryError(f"a sensitive feature is named twice in {', '.join(map(str, words))}")
    return tuple(sorted(indices))


def _split(ensemble: Ensemble, word: str | int) -> list[str | int]:
    """Split a comma-separated list into names; keep a name that itself contains a comma."""
    if not isinstance(word, str) or word in ensemble.feature_names:
        return [word]
    return [part.strip() for part in word.split(",")]


def resolve_feature(ensemble: Ensemble, word: str | int) -> int:
    """Return the index of a feature given by name, or of a column as ``fN`` or by its index.

    A column of a one-hot group is not a feature. ``f1`` is no index if a column is called ``F1``.
    """
    names, text = ensemble.feature_names, str(word)
    if isinstance(word, str) and text in names:
        return names.index(text)
    _check_unambiguous(ensemble, text)
    if ensemble.encoding is not None and _is_column(ensemble.encoding.source, word):
        return _grouped(ensemble, resolve_feature(ensemble.encoding.source, word))
    digits = _digits(text)
    if digits is None:
        raise UnknownFeatureError(f"unknown feature {text!r}; {_suggest(text, names)}", text)
    if int(digits) < len(names):
        return int(digits)
    raise QueryError(
        f"feature index {digits} is out of range: the model has {len(names)} features, 0 to "
        f"{len(names) - 1}"
    )


def _check_unambiguous(ensemble: Ensemble, text: str) -> None:
    """Reject ``fN`` as an index if it is also the name of a column but for upper and lower case."""
    columns = ensemble if ensemble.encoding is None else ensemble.encoding.source
    digits, known = _digits(text), [*ensemble.feature_names, *columns.feature_names]
    named = next((name for name in known if name.lower() == text.lower()), None)
    if digits is None or named is None or text in known:
        return
    index = int(digits)
    own = columns.feature_names[index] if index < len(columns.feature_names) else None
    is_index = "" if own is None else f", or {digits} for column {digits} (from 0), {own!r}"
    raise QueryError(f"{text!r} is not the name of a column: write {named!r}{is_index}")


def _digits(text: str) -> str | None:
    """Return the index in ``fN`` or ``N``; None in anything else."""
    digits = text[1:] if text[:1] == "f" else text
    return digits if digits.isascii() and digits.isdigit() else None


def _is_column(source: Ensemble, word: str | int) -> bool:
    return word in source.feature_names or _digits(str(word)) is not None


def _grouped(ensemble: Ensemble, column: int) -> int:
    """Return the feature that is this single column of the model."""
    assert ensemble.encoding is not None
    name = ensemble.encoding.source.feature_names[column]
    feature = ensemble.encoding.feature_of(column)
    if ensemble.feature_names[feature] != name:
        raise QueryError(
            f"{name!r} is a column of the one-hot group {ensemble.feature_names[feature]!r}; name "
            "the group"
        )
    return feature


def _suggest(word: str, names: Sequence[str]) -> str:
    columns = [name for name in names if _begins_with(name, word)]
    if len(columns) > 1:
        return (
            f"if its {len(columns)} columns are one-hot, say so with "
            f"--one-hot (one_hot) '{word}={','.join(columns)}'"
        )
    if (meant := nearest(word, names)) is not None:
        return f"did you mean {meant!r}?"
    listed = ", ".join(repr(name) for name in names[:8])
    return f"the model has {listed}{', ...' if len(names) > 8 else ''}"


def _begins_with(name: str, word: str) -> bool:
    """Return whether a name is the word, followed by a separator and more."""
    rest = name[len(word) :]
    return bool(word) and name.startswith(word) and len(rest) > 1 and not rest[0].isalnum()


def parse_gap(gap: object) -> Fraction:
    """Return the gap as the exact value of its decimal text; a percentage is none of a margin."""
    if str(gap).strip().endswith("%"):
        raise QueryError(
            f"the gap {gap!r} is a percentage, but gaps are differences of the margin: write it as "
            "a number, or give --probability-gap (probability_gap) for percentage points of the "
            "predicted probability"
        )
    value = _parse_margin(gap, "gap")
    if value < 0:
        raise QueryError(f"the gap must not be negative, got {gap!r}")
    return value


@dataclass(frozen=True, slots=True)
class ProbabilityCutoff:
    """A cut-off that is given as a predicted probability."""

    probability: object

    def margin(self, ensemble: Ensemble) -> Fraction:
        """Return the margin with this probability, to 17 digits.

        Example:
            >>> from dataclasses import replace
            >>> from xcount.model.examples import figure_1
            >>> model = replace(figure_1(), task="binary", probability="sigmoid")
            >>> round(float(ProbabilityCutoff("0.3").margin(model)), 6)
            -0.847298
        """
        what = "probability of --cutoff-probability (cutoff_probability)"
        share = parse_probability(self.probability, what)
        margin = resolve_link(ensemble).margin_at(share, 17)
        if margin is None:
            raise QueryError(f"the {what} must lie between 0 and 1: no margin has {share}")
        return margin


def resolve_flip(
    ensemble: Ensemble,
    output: object = None,
    cutoff: object = None,
    direction: object = "any",
    from_probability: object = None,
) -> Flip:
    """Return a flip at the given cut-off, or of the model's own decision."""
    way = parse_direction(direction)
    if ensemble.n_outputs > 1:
        _refuse_flip_of_classes(ensemble, output, cutoff, way)
        return Flip(None, sureness=_resolve_sureness(ensemble, from_probability))
    resolve_output(ensemble, output)
    sureness = _resolve_sureness(ensemble, from_probability)
    if isinstance(cutoff, ProbabilityCutoff):
        return Flip(cutoff.margin(ensemble), False, way, sureness)
    if cutoff is not None:
        margin = _parse_margin(cutoff, "cut-off")
        _note_log_odds(ensemble, margin)
        return Flip(margin, False, way, sureness)
    decides_at, tie_is_above = _own_cutoff(ensemble)
    return Flip(decides_at, tie_is_above, way, sureness)


def _resolve_sureness(ensemble: Ensemble, from_probability: object) -> Sureness | None:
    """Return how sure the flipped decision must be; None if that does not matter."""
    if from_probability is None:
        return None
    least = parse_probability(
        from_probability, "probability of --from-probability (from_probability)"
    )
    return Sureness(least, resolve_link(ensemble))


def _refuse_flip_of_classes(
    ensemble: Ensemble, output: object, cutoff: object, direction: Direction
) -> None:
    """Reject options that do not apply to multiclass flips."""
    if ensemble.decision == "none":
        raise QueryError(
            f"this {ensemble.task} model has several outputs that are not classes: no single "
            "decision can flip; ask about a gap of one of them: --gap with --class (class_)"
        )
    if cutoff is not None:
        raise QueryError("the class with the largest sum wins; leave out the cut-off")
    if output is not None:
        raise QueryError("a flip is about all classes together; leave out --class (class_)")
    if direction != "any":
        raise QueryError(
            "a flip between several classes has no direction; leave out --direction, or ask about "
            "one class: --class (class_) with --gap or --probability-gap (probability_gap)"
        )


def _own_cutoff(ensemble: Ensemble) -> tuple[Fraction, bool]:
    """Return the cut-off of the model's own decision, and whether a tie is above."""
    decision = ensemble.decision
    if decision == "cutoff":
        return Fraction(ensemble.decides_at or 0.0), ensemble.tie_is_above
    if decision == "argmax":
        raise QueryError("this model has only one class: its decision never changes")
    if decision == "none":
        raise QueryError(
            f"a {ensemble.task} model makes no decision; pass --cutoff, the value at which yours "
            "changes"
        )
    raise QueryError(
        "the file does not say where the model decides (a dump has neither objective nor base "
        "score); pass --cutoff, or save the whole model"
    )


def _note_log_odds(ensemble: Ensemble, cutoff: Fraction) -> None:
    """Warn of a cut-off in log-odds that looks like a probability."""
    if ensemble.probability != "sigmoid" or not 0 < cutoff < 1:
        return
    stands_for = 1 / (1 + math.exp(-ensemble.slope * float(cutoff)))
    meant = -math.log(1 / float(cutoff) - 1) / ensemble.slope
    warnings.warn(
        f"the cut-off {float(cutoff):g} is a margin, in log-odds: it stands for a probability of "
        f"{stands_for:.2g}; a probability of {float(cutoff):g} is the cut-off {meant + 0.0:.4g}",
        QueryWarning,
        stacklevel=4,
    )


def _parse_margin(value: object, what: str) -> Fraction:
    try:
        number = exact_number(value)
    except (ValueError, ZeroDivisionError):
        raise QueryError(_no_number(value, what)) from None
    if abs(number) > MAX_GAP:
        raise QueryError(f"the {what} {value!r} is outside the range of any leaf value")
    return number


def _no_number(value: object, what: str) -> str:
    """Say what is wrong with a number."""
    if isinstance(value, list | tuple):
        return f"pass one {what}, not {value!r}; xcount.audit accepts several"
    try:
        is_finite = math.isfinite(plain_float(str(value)))
    except ValueError:
        return f"the {what} must be a number such as 0.5 or 1/2, not {value!r}"
    if not is_finite and not any(map(str.isdigit, str(value))):  # 1e999 is finite, but too large
        return f"the {what} must be a finite number, not {value!r}"
    return f"the {what} {value!r} is outside the range of any leaf value"


def parse_distance(distance: object) -> int | None:
    """Return the distance; None for ``"any"``."""
    if distance is None or str(distance).strip().lower() == "any":
        return None
    text = str(distance).strip()
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise QueryError(f"the distance must be a whole number >= 1 or 'any', not {distance!r}")
    return int(text)


def parse_precision(precision: object) -> int | None:
    """Return the number of decimals; None for ``"exact"``."""
    if precision is None or str(precision).strip().lower() == "exact":
        return None
    text = str(precision).strip()
    if not (text.isascii() and text.isdigit()) or int(text) > MAX_PRECISION:
        raise QueryError(
            f"the precision must be 'exact' or a number of decimals 0..{MAX_PRECISION}, "
            f"not {precision!r}"
        )
    return int(text)


def resolve_output(ensemble: Ensemble, output: object) -> int:
    """Return the index of the class asked about; it may be omitted if there is only one."""
    n_outputs = ensemble.n_outputs
    labels = ensemble.class_labels or ()
    if output is None:
        if n_outputs == 1:
            return 0
        listed = f" ({_listed(labels)})" if labels else ""
        what = ensemble.output_word
        raise QueryError(
            f"the model has {n_outputs} {what}{listed}; say which one with --class (class_)"
        )
    text = str(output).strip()
    if n_outputs > 1 and text in labels:
        return labels.index(text)
    if n_outputs == 1 and (ensemble.task == "binary" or len(labels) == 2):
        return _margin_of_class(text, labels)
    if text.isascii() and text.isdigit() and int(text) < n_outputs:
        return int(text)
    if n_outputs == 1:
        raise QueryError(
            f"unknown class {text!r}: the model has one margin; leave out --class (class_)"
        )
    known = _listed(labels) if labels else f"0..{n_outputs - 1}"
    raise QueryError(f"unknown class {text!r}; the {ensemble.output_word} are {known}")


def _margin_of_class(text: str, labels: Sequence[str]) -> int:
    """Return the index of a binary model's one margin, which is that of class 1.

    The index itself, 0, is accepted, too.
    """
    names = [*labels] if len(labels) == 2 else ["0", "1"]
    if text in (names[1], "0", "1"):
        return 0
    if text == names[0]:
        raise QueryError(
            f"the model's one margin is that of class {names[1]}, not of {text}: leave out --class "
            "(class_); where it rises, the other class falls (--direction)"
        )
    raise QueryError(f"unknown class {text!r}; the classes are {', '.join(names)}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
