"""NeuCrowd without its parts, and with what the paper leaves for later."""

from crowdbench.table import Row, Table
from crowdbench.tables._embed import chosen_on_validation
from crowdbench.tables._neucrowd import COLUMNS, HOTEL, SOURCE, neucrowd, paper
from crowdwise.aggregate import DawidSkene
from crowdwise.embed import Assurance, EveryClass, Example, HardGroups, RandomGroups, SafeGroups

EVERY_ANCHOR = HardGroups(SafeGroups(RandomGroups(anchors=EveryClass())))
BY_POSTERIOR = Assurance(evidence="posterior")
FULL, NO_SA, NO_RA, NO_SN = "NeuCrowd", "-SA", "-SA-RA", "-SA-RA-SN"
TABLE = Table(
    name="neucrowd-table3",
    title="NeuCrowd's Table 3: what each part contributes",
    source=SOURCE,
    about="Settings and choices as in Table 2.",
    notes=(
        "-SA draws from all tasks, -RA uses the anchors themselves, -SN takes groups at random.",
        "The last rows are not in the paper: the quirks of its code; a classifier trained on all "
        "labels; anchors of every class; classes and confidence from Dawid and Skene's "
        "posterior; and the same, updated by the representation.",
    ),
    rows={
        NO_SN: Row(
            neucrowd(groups=RandomGroups(), anchor=Example()),
            paper((0.65, 0.712), (0.674, 0.662), (0.77, 0.838)),
        ),
        NO_RA: Row(
            neucrowd(groups=HardGroups(), anchor=Example()),
            paper((0.665, 0.713), (0.664, 0.72), (0.850, 0.921)),
        ),
        NO_SA: Row(
            neucrowd(groups=HardGroups()), paper((0.67, 0.714), (0.68, 0.723), (0.857, 0.823))
        ),
        FULL: Row(neucrowd(), paper((0.678, 0.729), (0.688, 0.751), (0.871, 0.928))),
        "as the code does it": Row(neucrowd("code")),
        "soft labels behind it": Row(neucrowd(targets="soft")),
        "every class anchors": Row(neucrowd(groups=EVERY_ANCHOR)),
        "posterior": Row(neucrowd(confidence=BY_POSTERIOR, aggregator=DawidSkene())),
        "posterior, renewed": Row(
            neucrowd(confidence=BY_POSTERIOR, aggregator=DawidSkene(), refresh_every=1)
        ),
    },
    columns=COLUMNS,
    measure=chosen_on_validation,
    metrics=("accuracy", "AUC"),
    pairs=((FULL, NO_SA), (NO_SA, NO_RA), (NO_RA, NO_SN), (FULL, NO_SN)),
    quick_rows=(NO_SN, FULL),
    quick_columns=(HOTEL,),
)
