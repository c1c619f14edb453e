"""What must hold for every method, ours or a third party's.

A law is a function of an unfitted method and some annotations that raises ``AssertionError``
when the method breaks it. Run all of them over your own aggregator::

    for law in crowdwise.laws.AGGREGATOR_LAWS:
        law(MyAggregator(), annotations)

A method that cannot promise a law says so in its ``traits``.
"""

from crowdwise.laws.aggregators import AGGREGATOR_LAWS

__all__ = ["AGGREGATOR_LAWS"]
