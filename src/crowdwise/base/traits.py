"""What methods promise, for the laws and the documentation to read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Traits:
    """What a method of truth inference promises."""

    binary_only: bool = False  # works with two classes at most
    monotone: bool = False  # objective_ never falls
    stochastic: bool = False  # has a random_state that matters
    keeps_unanimity: bool = True  # unanimous labels are kept
    weighted: bool = True  # a weight of two equals a repeated row
    resists_noise: bool = True  # a worker who labels at random changes little
    learns_from_gold: bool = False  # gold labels inform more than their own tasks
    ordinal: bool = False  # the order of the classes matters, though not its direction
    abstention_counts: bool = False  # not labeling a task is informative, also if nobody does
    compact: bool = False  # takes very many classes, by the annotation
    blockwise: bool = True  # asks its engine for sums only, never for all annotations


@dataclass(frozen=True)
class LearnerTraits:
    """What a learner or an embedder promises."""

    # What random numbers are drawn for one by one: "row" (of the annotations), "task", "worker".
    # Another order of these means other random numbers; without it only rounding differs.
    random_per: tuple[str, ...] = ()
    multi_label: bool = False  # every task has several yes-or-no labels, by name
