"""The options of ``count``, ``audit``, ``compare``, ``witnesses`` and of the commands.

Each option is declared here, or next to the only function that has it: name, type, default, the
help text of the command line and the meaning in Python (:mod:`xcount.support.options`). The options
class of a function combines these groups; the fields of the last group come first.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xcount.counters import counter
from xcount.counters.settings import LEAST_DELTA, LEAST_MEMORY_BYTES, Settings
from xcount.errors import QueryError, UnknownFeatureError
from xcount.measures.measured import REGIONS, measures_meant
from xcount.model.ensemble import Ensemble
from xcount.question.domain import Domain, DomainLike, OneHot, Words
from xcount.question.grid import Missing
from xcount.question.query import ProbabilityCutoff, Query
from xcount.support.options import option
from xcount.support.parse import n_bytes, open_share, seconds, whole_number

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy import Cluster as DaskCluster

    from xcount.measures.population import Population
    from xcount.measures.weighting import Weighing
    from xcount.question.grid import Grid
    from xcount.support.parse import Duration, Number, Size

METHODS = ("auto", "exact", "sample", "brute")
PAPER_METHODS = (
    "xcount",
    "xcount-sum-first",
    "xcount-exact-union",
    "add-baseline",
    "add-baseline-plain",
    "cnf-ganak",
    "cnf-approxmc",
    "subproblems-cnf",
)
MEASURES = ("regions", "volume", "marginals", "rows", "population")
MOST_WITNESSES = 1_000_000
"""Most pairs that may be requested."""
LARGEST_SEED = 2**63 - 1

STOP_HELP = "Stop after this long, including reading the model, and report the bounds found so far"
STOP_EACH_HELP = (
    "Stop each count after this long, not including reading the model, and report the bounds "
    "found so far"
)
GIVE_UP_HELP = "Give up after this long, including reading the model"
_DURATIONS = ": 60s, 5m, 1h."


@dataclass(frozen=True, kw_only=True, eq=False)
class TrustOption:
    """Whether files that can run code may be opened."""

    trust_pickle: bool = field(
        default=False,
        metadata=option(
            "Read pickle and joblib files. They can run arbitrary code: use only files from a "
            "source you trust.",
            "whether a pickle or joblib file may be opened: it can run arbitrary code.",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class FlipOptions:
    """A change of the decision."""

    flip: bool = field(
        default=False,
        metadata=option(
            "Count changes of the decision instead of changes by more than a gap. With one "
            "margin, the decision is whether it is above the cut-off (a tie counts as below, "
            "unless the model itself decides otherwise); with several classes, which one wins (in "
            "a tie, the first).",
            "count changes of the decision instead of changes by more than a gap.",
        ),
    )
    cutoff: object = field(
        default=None,
        metadata=option(
            "The margin at which the decision changes. Default: the model's own (0 for log-odds, "
            "0.5 for a forest's votes).",
            "the margin at which the decision changes; the model's own unless given.",
            metavar="T",
        ),
    )
    cutoff_probability: object = field(
        default=None,
        metadata=option(
            "The same as a predicted probability: the decision is whether it is above P.",
            "the same as a predicted probability: the decision is whether it is above this.",
            metavar="P",
        ),
    )
    from_probability: object = field(
        default=None,
        metadata=option(
            "With --flip: count only flips of decisions made with a probability of at least P.",
            "with ``flip``: count only flips of decisions made with at least this probability.",
            metavar="P",
        ),
    )

    @property
    def decided_at(self) -> object:
        """Where the decision changes; None for the model's own cut-off."""
        if self.cutoff_probability is None:
            return self.cutoff
        if self.cutoff is not None:
            raise QueryError(
                "give either --cutoff or --cutoff-probability (cutoff_probability), not both"
            )
        return ProbabilityCutoff(self.cutoff_probability)


