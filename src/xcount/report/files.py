"""Writing a report: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from xcount.errors import XCountError


def write_atomically(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new one."""
    target = Path(path)
    content = data.encode("utf-8") if isinstance(data, str) else data
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException as error:  # Ctrl-C, too, leaves nothing behind
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        raise XCountError(
            f"cannot write {target}: {error.strerror}; "
            "name a file in a folder that exists, has room, and that you may write to"
        ) from error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written, before the work whose result it is to hold."""
    target = Path(path)
    folder = target.parent
    if not folder.is_dir():
        raise XCountError(f"cannot write {target}: there is no folder {folder}")
    if target.is_dir():
        raise XCountError(f"cannot write {target}: it is a folder")
    if not os.access(folder, os.W_OK):
        raise XCountError(f"cannot write {target}: the folder {folder} is read-only")


def _umask() -> int:
    """Return the process's umask; reading it means setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
