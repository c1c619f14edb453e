"""``python -m crowdwise``: the command line."""

import sys

from crowdwise.cli import main

if __name__ == "__main__":
    sys.exit(main())
