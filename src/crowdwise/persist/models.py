"""Saving models to files, and loading them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from sklearn.utils.validation import check_is_fitted

from crowdwise.errors import CrowdwiseError, FormatError, ParameterError, explain, listing
from crowdwise.persist import container
from crowdwise.persist.container import Content, damaged
from crowdwise.persist.registry import (
    KeepsState,
    Tree,
    Value,
    build,
    learned_attributes,
    registered_name,
)
from crowdwise.persist.soundness import Axes, refuse_misfits, refuse_not_numbers, refuse_useless
from crowdwise.persist.values import Arrays, from_json, to_json
from crowdwise.typing import Array


class Savable:
    """An estimator that can be saved to a file and loaded with :func:`crowdwise.load`."""

    # Names of the axes of learned arrays, to check what a file contains.
    _axes: ClassVar[Mapping[str, Axes]] = {
        "posterior_": ("tasks_", "classes_"),
        "confusion_": ("workers_", "classes_", "classes_"),
        "prior_": ("classes_",),
    }

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, without pickle.

        Parameters
        ----------
        path : str or Path
            The file to write; an existing one is replaced once the new file is complete.
        """
        save(self, path)

    def _worker_rows(self) -> Mapping[str, Array]:
        """Return learned arrays with one row per worker, by attribute name."""
        return {}

    def _task_rows(self) -> Mapping[str, Array]:
        """Return learned arrays with one row per task, by attribute name."""
        return {}

    def _refuse_forged(self) -> None:
        """Refuse learned values that no fit produces, as in a forged file."""

    def _inner(self) -> Sequence[Savable]:
        """Return fitted models inside this one, with names of their own."""
        return ()

    def _learned(self) -> dict[str, Value]:
        """Return learned attributes by name, as values that a file can store."""
        return learned_attributes(self)

    def _restore(self, learned: dict[str, Value]) -> None:
        """Restore what :meth:`_learned` returned."""
        vars(self).update(learned)


def save(model: Value, path: str | Path, *, fitted: bool = True) -> None:
    """Write a model of crowdwise to one file; see :meth:`Savable.save`.

    Unless ``fitted``, it may have parameters only.
    """
    if fitted:
        check_is_fitted(model)
    name, ours = registered_name(type(model)), isinstance(model, KeepsState)
    if name is None or not ours:
        raise ParameterError(
            explain(
                f"A {type(model).__name__} cannot be saved.",
                expected="a fitted aggregator, learner or embedder of crowdwise",
                fix="save the model inside it, or derive it from a class of crowdwise",
            )
        )
    arrays: Arrays = {}
    params = {
        key: {"kind": "yours", "what": _describe(value)}
        if callable(value)
        else to_json(value, f"params.{key}", arrays)
        for key, value in model.get_params(deep=False).items()
    }
    learned = {key: to_json(value, key, arrays) for key, value in model._learned().items()}
    text = json.dumps({"name": name, "params": params, "learned": learned})
    container.write_container(path, Content(text, arrays))


def load(path: str | Path, *, fitted: bool = True, **yours: Value) -> Value:
    """Load a model from a file.

    Nothing in the file is executed: it names one of crowdwise's own classes, and the rest is
    numbers and text. A damaged, foreign or forged file is a
    :class:`~crowdwise.errors.CrowdwiseError`.

    Parameters
    ----------
    path : str or Path
        File written by ``model.save(path)``.
    fitted : bool, default=True
        Whether to refuse a file without learned values.
    **yours
        Parameters that are your own code, by name: ``truth=my_module`` for a model that was
        trained with your own ``torch.nn.Module``. What it learned is in the file.
    """
    content = container.read_container(path)
    try:
        return _rebuild(content, yours, fitted=fitted)
    except FormatError as error:
        raise damaged(path, _with_writer(error, content)) from error
    except CrowdwiseError:
        raise
    except Exception as error:  # a forged file can make sound code fail in any way
        raise damaged(path, _with_writer(error, content)) from error


def _rebuild(content: Content, yours: Tree, *, fitted: bool) -> Savable:
    tree = json.loads(content.text)
    arrays = dict(content.arrays)
    wanted = {
        key: value["what"]
        for key, value in tree["params"].items()
        if isinstance(value, dict) and value.get("kind") == "yours"
    }
    _refuse_other(tree["name"], wanted, yours)
    refuse_not_numbers(content.arrays, own_code=bool(wanted))
    params = {
        key: yours[key] if key in wanted else from_json(value, arrays)
        for key, value in tree["params"].items()
    }
    learned = {key: from_json(value, arrays) for key, value in tree["learned"].items()}
    model: Value = build(tree["name"], params, learned)
    model._validate_params()  # the estimator's own check: what ``fit`` would refuse
    if fitted or learned:
        refuse_misfits(model)
        if not wanted:
            refuse_useless(model)
    return model


def _refuse_other(name: str, wanted: dict[str, str], yours: Tree) -> None:
    missing, extra = sorted(wanted.keys() - yours.keys()), sorted(yours.keys() - wanted.keys())
    if missing:
        example = ", ".join(f"{key}=…" for key in missing)
        raise ParameterError(
            explain(
                f"This {name} was trained with your own code, which a file cannot store.",
                first=f"{missing[0]}: {wanted[missing[0]]}",
                fix=f"crowdwise.load(path, {example}), built as before",
            )
        )
    if extra:
        raise ParameterError(
            explain(
                f"{listing(extra)} was given, but it is in the file already.",
                expected=f"only {listing(sorted(wanted))}" if wanted else "nothing but the path",
                fix="load the model first, then use set_params",
            )
        )


def _describe(value: Value) -> str:
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{'a function' if hasattr(value, '__qualname__') else 'an object'} {name}"


def _with_writer(error: Exception, content: Content) -> str:
    what = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"{what} (written by crowdwise {content.writer:.40})"
