"""The same annotations in every common layout."""

import numpy as np
import pandas as pd

from crowdwise import Annotations
from crowdwise.aggregate import MajorityVote

long = pd.DataFrame(
    {
        "question": ["q1", "q1", "q1", "q2", "q2", "q3"],
        "annotator": ["ann", "bob", "cy", "ann", "cy", "bob"],
        "answer": ["yes", "yes", "no", "no", "no", "yes"],
    }
)
wide = long.pivot(index="question", columns="annotator", values="answer")
nested = {q: dict(zip(g.annotator, g.answer, strict=True)) for q, g in long.groupby("question")}
snorkel = np.array([[1, 1, 0], [0, -1, 0], [-1, 1, -1]])

by_name = Annotations.from_frame(long, task="question", worker="annotator", label="answer")
for votes in (long, wide, nested, by_name):
    print(MajorityVote().fit_predict(votes).to_dict())
print(MajorityVote().fit_predict(Annotations.from_snorkel(snorkel)).to_dict())
print(by_name.to_matrix(), by_name.to_dict(), by_name.to_snorkel(), sep="\n")
