"""``python -m xcount`` is ``xcount``."""

import sys

from xcount.cli import main

if __name__ == "__main__":
    sys.exit(main())
