"""The command line: parse -> work -> report. Only this package prints.

``main`` answers ``--version`` itself and imports the rest when it is needed: start-up time counts.
Every command is a module of its own, named in :data:`xcount.cli.app.COMMANDS`.
"""

from __future__ import annotations

import gc
import os
import sys

_COLLECT_AFTER = 100_000
"""Objects made between two searches for garbage; modules make many at start-up, and no garbage."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    if words == ["--version"] and _print_version():
        return 0
    if arguments is not None:
        from xcount.cli.app import run

        return run(words)
    return _run_alone(words)


def _print_version() -> bool:
    """Print the version; tell whether that worked: if not, the application says why not."""
    from xcount._version import __version__

    if sys.stdout is None:
        return False
    try:
        sys.stdout.write(f"xcount {__version__}\n")
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _run_alone(words: list[str]) -> int:
    """Run a command that is all this process is for: what it does with Ctrl-C is its own.

    While modules are imported and the model is read, Ctrl-C ends the process at once: an exception
    in the middle of an import can abort the interpreter, and nothing is open yet. Where there is
    something to save, :func:`xcount.cli.progress.stoppable` makes it an exception. Afterwards it is
    ignored: all is written, and the process is about to end.
    """
    gc.set_threshold(_COLLECT_AFTER)
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        return 130
    from xcount.cli.app import run
    from xcount.support.process import become_command

    become_command()
    status = run(words)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _leave(status)
    return status


def _leave(status: int) -> None:
    """End the process at once: taking numpy's modules apart takes a seventh of a short run."""
    if "distributed" in sys.modules or "coverage" in sys.modules:
        return  # these end what they began when the interpreter does
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return  # the interpreter says what is wrong with them
    os._exit(status)
