"""What the words of two sentences say about whether the second follows from the first.

Shared words account for most of what the systems of the first entailment challenge achieved,
more so on some of its seven kinds of pairs than on others (Dagan, Glickman and Magnini, 2006, The
PASCAL Recognising Textual Entailment Challenge, doi:10.1007/11736790_9).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.typing import Floats

WORD = re.compile(r"[A-Za-z]+|\d+(?:[.,]\d+)*")
ENDINGS = ("ing", "ed", "es", "s", "ly")
NEGATION = frozenset(
    {"not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot"}
    | {"deny", "denies", "denied", "refused", "failed"}
)


def pair_features(
    premises: Sequence[str], hypotheses: Sequence[str], kinds: Sequence[str]
) -> Floats:
    """Standardized features of each pair: how much of the hypothesis its premise contains.

    Shares of words, rare words, names, numbers and word pairs in common; the longest run; whether
    only one has a negation; lengths; the kind of pair, and rare words in common within each kind.
    """
    tokens = [WORD.findall(text) for text in (*premises, *hypotheses)]
    rarity = rarities([[stem(word) for word in words] for words in tokens])
    pairs = zip(tokens[: len(premises)], tokens[len(premises) :], strict=True)
    shared = np.array([in_common(premise, hypothesis, rarity) for premise, hypothesis in pairs])
    kind = pd.get_dummies(pd.Series(kinds)).to_numpy(dtype=np.float64)
    features = np.hstack([shared, kind, kind * shared[:, :1]])
    spread = features.std(axis=0)
    return (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def in_common(
    premise: Sequence[str], hypothesis: Sequence[str], rarity: Mapping[str, float]
) -> list[float]:
    """What one pair shares."""
    first, second = [stem(word) for word in premise], [stem(word) for word in hypothesis]
    names = [stem(word) for word in hypothesis[1:] if word[0].isupper()]
    numbers = [word for word in hypothesis if word[0].isdigit()]
    rare = [rarity[word] for word in second]
    return [
        share(second, first, weights=rare),
        share(second, first),
        share(names, first),
        share(numbers, premise),
        share([*pairwise(second)], [*pairwise(first)]),
        longest_run(first, second) / max(len(second), 1),
        float(negates(premise) != negates(hypothesis)),
        math.log((len(second) + 1) / (len(first) + 1)),
    ]


def share(wanted: Sequence[Any], there: Sequence[Any], weights: Sequence[float] = ()) -> float:
    """How much of what is wanted is there; all of it where nothing is wanted."""
    counted, held = weights or [1.0] * len(wanted), set(there)
    found = sum(weight for one, weight in zip(wanted, counted, strict=True) if one in held)
    return found / sum(counted) if any(counted) else 1.0


def longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest stretch of words that both have."""
    longest = 0
    ending_before = [0] * (len(second) + 1)  # run that ends at each word of the second
    for word in first:
        ending = [0] * (len(second) + 1)
        for place, other in enumerate(second, start=1):
            if word == other:
                ending[place] = ending_before[place - 1] + 1
        longest, ending_before = max(longest, *ending), ending
    return longest


def negates(words: Sequence[str]) -> bool:
    return any(word.lower() in NEGATION for word in words)


def stem(word: str) -> str:
    """The word without case and a common ending."""
    word = word.lower()
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def rarities(sentences: Sequence[Sequence[str]]) -> dict[str, float]:
    """Of each word, the logarithm of one over the share of sentences that have it."""
    held_by = Counter(word for sentence in sentences for word in set(sentence))
    n = len(sentences)
    return {word: math.log((n + 1) / (count + 1)) for word, count in held_by.items()}
