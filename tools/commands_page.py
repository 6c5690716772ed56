"""Generates the reference of the command line from the commands themselves.

    python -m tools.commands_page

prints it; ``python -m tools.reference`` puts it into ``docs/command-line.md``.
"""

from __future__ import annotations

import re
import sys

import click

from xcount.cli.app import COMMANDS, application


def reference() -> str:
    """Return every command with every argument and option, as Markdown."""
    with click.Context(application, info_name="xcount", **application.context_settings) as context:
        commands = [(name, application.get_command(context, name)) for name in COMMANDS]
        return "\n\n".join(_command(name, command, context) for name, command in commands)


def _command(name: str, command: click.Command, parent: click.Context) -> str:
    with click.Context(command, info_name=name, parent=parent) as context:
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        rows = ["| option | meaning |", "|---|---|"]
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                option = record[0].replace("|", "\\|")  # as a view of the repository needs it
                rows.append(f"| `{option}` | {_meaning(record[1])} |")
    text = "\n\n".join(map(_marked, _paragraphs(command.help or "")))
    shown = [line.strip() for line in (command.epilog or "").splitlines() if "  xcount " in line]
    blocks = [f"## xcount {name}", f"`{usage}`", text, "\n".join(rows)]
    blocks += ["Examples:" if len(shown) > 1 else "Example:", "\n".join(f"- `{s}`" for s in shown)]
    return "\n\n".join(blocks)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.replace("\b", "").split("\n\n") if part.strip()]


def _meaning(text: str) -> str:
    """Return a help text with its defaults in small print."""
    meaning, _, extra = text.partition("  [")
    words = _marked(" ".join(meaning.split())).replace("|", "&#124;")
    notes = [part.strip() for part in extra.rstrip("]").split(";")] if extra else []
    notes = [note for note in notes if "x" not in re.split(r"[<>=]+", note)]  # a range of numbers
    notes = [re.sub(r"^default: \(?(.*?)\)?$", r"default: \1", note) for note in notes]
    return words + (f" ({'; '.join(notes)})" if notes else "")


def _marked(text: str) -> str:
    """Return text with the names of options marked as code."""
    return re.sub(r"(?<![\w`])(--[a-z][\w-]*)", r"`\1`", text)


if __name__ == "__main__":
    print(reference())
    sys.exit(0)
