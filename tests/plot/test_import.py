"""Without matplotlib the error names the extra."""

import subprocess
import sys


def test_a_missing_matplotlib_names_the_extra():
    code = (
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "import crowdwise\n"
        "try:\n"
        "    crowdwise.plot\n"
        "except crowdwise.errors.MissingExtraError as error:\n"
        "    assert 'crowdwise[plot]' in str(error)\n"
        "else:\n"
        "    raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_plots_do_not_load_pyplot():
    code = "import sys, crowdwise.plot; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
