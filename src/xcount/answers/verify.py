"""An exact count, counted again by the verified counter; and question files on their own."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcount.answers.result import CountResult
from xcount.counters.settings import MOST_JOBS, Settings
from xcount.counters.tally import Progress
from xcount.errors import QueryError, QueryWarning, QuestionFileError, VerificationError
from xcount.problem.problem import Problem
from xcount.support.files import write_atomically
from xcount.support.numerals import digits
from xcount.support.options import option, python_option, takes
from xcount.support.parse import n_bytes, seconds, whole_number
from xcount.support.record_check import misfit
from xcount.support.records import from_dict
from xcount.verified.counter import (
    VerifiedCount,
    VerifiedEstimate,
    verified_count,
    verified_count_of,
    verified_estimate,
)
from xcount.verified.question_file import question_text
from xcount.verified.samples import STREAM

if TYPE_CHECKING:
    from xcount.support.parse import Duration, Size

NOT_EXACT = "only an exact count can be verified, and this is an estimate"
_WORTH_SHARING_SECONDS = 1.0
"""A count that took less is counted again by one process."""
MOST_SAMPLES = 10**7
"""Most samples of an estimate: decided one by one, they are slow."""
NOT_IN_TIME = "the verified counter did not finish within the limits"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A count after the verified counter had its turn.

    Attributes:
        result: the count; ``verified`` is True if the verified counter found the same number.
        why_not: why it is not verified, if it is not.
    """

    result: CountResult
    why_not: str | None = None


def counted_again(
    problem: Problem,
    result: CountResult,
    *,
    seconds: float | None,
    memory_bytes: int | None,
    jobs: int = 1,
    on_wait: Callable[[float], None] | None = None,
) -> Attempt:
    """Count an exact count again.

    Raises:
        VerificationError: the two counters differ; the question is saved for a report.
    """
    if not result.exact:
        return Attempt(result, NOT_EXACT)
    try:
        text = question_text(problem)
    except QueryError as error:
        return Attempt(result, str(error))
    if seconds is not None and seconds <= 0:
        return Attempt(result, NOT_IN_TIME)
    found = verified_count_of(
        text, seconds=seconds, memory_bytes=memory_bytes, jobs=jobs, on_wait=on_wait
    )
    if found is None:
        return Attempt(result, NOT_IN_TIME)
    if found != result.count:
        raise VerificationError(
            f"the counters differ: {result.method} found {digits(result.count or 0)} sensitive "
            f"regions for {' + '.join(result.sensitive)}, the verified counter {digits(found)}; "
            f"please report this with the question in {_saved(text)}"
        )
    return Attempt(replace(result, verified=True, question=text))


def _saved(text: str) -> Path:
    """Save a question in the present folder, or in a temporary one, and return its path."""
    name = f"xcount-{hashlib.sha256(text.encode()).hexdigest()[:12]}.question"
    folders = (Path.cwd(), Path(tempfile.gettempdir()))
    path = next((f / name for f in folders if os.access(f, os.W_OK)), folders[-1] / name)
    write_atomically(path, text)
    return path


def verified_result(problem: Problem, result: CountResult, settings: Settings) -> CountResult:
    """Return a count after the verified counter had its turn; warn if it is not verified."""

    def report(passed: float) -> None:
        message = f"counting again with the verified counter, {passed:.0f} s"
        settings.report(Progress(1.0, result.low, result.high, message))

    try:
        attempt = counted_again(
            problem,
            result,
            seconds=settings.seconds_left(),
            memory_bytes=settings.memory_bytes,
            jobs=settings.n_threads if result.seconds > _WORTH_SHARING_SECONDS else 1,
            on_wait=report,
        )
    except KeyboardInterrupt:
        attempt = Attempt(result, "it was interrupted")
    if attempt.why_not is not None:
        warn_not_verified([attempt.why_not], 1)
    return attempt.result


def warn_not_verified(reasons: Iterable[str], n_counts: int) -> None:
    """Warn of counts that are not verified, with their reasons."""
    listed = list(reasons)
    if not listed:
        return
    distinct = dict.fromkeys(listed)
    which = "not verified" if n_counts == 1 else f"{len(listed)} of {n_counts} counts not verified"
    said = "; ".join(
        reason if n_counts == 1 else f"{reason} ({listed.count(reason)})" for reason in distinct
    )
    warnings.warn(f"{which}: {said}", QueryWarning, stacklevel=3)


