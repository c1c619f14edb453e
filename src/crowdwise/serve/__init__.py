"""A service that hands out tasks, takes labels, and learns from each: ``crowdwise serve``.

Needs the extra ``serve``. Every label, task, truth and token is an *event*, appended to one table
(:mod:`~crowdwise.serve.schema`). A *board* in memory follows the events and knows what each
worker may be given next; a *desk* is the only writer and puts many requests into one transaction;
an *observer* keeps a live model and a plan up to date with the labels.
"""

from crowdwise.serve.service import Service
from crowdwise.serve.settings import Settings

__all__ = ["Service", "Settings"]
