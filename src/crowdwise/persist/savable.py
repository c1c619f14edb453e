"""What a model needs so that it can be saved."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar


class Savable:
    """An estimator that writes itself to a file; :func:`crowdwise.load` brings it back."""

    # Names along the axes of learned arrays; what a file holds is checked against them.
    _axes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "posterior_": ("tasks_", "classes_"),
        "confusion_": ("workers_", "classes_", "classes_"),
        "prior_": ("classes_",),
    }

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, without pickle.

        Parameters
        ----------
        path : str or Path
            Where to; what is there is replaced once the new file is whole.
        """
        from crowdwise.persist.models import save

        save(self, path)

    def _learned(self) -> dict[str, Any]:
        """Learned attributes by name, as values that a file can hold."""
        return {name: value for name, value in vars(self).items() if is_learned(name)}

    def _restore(self, learned: dict[str, Any]) -> None:
        """Take back what :meth:`_learned` gave."""
        vars(self).update(learned)


def is_learned(name: str) -> bool:
    """Learned attributes end in an underscore and begin with none."""
    return name.endswith("_") and not name.startswith("_")
