"""The formats that can be read, most particular first; a format is a file and its name here.

Each file has a one-line docstring that says what the format is, a function ``parse(document,
options)`` that turns a document into a long table, and a ``FORMAT`` that says how to
recognize it. :mod:`crowdwise.io.formats.collect` holds what several of them need.
"""

from crowdwise.io.formats import (
    appen,
    argilla,
    deepeval,
    doccano,
    google_forms,
    ground_truth,
    hugging_face,
    inspect_ai,
    kili,
    label_studio,
    labelbox,
    lm_eval,
    long,
    matrix,
    mturk,
    nested,
    openai_evals,
    prodigy,
    promptfoo,
    toloka,
    wide,
    wrench,
)

FORMATS = (
    label_studio.FORMAT,
    labelbox.FORMAT,
    kili.FORMAT,
    ground_truth.FORMAT,
    prodigy.FORMAT,
    argilla.FORMAT,
    mturk.FORMAT,
    appen.FORMAT,
    toloka.FORMAT,
    google_forms.FORMAT,
    hugging_face.FORMAT,
    doccano.FORMAT,
    wrench.FORMAT,
    inspect_ai.FORMAT,
    promptfoo.FORMAT,
    deepeval.FORMAT,
    openai_evals.FORMAT,
    lm_eval.FORMAT,
    nested.FORMAT,
    matrix.FORMAT,
    long.FORMAT,
    wide.FORMAT,
)
