"""The formats that can be read, most specific first; each is a file and a name here.

Each file has a one-line docstring that describes the format, a function ``parse(document,
options)`` that converts a document to a long table, and a ``FORMAT`` that says how to
recognize it. :mod:`crowdwise.io.formats.collect` has the parts that several of them share.
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
