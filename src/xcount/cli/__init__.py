"""The command line: parse -> work -> report. Only this package prints.

``main`` answers ``--version`` itself and imports the rest only if needed, for a fast start.
Every command is a module of its own, named in :data:`xcount.cli.app.COMMANDS`.
"""

from __future__ import annotations

import gc
import os
import sys

_COLLECT_AFTER = 100_000
"""Garbage collection threshold; imports allocate many objects at start-up, but no garbage."""


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
    """Print the version; return whether that worked: if not, the application reports the error."""
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
    """Run a command in a process of its own, which may decide how to handle Ctrl-C.

    While modules are imported and the model is read, Ctrl-C ends the process at once: an exception
    in the middle of an import can abort the interpreter, and there is nothing to save yet. During a
    run, :func:`xcount.cli.progress.stoppable` turns it into an exception. Afterwards it is ignored:
    everything is written, and the process is about to end.
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
    """End the process at once: tearing down numpy's modules takes a seventh of a short run."""
    if "distributed" in sys.modules or "coverage" in sys.modules:
        return  # these clean up at the interpreter's normal exit
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return  # a normal exit reports what is wrong with the streams
    os._exit(status)
