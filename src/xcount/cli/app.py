"""The group of commands, and how their errors become messages and exit statuses.

Exit statuses::

    0    answered (and PASS)
    1    FAIL
    2    an error: exactly one line on standard error (also: standard output is closed)
    3    stopped by a limit before the asked accuracy, or UNDECIDED
    130  interrupted outside a count (inside one, it is 3 and the bounds so far)
    141  the reader of standard output has gone (broken pipe)
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import warnings
from importlib import import_module

import click

from xcount._version import __version__
from xcount.cli.output import INTERRUPTED, print_error
from xcount.cli.parameters import examples
from xcount.errors import XCountError

COMMANDS = (
    "count",
    "audit",
    "compare",
    "worst",
    "diff",
    "witness",
    "person",
    "repair",
    "monotone",
    "verify",
    "report",
    "merge",
    "inspect",
    "encode",
    "demo",
)
"""Command names in the order of ``--help``; command ``x`` is ``xcount.cli.x:command``."""

ERROR, BROKEN_PIPE = 2, 141
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_EXHAUSTED: dict[type[Exception], str] = {
    MemoryError: "out of memory; try a smaller model, or --method sample",
    RecursionError: "the model is nested too deeply to be read; no library trains such trees",
}


class LazyGroup(click.Group):
    """A group that imports the module of a command when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Return the command of that name, or suggest another."""
        if cmd_name not in COMMANDS:
            from xcount.support.nearest import nearest  # only for this message

            near = nearest(cmd_name, COMMANDS, cutoff=0.6)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command {cmd_name!r}; {hint}", ctx)
        command: click.Command = import_module(f"xcount.cli.{cmd_name}").command
        return command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("xcount count model.json --sensitive age --gap 2"),
)
@click.version_option(__version__, message="xcount %(version)s")
def application() -> None:
    """Count how much of a tree ensemble's input space is sensitive to chosen features.

    Exit status: 0 answered (and PASS), 1 FAIL, 2 an error, 3 stopped by a limit or UNDECIDED.
    """


def run(arguments: list[str]) -> int:
    """Run one command and return the exit status; errors become one line each."""
    try:
        _prepare()
        status = _invoke(arguments or ["--help"])
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The interpreter flushes standard output once more at exit; discard that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if _is_debugging():
            sys.excepthook(type(error), error, error.__traceback__)
        print_error(error_message(error))
        return ERROR


def _invoke(arguments: list[str]) -> int:
    """Run click's group; its own main would turn a broken pipe into status 1, which is FAIL."""
    if "_XCOUNT_COMPLETE" in os.environ:
        application.main(arguments, prog_name="xcount")  # shell completion
    try:
        with application.make_context("xcount", arguments) as context:
            return int(application.invoke(context) or 0)
    except click.exceptions.Exit as stop:  # --help, --version
        return stop.exit_code


def error_message(error: Exception) -> str:
    """Say what went wrong, where, and what to do."""
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx is not None else "xcount"
        return f"{error.format_message().rstrip('.')} (see '{path} --help')"
    if isinstance(error, XCountError):
        return str(error)
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        if error.filename is None and error.errno in _NO_ROOM:
            where = "standard output: "  # files are written by name
        return f"{where}{error.strerror or error}"
    for kind, message in _EXHAUSTED.items():
        if isinstance(error, kind):
            return message
    return (
        f"internal error: {type(error).__name__}: {error}; "
        "please report it (XCOUNT_DEBUG=1 shows where)"
    )


def _prepare() -> None:
    """Prepare the process to print counts of any length and names in any script."""
    if sys.stderr is None:  # closed by the caller: notes and errors go nowhere, answers still out
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open as long as the process
    if sys.stdout is None:
        raise XCountError("standard output is closed; send it to a file, or to /dev/null")
    # No count multiplies matrices: numpy need not start a pool of threads for it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.set_int_max_str_digits(0)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _print_note
    if not _is_debugging():
        logging.disable()  # Dask logs tracebacks of a lost scheduler in front of our line


def _is_debugging() -> bool:
    return os.environ.get("XCOUNT_DEBUG") == "1"


def _print_note(message: Warning | str, *_where: object, **_more: object) -> None:
    print_error(f"note: {message}")
