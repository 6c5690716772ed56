"""A self-contained page: style and script inside, allowed by their hashes and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from xcount.answers.result import Verdict
from xcount.report.markup import Child, Markup, element, joined, trusted

BADGES = {
    Verdict.PASS: ("pass", "✓", "PASS"),
    Verdict.FAIL: ("fail", "✗", "FAIL"),
    Verdict.UNDECIDED: ("undecided", "?", "UNDECIDED"),
    None: ("none", "i", "NO LIMIT SET"),
}


def page(title: str, body: Markup, n_tabs: int = 0, *, can_count: bool = False) -> str:
    """Return a page with our style and script around a body.

    Args:
        title: its title.
        body: its content.
        n_tabs: how many panels its tabs have.
        can_count: whether it carries the verified counter, which runs in a worker.
    """
    style, script = _part("page.css") + _tab_rules(n_tabs), _part("page.js")
    script += _part("verify.js") if can_count else ""
    # No source but these two texts: what a name brings with it neither runs nor restyles the page.
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        f"{'worker-src blob:; ' if can_count else ''}"
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = joined(
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("style", trusted(style)),
    )
    content = joined(body, element("script", trusted(script)))
    return "<!doctype html>\n" + element(
        "html", element("head", head), element("body", content), lang="en"
    )


def _part(name: str) -> str:
    return files("xcount.report.page").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _tab_rules(n_tabs: int) -> str:
    """Return the rules that show one panel at a time, without a script."""
    return "".join(
        f".tabs>input:nth-of-type({k}):checked~section:nth-of-type({k}){{display:block}}"
        f".tabs>input:nth-of-type({k}):checked~.tablist label:nth-of-type({k}){{"
        "background:var(--accent);color:var(--on-accent);border-color:var(--accent)}"
        f".tabs>input:nth-of-type({k}):focus-visible~.tablist label:nth-of-type({k}){{"
        "outline:3px solid var(--focus);outline-offset:2px}"
        for k in range(1, n_tabs + 1)
    )


def tabs(labels: Sequence[str], bodies: Sequence[Markup]) -> Markup:
    """Return sections of which one is shown at a time, without a script."""
    inputs, marks = [], []
    for index, label in enumerate(labels):
        key = f"panel-{index}"
        inputs.append(
            element(
                "input", type="radio", name="panel", id=key, checked=index == 0, aria_label=label
            )
        )
        marks.append(element("label", label, for_=key))
    tablist = element("div", marks, class_="tablist") if len(labels) > 1 else None
    return element("div", inputs, tablist, bodies, class_="tabs")


def unbroken_units(text: str) -> str:
    """Return text in which no line ends between a number and its per cent sign."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def answer_card(verdict: Verdict | None, headline: str, *below: Child) -> Markup:
    """Return the card on top of a page: the verdict, the answer in one line, what follows it."""
    kind, symbol, word = BADGES[verdict]
    badge = element(
        "p",
        element("span", symbol, class_="symbol", aria_hidden="true"),
        element("strong", word, id="verdict"),
        class_="badge",
    )
    return element(
        "section",
        badge,
        element("h2", unbroken_units(headline)),
        below,
        id="answer",
        class_=f"verdict {kind}",
        aria_label="The answer",
    )


def toolbar(has_verdicts: bool) -> Markup:
    """Return the search field, which only a script can serve: hidden until there is one."""
    choice: Child = None
    if has_verdicts:
        options = (
            element("option", text, value=value)
            for value, text in (
                ("", "all verdicts"),
                ("FAIL", "above the limit"),
                ("UNDECIDED", "undecided"),
                ("PASS", "within the limit"),
            )
        )
        choice = element(
            "select", options, id="with-verdict", aria_label="Show features by verdict"
        )
    search = element(
        "input",
        type="search",
        id="find",
        placeholder="Find a feature",
        aria_label="Find a feature",
        autocomplete="off",
        spellcheck="false",
    )
    return element(
        "div",
        search,
        choice,
        element("output", id="found", for_="find"),
        class_="tools",
        role="search",
        hidden=True,
    )
