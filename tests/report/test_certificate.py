"""What a certificate claims, and how sure it says that is."""

from __future__ import annotations

import csv
from dataclasses import replace

from report.samples import Page, audit_of, count_of, measured, ordinary, shown
from xcount.answers.result import CountResult
from xcount.counters.tally import StopReason
from xcount.report import csv_report, html_report, markdown_report
from xcount.report.batch_text import audit_tables
from xcount.report.sentences import certificate
from xcount.report.text import count_tables


def test_the_certificate_tells_exact_from_estimated() -> None:
    """Each kind of count is claimed for what it is."""
    said = " ".join(certificate(ordinary()))
    assert "18 of the 24 counts are exact" in said
    assert "6 of the 24 counts are partly or wholly estimated" in said
    assert "all of them hold at once with probability at least 40%" in said.lower()
    only_exact = audit_of([count_of("a", "1", 5)])
    assert "estimated" not in " ".join(certificate(only_exact))
    bounded = audit_of([replace(count_of("a", "1", 5, low=4, high=6), confidence=1.0)])
    assert "guaranteed to lie between" in " ".join(certificate(bounded))
    assert "not a share of people" in said
    assert "raw score" in said
    decided = replace(count_of("a", "1", 50, low=40, high=60), stop_reason=StopReason.DECIDED)
    assert "as soon as the verdict was certain" in " ".join(certificate(audit_of([decided])))
    votes = " ".join(certificate(replace(ordinary(), margin="probability")))
    assert "change the model's predicted probability" in votes


def weighed(name: str, judge: str = "rows") -> CountResult:
    """Return a sampled count with exact rows and a sampled population."""
    measures = {
        "rows": measured("rows", 0.01),
        "population": measured("population", 0.02, 0.01, 0.03),
    }
    result = count_of(name, "1", 50, low=40, high=60, max_share=0.5)
    return replace(result, judge=judge, measures=measures)


def test_the_certificate_begins_with_what_is_judged() -> None:
    """Judged by exact rows, the verdict is certain, whatever is sampled beside it."""
    audit = audit_of([weighed(name) for name in ("a", "b", "c")])
    paragraphs = certificate(audit)
    assert paragraphs[1].startswith(
        "Limits apply to the share of the rows, not to the share of the regions. All 3 shares of "
        "the rows are exact: every row was checked"
    )
    assert "estimated" not in paragraphs[1]
    assert paragraphs[2].startswith(
        "The other numbers decide nothing here. All 3 counts of regions are partly"
    )
    assert "All 3 shares of the population are partly or wholly estimated" in paragraphs[2]
    assert paragraphs[2].count("at once with probability at least 70%") == 2
    assert paragraphs[3] == (
        "All intervals of the regions and of the population hold at once with "
        "probability at least 40%."
    )
    exact = "3 of 3 shares of the rows; 0 of 3 counts of regions; 0 of 3 shares of the population"
    assert exact in Page(html_report(audit)).text


def test_the_certificate_claims_no_more_than_the_intervals_do() -> None:
    """Probabilities are never rounded up, and nothing is claimed where they add up to nothing."""
    audit = audit_of([weighed(f"f{i}", "population") for i in range(6)])
    said = certificate(audit)
    assert said[1].startswith("Limits apply to the share of the population")
    assert "All of them hold at once with probability at least 40%" in said[1]
    assert "No joint confidence is claimed" in said[3]
    sure = replace(weighed("a", "regions"), confidence=0.9996)
    said = certificate(audit_of([sure]))
    assert "Limits apply to the share of the regions, not to the share of people." in said[1]
    assert "with probability at least 99.9%" in said[1]


def test_every_output_says_what_the_time_limit_cut_short() -> None:
    """Another machine may answer otherwise: in the terminal, pages, CSV, a notebook and JSON."""
    cut = replace(count_of("a", "1", 50, low=40, high=60), details={"exact_cut_short": True})
    other = {"rows": measured("rows", 0.01)}
    weight = replace(measured("population", 0.02, 0.01, 0.03), details={"samples_cut_short": True})
    both = replace(cut, measures={**other, "population": weight})
    assert (cut.cut_short, both.cut_short) == (("exact",), ("exact", "samples"))
    audit = audit_of([cut, count_of("b", "1", 5)])
    sentence = "1 of the 2 counts depends on the speed of the machine: the time limit cut exact"
    for text in (shown(*audit_tables(audit)), html_report(audit), markdown_report(audit)):
        assert sentence in " ".join(text.split())
    assert "the time limit cut exact counting and trial samples short" in " ".join(
        shown(*count_tables(both)).replace("│", " ").split()
    )
    assert "the time limit cut exact counting short" in cut._repr_html_()
    lines = list(csv.DictReader(csv_report(audit).splitlines()))
    assert [line["cut_short"] for line in lines] == ["exact", ""]
    assert CountResult.from_dict(both.to_dict()).cut_short == both.cut_short
    calm = audit_of([count_of("b", "1", 5)])
    assert "speed of the machine" not in html_report(calm) + markdown_report(calm)
