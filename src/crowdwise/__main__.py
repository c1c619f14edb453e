"""``python -m crowdwise``: the command line."""

import sys

if __name__ == "__main__":
    try:
        from crowdwise.cli import main
    except KeyboardInterrupt:  # too early to be handled elsewhere
        sys.stderr.write("crowdwise: stopped.\n")
        sys.exit(130)
    sys.exit(main())
