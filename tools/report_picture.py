"""Takes the screenshot of the demo report that the first pages show.

    python -m tools.report_picture      # writes docs/pictures/report.png

Needs Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tools.browser import Browser

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "report.png"
SIZE = (1000, 945)
"""From the headline to the bars."""


def main() -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Path(folder) / "demo.html"
        command = [sys.executable, "-m", "xcount", "demo", "--html", str(page)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with Browser(Path(folder) / "profile") as browser:
            browser.call("Emulation.setScrollbarsHidden", hidden=True)
            browser.open(page, SIZE)
            browser.settle()
            browser.screenshot(PICTURE, whole=False)
    print(f"wrote {PICTURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