@dataclass(frozen=True, kw_only=True, eq=False)
class DirectionOption:
    """Whether the output rises or falls."""

    direction: str = field(
        default="any",
        metadata=option(
            "Only changes that raise (up) or lower (down) the margin, the probability or the "
            "decision.",
            '``"up"`` or ``"down"`` if only changes count that raise or lower the margin, the '
            "probability or the decision.",
            choices=("up", "down", "any"),
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class PrecisionOption:
    """How exactly leaves are added."""

    precision: int | str | None = field(
        default="exact",
        metadata=option(
            "Use leaf values as stored, or rounded to N decimals.",
            'decimals that leaves are rounded to, or ``"exact"``.',
            metavar="exact|N",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassOption:
    """Which output of several."""

    class_: int | str | None = field(
        default=None,
        metadata=option(
            "The class to ask about, for a model with several.",
            "the class to ask about, for a model with several.",
            flag="--class",
            metavar="K",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangeOptions(ClassOption, PrecisionOption, DirectionOption, FlipOptions):
    """What makes two outputs differ, other than a gap."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DomainOptions:
    """Which regions exist."""

    missing: Missing = field(
        default="auto",
        metadata=option(
            "Where missing values have a cell of their own: for features that the data lacks "
            "values of, as a place to start from ('auto'); for all features that can be missing, "
            "also as a place to change to ('cell'); nowhere ('none').",
            'where missing values have a cell of their own: ``"auto"`` for features that the data '
            'lacks values of, as a place to start from; ``"cell"`` for all that can be missing, '
            'also as a place to change to; ``"none"`` nowhere.',
            choices=("auto", "cell", "none"),
        ),
    )
    one_hot: OneHot = field(
        default=(),
        metadata=option(
            "Columns of which exactly one is 1: they are one feature, NAME, with a category per "
            "column. End the list with +none if all of them may be 0. May be repeated.",
            'columns of which exactly one is 1: ``{"race": ["race_White", "race_Black"]}``, '
            "or text ``race=race_White,race_Black``; with ``+none`` if all may be 0.",
            metavar="NAME=COL,COL,...",
            repeated="list",
        ),
    )
    where: Words = field(
        default=(),
        metadata=option(
            "Keep only regions that satisfy a condition: 'age >= 25', '25 <= age < 65', 'sex == "
            "Male', 'race in {White, Black}', 'age is missing'. May be repeated.",
            "conditions that every region fulfils, such as ``25 <= age < 65``.",
            metavar="COND",
            repeated="list",
        ),
    )
    where_from: Words = field(
        default=(),
        metadata=option(
            "Ask only about regions, rows and people that satisfy a condition; they may change to "
            "others: 'age >= 62'. May be repeated.",
            "conditions on the regions that changes start from: only those are asked about.",
            metavar="COND",
            repeated="list",
        ),
    )
    where_to: Words = field(
        default=(),
        metadata=option(
            "Count only changes that lead to a region that satisfies a condition: 'age < 62'. "
            "May be repeated.",
            "conditions on the regions that changes lead to.",
            metavar="COND",
            repeated="list",
        ),
    )
    along: Words = field(
        default=(),
        metadata=option(
            "Exchange values of another feature whenever a sensitive feature changes: "
            "'relationship: Husband <-> Wife'. Separate several pairs by commas. May be repeated.",
            "values of features that are not sensitive, exchanged whenever a sensitive feature "
            "changes: ``relationship: Husband <-> Wife``.",
            metavar="'NAME: VALUE <-> VALUE'",
            repeated="list",
        ),
    )
    rule: Words = field(
        default=(),
        metadata=option(
            "Leave out regions in which the first condition holds and the second does not. "
            "May be repeated.",
            "rules ``COND -> COND`` that every region keeps.",
            metavar="'COND -> COND'",
            repeated="list",
        ),
    )
    unknown: bool = field(
        default=False,
        metadata=option(
            "Let values change to categories that the model does not know, such as CatBoost's "
            "(other).",
            "whether values may change to categories that the model does not know, such as "
            "CatBoost's ``(other)``.",
        ),
    )
    domain: DomainLike = field(
        default=None,
        metadata=option(
            "Read one-hot groups, conditions and rules from a TOML file (xcount inspect "
            "--domain-template writes one).",
            "which regions exist: a :class:`~xcount.question.domain.Domain`, a TOML file, or a "
            "mapping with the same words.",
            metavar="FILE",
        ),
    )

    def regions(self) -> Domain:
        """Return the domain: which regions exist."""
        return Domain.of(
            self.domain,
            one_hot=self.one_hot,
            where=self.where,
            rule=self.rule,
            unknown=self.unknown,
            where_from=self.where_from,
            where_to=self.where_to,
            along=self.along,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SensitiveOption:
    """The features that change."""

    sensitive: str | int | Iterable[str | int] = field(
        metadata=option(
            "The sensitive features: names, fN or indices, separated by commas.",
            "the features that change, by name or index; text may list several with commas.",
            metavar="NAMES",
            repeated="list",
            is_required=True,
        )
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class GapOptions:
    """By how much outputs must differ."""

    gap: object = field(
        default=None,
        metadata=option(
            "Count changes of the margin by more than G (a decimal number).",
            'how much the margin must change: 0.5, ``"0.5"`` or ``"1/2"``; text is taken as it is '
            "written.",
            metavar="G",
        ),
    )
    probability_gap: object = field(
        default=None,
        metadata=option(
            "Count changes of the predicted probability by more than P (such as 0.1) instead.",
            "how much the predicted probability must change instead.",
            metavar="P",
        ),
    )

    @property
    def has_gap(self) -> bool:
        """Whether a gap of some kind is given."""
        return self.gap is not None or self.probability_gap is not None


NO_CHANGE = (
    "no gap given; give --gap or --probability-gap (probability_gap), or --flip to ask about the "
    "decision"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class DistanceOption:
    """How far the sensitive features may move."""

    distance: int | str | None = field(
        default="any",
        metadata=option(
            "How many cells the sensitive features may move in total.",
            'how many cells the sensitive features may move in total, or ``"any"``.',
            metavar="N|any",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class OneQuestion(DistanceOption, GapOptions, SensitiveOption):
    """One question: features, a gap, a distance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionOptions(DomainOptions, ChangeOptions, OneQuestion):
    """One question about one model."""

    def check_change(self) -> None:
        """Reject a question without a change, before a large model is read."""
        if not (self.has_gap or self.flip):
            raise QueryError(NO_CHANGE)

    def query(self, ensemble: Ensemble) -> Query:
        """Return the question about a model."""
        return Query.of(
            ensemble,
            self.sensitive,
            self.gap,
            distance=self.distance,
            class_=self.class_,
            precision=self.precision,
            probability_gap=self.probability_gap,
            flip=self.flip,
            cutoff=self.decided_at,
            from_probability=self.from_probability,
            direction=self.direction,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LimitOptions:
    """The seed, and when to stop."""

    seed: int = field(
        default=0,
        metadata=option(
            "Seed for all random choices.",
            "seed for all random choices.",
            metavar="N",
            least=0,
            most=LARGEST_SEED,
        ),
    )
    timeout: Duration | None = field(
        default=None,
        metadata=option(
            STOP_HELP + _DURATIONS,
            'when to stop, with the bounds found so far: seconds, or ``"60s"``, ``"5m"``; reading '
            "the model counts, too.",
            metavar="DURATION",
        ),
    )
    memory: Size | None = field(
        default=None,
        metadata=option(
            "Stop at this much memory and report the bounds found so far: 4GB, 500MB, 1GiB.",
            'at how much memory to stop: bytes, or ``"4GB"``.',
            metavar="SIZE",
        ),
    )
    jobs: int = field(
        default=0,
        metadata=option(
            "Number of threads.",
            "number of threads; 0 for all cores.",
            metavar="N",
            least=0,
            shown_default="all cores",
        ),
    )

    def settings(self, **more: Any) -> Settings:
        """Return the settings of a run; the clock of its time limit starts now."""
        memory_bytes = None if self.memory is None else n_bytes(self.memory, "--memory")
        if memory_bytes is not None and memory_bytes < LEAST_MEMORY_BYTES:
            raise QueryError(
                f"--memory is {memory_bytes:,} bytes, too few to count anything with; give it with "
                "its unit, as in 4GB"
            )
        return Settings(
            seed=whole_number(self.seed, "seed"),
            timeout_seconds=None if self.timeout is None else seconds(self.timeout, "--timeout"),
            memory_bytes=memory_bytes,
            jobs=self.jobs,
            **more,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class CountingOptions(LimitOptions):
    """How to count, how accurately, and when to stop."""

    method: str = field(
        default="auto",
        metadata=option(
            f"How to count: {', '.join(METHODS)}; or by the paper's algorithms: "
            f"{', '.join(PAPER_METHODS)}.",
            "how to count, as in ``--method``.",
            metavar="NAME",
        ),
    )
    epsilon: Number = field(
        default=0.1,
        metadata=option(
            "Relative error allowed in an estimate.",
            "relative error allowed in an estimate.",
            metavar="X",
        ),
    )
    delta: Number = field(
        default=0.1,
        metadata=option(
            "Allowed probability that an interval is wrong.",
            "allowed probability that an interval is wrong.",
            metavar="X",
        ),
    )

    def settings(self, **more: Any) -> Settings:
        """Return the settings of a count; the clock of its time limit starts now."""
        counter(self.method)  # reject an unknown method before reading a large model
        delta = open_share(self.delta, "--delta")
        if delta < LEAST_DELTA:
            raise QueryError(f"--delta must be at least {LEAST_DELTA:g}, not {self.delta!r}")
        return super().settings(epsilon=open_share(self.epsilon, "--epsilon"), delta=delta, **more)


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasureOptions:
    """The measures that weigh sensitive regions."""

    judge: str = field(
        default=REGIONS,
        metadata=option(
            "The measure that limits apply to and features are ranked by: regions, volume, "
            "marginals, rows or population. Need not be named by --measure.",
            "the measure that limits apply to and features are ranked by: ``regions``, or one of "
            "``measures``, which it then belongs to.",
            metavar="MEASURE",
            choices=MEASURES,
        ),
    )
    measures: str | Iterable[str] = field(
        default=(),
        metadata=option(
            "Also weigh the sensitive regions by volume, marginals, rows or population; repeat "
            "it, or separate them by commas. The count itself is 'regions'.",
            "other weights of the same regions: ``volume``, ``marginals``, ``rows``, "
            "``population`` (see :mod:`xcount.measures.measure`).",
            flag="--measure",
            metavar="NAMES",
            repeated="list",
        ),
    )
    data: Any = field(
        default=None,
        metadata=option(
            "CSV or Parquet file with a column per feature: for rows, marginals, population, and "
            "the bounds of a volume. Without --measure and --judge, its rows are counted.",
            "the table that the measures need; without ``measures`` and ``judge``, it asks for "
            "``rows``.",
            metavar="FILE",
        ),
    )
    population: Population | str | os.PathLike[str] | None = field(
        default=None,
        metadata=option(
            "A fitted population to weigh by. If the file does not exist, a population is fitted "
            "to the data and saved there.",
            "a fitted population, or its file, instead of one that is fitted to the data; a file "
            "that does not exist yet is written.",
            metavar="FILE",
        ),
    )
    bounds: Mapping[str, tuple[float, float]] | str | None = field(
        default=None,
        metadata=option(
            "Bounds of a volume; repeat it, or separate them by commas. Default: the smallest and "
            "largest values in the data.",
            "the bounds of a volume; the smallest and largest values in the data unless given.",
            metavar="NAME=LOW:HIGH,...",
            repeated="text",
        ),
    )

    groups: Words = field(
        default=(),
        metadata=option(
            "A column of the data, which the model need not have: compare the rates of the "
            "favourable decision and the shares of sensitive rows between its groups. Repeat it "
            "for several columns and the combinations of their groups.",
            "columns of ``data``, which the model need not have: rates of the favourable decision "
            "and shares of sensitive rows by their groups, and by the combinations of all of them.",
            flag="--group",
            metavar="COLUMN",
            repeated="list",
        ),
    )
    favourable: str | None = field(
        default=None,
        metadata=option(
            "With --explain or --group: the decision whose rates are compared between groups: a "
            "class, or above or below the cut-off. Default: above, or the class given by --class.",
            "with ``explain`` or ``groups``: the decision whose rates are compared between groups: "
            "a class, or ``above`` or ``below`` for a side of the cut-off; above unless given.",
            metavar="CLASS",
        ),
    )

    def measure_names(self) -> tuple[str, ...]:
        """Return the requested measures; default to the measure implied by the data.

        Groups are groups of rows, so they ask for ``rows``, too.
        """
        given = (self.data, self.bounds, self.population)
        names = measures_meant(self.measures, self.judge, *given)
        if not self.groups:
            return names
        if self.data is None:
            raise QueryError("--group (groups) names columns of a table; give it with --data FILE")
        return names if "rows" in names else (*names, "rows")

    @contextmanager
    def knowing_columns(self) -> Iterator[None]:
        """Tell columns of the data that the model does not use from typos, in messages.

        Raises:
            QueryError: a column of the data is not a feature of the model.
        """
        try:
            yield
        except UnknownFeatureError as error:
            if self.data is None:
                raise
            from xcount.model.tables import column_names

            if error.name not in column_names(self.data):
                raise
            raise QueryError(
                f"{error.name!r} is not a feature of the model, so changing it changes nothing; "
                "name it with --group (groups) to see how its groups fare"
            ) from None

    def weighing(self, ensemble: Ensemble, settings: Settings) -> Weighing | None:
        """Return the weighing of a model's regions; None if only counted.

        Its data is read within the time of the settings.
        """
        names = self.measure_names()
        if not names and self.judge == REGIONS:
            return None
        from xcount.measures.shares import weighing_of

        given = (self.data, self.bounds, self.population)
        return weighing_of(
            ensemble, self.judge, names, *given, settings, self.groups, self.favourable
        )


def missing_in(weighing: Weighing | None) -> Collection[str]:
    """Return the names of the features that the data of a weighing lacks values of."""
    return () if weighing is None else weighing.missing_in


def fitted(weighing: Weighing | None, grid: Grid, settings: Settings) -> Weighing | None:
    """Return a weighing with its population; if needed, fit one to the data now."""
    if weighing is None:
        return None
    from xcount.measures.shares import with_population

    return with_population(weighing, grid, settings)


EXPLAIN_HELP = (
    "Also say who is affected and by how much: the direction, mean and quantiles of the change, "
    "the share for other gaps, where the changes are, and how often each group gets the "
    "favourable decision."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplainOptions(MeasureOptions):
    """Who is affected, in which direction and by how much."""

    explain: bool = field(
        default=False,
        metadata=option(
            EXPLAIN_HELP,
            "whether to say who is affected, in which direction and by how much: the result's "
            "``explanation`` (see :mod:`xcount.answers.explanation`).",
        ),
    )


@dataclass(frozen=True, slots=True)
class SecureScheduler:
    """The address of a Dask scheduler that speaks TLS, and the files that identify both sides."""

    address: str
    ca_file: str
    cert: str
    key: str | None


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterOption:
    """Where to count."""

    cluster: str | Client | DaskCluster | None = field(
        default=None,
        metadata=option(
            "Count on a Dask cluster, given the address of its scheduler: tcp://scheduler:8786, or "
            "tls://scheduler:8786 with the three options below.",
            "a Dask scheduler's address, client or cluster to count on; ``jobs`` are then the "
            "threads of each unit of work.",
            metavar="ADDRESS",
        ),
    )
    tls_ca_file: str | None = field(
        default=None,
        metadata=option(
            "With --cluster tls://...: the certificate of the authority that signed the "
            "cluster's certificates (PEM).",
            "for an address ``tls://...``: the file with the certificate of the authority that "
            "signed the cluster's certificates (PEM).",
            metavar="FILE",
        ),
    )
    tls_cert: str | None = field(
        default=None,
        metadata=option(
            "With --cluster tls://...: your certificate, signed by that authority (PEM).",
            "the file with your certificate, signed by that authority (PEM).",
            metavar="FILE",
        ),
    )
    tls_key: str | None = field(
        default=None,
        metadata=option(
            "With --cluster tls://...: the key of your certificate (PEM), if it is not in the "
            "certificate's file.",
            "the file with the key of your certificate (PEM), if it is not in the certificate's "
            "file.",
            metavar="FILE",
        ),
    )

    def workers(self) -> str | SecureScheduler | Client | DaskCluster | None:
        """Return where to count; None for this process."""
        files = {
            "--tls-ca-file (tls_ca_file)": self.tls_ca_file,
            "--tls-cert (tls_cert)": self.tls_cert,
            "--tls-key (tls_key)": self.tls_key,
        }
        given = [name for name, file in files.items() if file is not None]
        if not given:
            return self.cluster
        if not (isinstance(self.cluster, str) and self.cluster.startswith("tls://")):
            raise QueryError(f"{given[0]} is for an encrypted cluster: --cluster tls://HOST:PORT")
        if self.tls_ca_file is None or self.tls_cert is None:
            missing = next(name for name, file in files.items() if file is None)
            raise QueryError(f"{given[0]} needs {missing}, too: both sides show a certificate")
        return SecureScheduler(self.cluster, self.tls_ca_file, self.tls_cert, self.tls_key)
