"""A labeling job from end to end, on a simulated classroom whose truth is known.

Nine teachers of very different accuracy say whether students in 300 video clips of lessons are
engaged. We infer the labels, learn a classifier and an embedding from features and annotations,
compare both with a majority vote and a logistic regression, and write a report. The folder
demo/ then contains the input and the output of a real job. The same as: crowdwise demo
"""

import sys

from crowdwise.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", "-o", "demo"]))
