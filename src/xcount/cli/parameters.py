"""The options of commands, made from the options that the functions declare."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from xcount.support.options import Option, options_of

Command = TypeVar("Command", bound=Callable[..., Any])


class OneValueCommand(click.Command):
    """A command that rejects an option given twice, unless the option may be repeated."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command line; reject options that occur twice."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option in given:
            if not isinstance(option, click.Option) or option.multiple or given.count(option) == 1:
                continue
            if option.secondary_opts:
                both = f"{option.opts[0]} or {option.secondary_opts[0]}"
                raise click.UsageError(f"give {both} once", ctx)
            if not option.is_flag:
                raise click.UsageError(f"{option.opts[0]} takes one value, but is given twice", ctx)
        return super().parse_args(ctx, args)


class WholeNumber(click.IntRange):
    """A whole number in ASCII digits: Python's ``int`` also reads ``1_0``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; reject a text that is one only to Python."""
        if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]+", value.strip()):
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        return super().convert(value, param, ctx)


def examples(*lines: str) -> str:
    """Return an epilog for ``--help`` that keeps its line breaks."""
    return "\n".join(
        ["\b", "Example:" if len(lines) == 1 else "Examples:", *("  " + x for x in lines)]
    )


def together(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator that applies all the given ones."""

    def decorate(function: Command) -> Command:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def declared(
    cls: type, *, only: Iterable[str] = (), without: Iterable[str] = ()
) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the options of a class.

    Args:
        cls: a class of options (:mod:`xcount.support.options`).
        only: the options to take; all unless given.
        without: options to leave out.
    """
    chosen = [
        _click_option(each, about)
        for each, about in options_of(cls)
        if about.flag is not None and each.name not in without
        if not only or each.name in only
    ]
    return together(*chosen)


def _click_option(each: dataclasses.Field[Any], about: Option) -> Callable[[Command], Command]:
    flag = about.flag or "--" + each.name.replace("_", "-")
    if isinstance(each.default, bool):
        names = f"{flag}/--no-{each.name}" if each.default else flag
        return click.option(
            names,
            each.name,
            is_flag=True,
            default=each.default,
            help=about.help,
            show_default=each.default,
        )
    has_default = about.shown_default is None and each.default not in (
        None,
        (),
        dataclasses.MISSING,
    )
    default: Any = str(each.default) if has_default else None
    kind: click.Choice[str] | WholeNumber | None = None
    if about.choices:
        kind = click.Choice(about.choices)
    elif about.least is not None:
        kind = WholeNumber(about.least, about.most)
    is_list = about.repeated != ""
    return click.option(
        flag,
        each.name,
        metavar=about.metavar,
        type=kind,
        multiple=is_list,
        required=about.is_required,
        default=[default] if is_list and default is not None else default,
        show_default=about.shown_default or has_default,
        callback=_joined if about.repeated == "text" else None,
        help=about.help,
    )


def _joined(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the values of a repeated option as one text with commas."""
    return ",".join(values) if values else None


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have a value; the function supplies defaults for the others."""
    return {name: value for name, value in options.items() if value is not None and value != ()}


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)
progress_option = click.option(
    "--progress",
    type=click.Choice(["auto", "plain", "none"]),
    default="auto",
    show_default=True,
    help="Show on standard error how far a long run is: as a bar on a terminal and as a line every "
    "ten seconds elsewhere ('auto'), as lines everywhere ('plain'), or not at all ('none').",
)
