"""The full report of the labels so far, made once for each state of the labels."""

from __future__ import annotations

from threading import Lock

from crowdwise.report import gather, to_html
from crowdwise.serve.draft import RefusedError
from crowdwise.serve.service import Service

MOST_LABELS = 200_000  # in a report that is made while somebody waits


class Reporter:
    """Makes one report at a time and keeps the last one."""

    def __init__(self) -> None:
        self._lock, self._seq, self._text = Lock(), -1, ""

    def write(self, service: Service) -> str:
        """Write the report as a single HTML page."""
        with self._lock:
            seq = service.board.seq
            if seq != self._seq:
                votes = service.board.annotations()
                if not votes.n_annotations:
                    raise RefusedError(409, "There are no labels to report on yet.")
                if votes.n_annotations > MOST_LABELS:
                    fix = "export the labels, and run crowdwise report on them"
                    raise RefusedError(409, "There are too many labels for a live report.", fix=fix)
                facts = gather(votes, title=service.board.settings.title)
                self._seq, self._text = seq, to_html(facts)
            return self._text