@dataclass(frozen=True, kw_only=True, eq=False)
class VerifyOptions:
    """The options of ``xcount verify``."""

    model: str | os.PathLike[str] | None = field(
        default=None,
        metadata=option(
            "Also check that the question is about this model file.",
            "a model file, to check that the question is about it.",
            metavar="FILE",
        ),
    )
    timeout: Duration | None = field(
        default=None,
        metadata=option(
            "Give up after this long: 60s, 5m, 1h.",
            'when to give up: seconds, or ``"60s"``, ``"5m"``.',
            metavar="DURATION",
        ),
    )
    memory: Size | None = field(
        default=None,
        metadata=option(
            "Give up at this much memory: 4GB, 500MB, 1GiB.",
            'at how much memory to give up: bytes, or ``"4GB"``.',
            metavar="SIZE",
        ),
    )
    jobs: int = field(
        default=1,
        metadata=option(
            "Share the cells of the sensitive features out among N processes; 0 for all cores.",
            "among how many processes the cells of the sensitive features are shared out; 0 for "
            "all cores.",
            metavar="N",
            least=0,
            most=MOST_JOBS,
        ),
    )
    samples: int | None = field(
        default=None,
        metadata=option(
            "Estimate from N random regions, each decided by the proved program, instead of "
            "counting.",
            "how many random regions to decide, for an estimate instead of the count.",
            metavar="N",
            least=1,
            most=MOST_SAMPLES,
        ),
    )
    seed: int = field(
        default=0,
        metadata=option(
            "With --samples: the seed that the regions follow from.",
            "the seed that the regions of ``samples`` follow from.",
            metavar="N",
            least=0,
        ),
    )
    transcript: str | os.PathLike[str] | None = field(
        default=None,
        metadata=option(
            "Repeat the estimate of an earlier `verify --samples N --json`, kept in FILE; a "
            "difference is an error.",
            "the JSON of an earlier estimate, to repeat it; a difference is an error.",
            metavar="FILE",
        ),
    )
    trust_pickle: bool = field(
        default=False,
        metadata=option(
            "With --model: read pickle and joblib files. They can run arbitrary code: use only "
            "files from a source you trust.",
            "whether a pickle or joblib file may be opened: it can run arbitrary code.",
        ),
    )
    on_progress: Callable[[Progress], None] | None = field(
        default=None,
        metadata=python_option("called a few times a second; what it raises ends the count."),
    )


@takes(VerifyOptions)
def verify(question: Any, options: VerifyOptions) -> VerifiedCount:
    """Count a question file with the verified counter.

    Args:
        question: a file that ``count`` wrote with its option ``question``.
        options: limits, and a model to compare with.

    Raises:
        QuestionFileError: the file is no question.
        VerificationError: the question is not about the model.

    Example:
        >>> import tempfile, xcount
        >>> from xcount.model.examples import figure_1
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/f0.question"
        ...     counted = xcount.count(figure_1(), sensitive="f0", gap=80, question=path)
        ...     verified = xcount.verify(path)
        >>> counted.count, verified.count, verified.verified
        (2, 2, True)
    """
    limit = None if options.timeout is None else seconds(options.timeout, "--timeout")
    memory = None if options.memory is None else n_bytes(options.memory, "--memory")
    listener = options.on_progress

    def report(passed: float) -> None:
        if listener is not None:
            listener(Progress(1.0, 0, 0, f"counting with the verified counter, {passed:.0f} s"))

    found = None
    if options.model is not None:
        from xcount.verified.model_check import check_model

        found = check_model(question, options.model, options.trust_pickle)
    if options.samples is not None or options.transcript is not None:
        result = _estimated(question, options, seconds=limit, memory_bytes=memory, on_wait=report)
    else:
        jobs = whole_number(options.jobs, "number of jobs", MOST_JOBS) or os.cpu_count() or 1
        result = verified_count(
            question, seconds=limit, memory_bytes=memory, jobs=jobs, on_wait=report
        )
    return replace(result, model_check=found)


def _estimated(question: Any, options: VerifyOptions, **limits: Any) -> VerifiedCount:
    """Estimate, or repeat an estimate and compare.

    Raises:
        VerificationError: the transcript says something else.
    """
    told = None if options.transcript is None else _transcript(options.transcript)
    if told is not None and options.samples is not None:
        raise QueryError("a transcript has its own number of samples, so give none")
    if told is None:
        n_samples = max(1, whole_number(options.samples, "number of samples", MOST_SAMPLES))
        seed = whole_number(options.seed, "seed")
    else:
        n_samples, seed = told.n_samples, told.seed
    result = verified_estimate(question, n_samples=n_samples, seed=seed, **limits)
    if told is not None and result.estimate is not None and result.estimate != told:
        differ = [
            f"{name} {getattr(told, name)!s:.40} there, {getattr(result.estimate, name)!s:.40} here"
            for name in ("n_sensitive", "low", "high", "total", "outcomes")
            if getattr(told, name) != getattr(result.estimate, name)
        ]
        raise VerificationError(
            f"{options.transcript}: the transcript does not fit the question: {'; '.join(differ)}"
        )
    return result


def _transcript(path: str | os.PathLike[str]) -> VerifiedEstimate:
    """Read the estimate of an earlier run.

    Raises:
        QuestionFileError: the file holds none.
    """
    wrong = f"{os.fspath(path)}: no transcript; xcount verify --samples N --json writes one"
    try:
        data = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise QuestionFileError(wrong) from error
    told = data.get("estimate") if isinstance(data, dict) else None
    if not isinstance(told, dict) or misfit(told, VerifiedEstimate):
        raise QuestionFileError(wrong)
    estimate = from_dict(VerifiedEstimate, told)
    if estimate.stream != STREAM or estimate.n_samples > MOST_SAMPLES:
        raise QuestionFileError(wrong)
    return estimate
