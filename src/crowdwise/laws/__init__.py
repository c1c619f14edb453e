"""Laws: what must hold for every method, ours or a third party's.

A law is a function of an unfitted method and some annotations that raises ``AssertionError``
when the method breaks it. Run all of them over your own aggregator::

    for law in crowdwise.laws.AGGREGATOR_LAWS:
        law(MyAggregator(), annotations)

Laws of learners take features as well: ``law(MyLearner(), X, annotations)`` for every law in
``LEARNER_LAWS``, and likewise for embedders in ``EMBEDDER_LAWS``. A learner of several labels per
task obeys the same laws as ``OneLabelName(MyLearner())``, on annotations of two classes. A
method that cannot promise a law says so in its ``traits``. The laws train briefly;
:func:`crowdwise.laws.quick.quick` makes the same short training available to other tests.
"""

from crowdwise.laws.aggregators import AGGREGATOR_LAWS
from crowdwise.laws.embedders import EMBEDDER_LAWS
from crowdwise.laws.learners import LEARNER_LAWS
from crowdwise.laws.multi_label import OneLabelName

__all__ = ["AGGREGATOR_LAWS", "EMBEDDER_LAWS", "LEARNER_LAWS", "OneLabelName"]
