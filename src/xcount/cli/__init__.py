"""The command line: parse -> work -> report. Only this package prints.

``main`` answers ``--version`` itself and imports the rest when it is needed: start-up time counts.
Every command is a module of its own, named in :data:`xcount.cli.app.COMMANDS`.
"""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    if words != ["--version"]:
        try:
            from xcount.cli.app import run
        except KeyboardInterrupt:
            return 130

        return run(words)
    from xcount._version import __version__

    sys.stdout.write(f"xcount {__version__}\n")
    return 0
