"""Prints the table of operation and fault as Markdown: ``python -m tests.settling.render``."""

import sys

from tests.settling.table import drawn

if __name__ == "__main__":
    sys.stdout.write(drawn())
