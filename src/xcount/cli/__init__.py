"""The command line: parse -> work -> report. Only this package prints.

``main`` answers ``--version`` itself and imports the rest when it is needed: start-up time counts.
Every command is a module of its own, named in :data:`xcount.cli.app.COMMANDS`.
"""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    if words == ["--version"] and sys.stdout is not None:
        from xcount._version import __version__

        sys.stdout.write(f"xcount {__version__}\n")
        return 0
    if arguments is not None:
        from xcount.cli.app import run

        return run(words)
    return _run_alone(words)


def _run_alone(words: list[str]) -> int:
    """Run a command that is all this process is for: what it does with Ctrl-C is its own.

    While modules are imported and the model is read, Ctrl-C ends the process at once: an exception
    in the middle of an import can abort the interpreter, and nothing is open yet. Where there is
    something to save, :func:`xcount.cli.progress.stoppable` makes it an exception. Afterwards it is
    ignored: all is written, and the interpreter is about to end.
    """
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        return 130
    from xcount.cli.app import run

    status = run(words)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status
