"""Writing a file, whole or not at all, and locking one.

What a symbolic link leads to is replaced, not the link. What is no file (a device, a named pipe)
is written to as it is.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from xcount.errors import XCountError


def write_atomically(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new one."""
    content = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    try:
        if _is_special(path):
            with open(path, "wb") as device:
                device.write(content)
        else:
            _replace(_behind_links(path), content)
    except OSError as error:
        raise XCountError(
            f"cannot write {os.fspath(path)}: {error.strerror}; "
            "name a file in a folder that exists, has room, and that you may write to"
        ) from error


def written_to(path: str | os.PathLike[str] | None, text: str) -> str:
    """Write a text to a path, if there is one, and return it."""
    if path is not None:
        write_atomically(path, text)
    return text


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Tell whether there is something that is no regular file, behind links as well."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def _behind_links(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(path) if os.path.islink(path) else path)


def _replace(target: Path, content: bytes) -> None:
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C, too, leaves nothing behind
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise


def lock_file(descriptor: int) -> None:
    """Lock a file against other writers until it is closed; a file in use is an OSError."""
    if sys.platform == "win32":
        import msvcrt

        # Locks one byte far behind the end, so that readers are not kept out.
        os.lseek(descriptor, 2**62, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written, before the work whose result it is to hold."""
    if not os.fspath(path):
        raise XCountError("cannot write a file without a name; give it one")
    target = _behind_links(path)
    folder = target.parent
    if os.path.isdir(path):
        raise XCountError(f"cannot write {os.fspath(path)}: it is a folder")
    if os.path.exists(path) and _is_special(path):
        if not os.access(path, os.W_OK):
            raise XCountError(f"cannot write {os.fspath(path)}: you may not write to it")
        return
    if not folder.is_dir():
        raise XCountError(f"cannot write {os.fspath(path)}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise XCountError(f"cannot write {os.fspath(path)}: the folder {folder} is read-only")


def _umask() -> int:
    """Return the process's umask; reading it means setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
