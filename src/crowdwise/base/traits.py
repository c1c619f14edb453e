"""The promises of methods, for the laws and the documentation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Traits:
    """The promises of a truth-inference method."""

    binary_only: bool = False  # works with at most two classes
    monotone: bool = False  # objective_ never falls
    stochastic: bool = False  # has a random_state that matters
    keeps_unanimity: bool = True  # unanimous labels are kept
    weighted: bool = True  # a weight of two equals a repeated row
    resists_noise: bool = True  # a worker who labels at random changes little
    learns_from_gold: bool = False  # gold labels inform more than their own tasks
    ordinal: bool = False  # the order of the classes matters, but not its direction
    abstention_counts: bool = False  # not labeling a task is informative, even if nobody labels it
    compact: bool = False  # handles very many classes, with memory per annotation
    blockwise: bool = True  # only asks its engine for sums, never for all annotations


@dataclass(frozen=True)
class LearnerTraits:
    """The promises of a learner or an embedder."""

    # What random numbers are drawn for one by one: "row" (of the annotations), "task", "worker".
    # In another order they get other random numbers; without it, only rounding differs.
    random_per: tuple[str, ...] = ()
    multi_label: bool = False  # each task has several named yes-or-no labels
