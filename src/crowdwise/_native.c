/* The inner loops of truth inference, compiled.
 *
 * Everything here has a twin in plain scipy (see inference/engines/kernels.py and
 * annotations/columns.py) that gives the same numbers to rounding; this file only makes them
 * fast. Three habits:
 *
 *   - a call works on a contiguous block of tasks and releases the interpreter lock, so
 *     threads, not this file, decide how many cores are used;
 *   - tasks are taken BATCH at a time: gather the log joints, exponentiate them all in
 *     one vectorized sweep, scatter the posteriors;
 *   - the number of classes is a compile-time constant for the common small values.
 *
 * Arrays arrive as raw buffers; their types and sizes are checked by the Python callers.
 */

#include "_native.h"

typedef struct {
    const int64_t *indptr;  /* (n_tasks + 1): where each task's cells begin */
    const int32_t *code;    /* (n_cells): row of the table: which (worker, label) */
    const double *value;    /* (n_cells) or NULL for all ones */
    const double *prior;    /* (K): log prior */
    const double *table;    /* (n_codes, K): log P(label | truth) */
    const double *offset;   /* (n_tasks, K) or NULL: added to the log joint */
    double *posterior;      /* (n_tasks, K) or NULL */
    double *truths;         /* (K), added to */
    double *counts;         /* (n_codes, K), added to, or NULL */
    int64_t start, stop;    /* the block of tasks */
    int64_t k;              /* K, the number of truths */
    int hard;               /* give all mass to the best truth instead of normalizing */
} Pass;

INLINE double pass_over(const Pass *a, const int64_t k, double *restrict joint)
{
    const int64_t *restrict indptr = a->indptr;
    const int32_t *restrict code = a->code;
    const double *restrict table = a->table;
    double *restrict counts = a->counts;
    double *restrict truths = a->truths;
    double evidence = 0.0;
    for (int64_t first = a->start; first < a->stop; first += BATCH) {
        const int64_t n = a->stop - first < BATCH ? a->stop - first : BATCH;
        for (int64_t b = 0; b < n; b++) {
            const int64_t task = first + b;
            double small[SMALL], *row = k <= SMALL ? small : joint + b * k;
            for (int64_t c = 0; c < k; c++) row[c] = a->prior[c];
            if (a->offset)
                for (int64_t c = 0; c < k; c++) row[c] += a->offset[task * k + c];
            for (int64_t i = indptr[task]; i < indptr[task + 1]; i++)
                add_to(row, table + (int64_t)code[i] * k, a->value, i, k);
            double top = row[0];
            for (int64_t c = 1; c < k; c++) top = row[c] > top ? row[c] : top;
            for (int64_t c = 0; c < k; c++) joint[b * k + c] = row[c] - top;
            evidence += top;
        }
        if (a->hard) {
            for (int64_t i = 0; i < n * k; i++) joint[i] = joint[i] >= -TIE ? 1.0 : 0.0;
        } else {
            for (int64_t i = 0; i < n * k; i++) joint[i] = exp_of_nonpositive(joint[i]);
        }
        double product = 1.0; /* of at most BATCH sums in [1, k]: one log for them all */
        for (int64_t b = 0; b < n; b++) {
            const int64_t task = first + b;
            double small[SMALL], *row = k <= SMALL ? small : joint + b * k, sum = 0.0;
            for (int64_t c = 0; c < k; c++) sum += joint[b * k + c];
            const double scale = 1.0 / sum;
            for (int64_t c = 0; c < k; c++) row[c] = joint[b * k + c] * scale;
            for (int64_t c = 0; c < k; c++) truths[c] += row[c];
            if (a->posterior) memcpy(a->posterior + task * k, row, k * sizeof(double));
            if (counts)
                for (int64_t i = indptr[task]; i < indptr[task + 1]; i++)
                    add_to(counts + (int64_t)code[i] * k, row, a->value, i, k);
            product *= sum;
            if (product > 1e250) { evidence += a->hard ? 0.0 : log(product); product = 1.0; }
        }
        if (!a->hard) evidence += log(product);
    }
    return evidence;
}

MULTIVERSION static double run_pass(const Pass *a, double *joint)
{
    switch (a->k) {
    case 2: return pass_over(a, 2, joint);
    case 3: return pass_over(a, 3, joint);
    case 4: return pass_over(a, 4, joint);
    case 5: return pass_over(a, 5, joint);
    case 6: return pass_over(a, 6, joint);
    case 8: return pass_over(a, 8, joint);
    case 10: return pass_over(a, 10, joint);
    default: return pass_over(a, a->k, joint);
    }
}

/* em_pass(indptr, code, value, prior, table, offset, posterior, truths, counts, start,
 *         stop, hard) -> evidence. `value` and `offset` may be None; `posterior` and
 *         `counts` may be empty. `truths` and `counts` are added to. */
static PyObject *em_pass(PyObject *self, PyObject *args)
{
    Py_buffer indptr, code, value, prior, table, offset, posterior, truths, counts;
    long long start, stop;
    int hard;
    if (!PyArg_ParseTuple(args, "y*y*z*y*y*z*w*w*w*LLp", &indptr, &code, &value, &prior, &table,
                          &offset, &posterior, &truths, &counts, &start, &stop, &hard))
        return NULL;
    const int64_t k = prior.len / (int64_t)sizeof(double);
    Pass pass = {
        indptr.buf, code.buf, value.buf, prior.buf, table.buf, offset.buf,
        posterior.len ? posterior.buf : NULL, truths.buf, counts.len ? counts.buf : NULL,
        start, stop, k, hard,
    };
    double *joint = malloc(BATCH * k * sizeof(double)), evidence = 0.0;
    if (joint) {
        Py_BEGIN_ALLOW_THREADS
        evidence = run_pass(&pass, joint);
        Py_END_ALLOW_THREADS
        free(joint);
    }
    Py_buffer *all[] = { &indptr, &code, &value, &prior, &table,
                         &offset, &posterior, &truths, &counts };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->obj) PyBuffer_Release(all[i]);
    return joint ? PyFloat_FromDouble(evidence) : PyErr_NoMemory();
}

MULTIVERSION static void run_count(const int64_t *indptr, const int32_t *code, const double *value,
                                   const double *posterior, double *counts, int64_t start,
                                   int64_t stop, int64_t k)
{
    for (int64_t task = start; task < stop; task++)
        for (int64_t i = indptr[task]; i < indptr[task + 1]; i++)
            add_to(counts + (int64_t)code[i] * k, posterior + task * k, value, i, k);
}

/* count(indptr, code, value, posterior, counts, start, stop, k): counts[code] += value *
 * posterior[task] over the cells of a block of tasks. */
static PyObject *count(PyObject *self, PyObject *args)
{
    Py_buffer indptr, code, value, posterior, counts;
    long long start, stop, k;
    if (!PyArg_ParseTuple(args, "y*y*z*y*w*LLL", &indptr, &code, &value, &posterior, &counts,
                          &start, &stop, &k))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    run_count(indptr.buf, code.buf, value.buf, posterior.buf, counts.buf, start, stop, k);
    Py_END_ALLOW_THREADS
    Py_buffer *all[] = { &indptr, &code, &value, &posterior, &counts };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->obj) PyBuffer_Release(all[i]);
    Py_RETURN_NONE;
}

/* group(task, cursor, order): a stable counting sort. `cursor[t]` is where task t's rows
 * begin and is advanced; `order` receives the row numbers grouped by task. */
static PyObject *group(PyObject *self, PyObject *args)
{
    Py_buffer task, cursor, order;
    if (!PyArg_ParseTuple(args, "y*w*w*", &task, &cursor, &order)) return NULL;
    const int32_t *of = task.buf;
    int64_t *next = cursor.buf;
    uint32_t *out = order.buf;
    const int64_t n = task.len / (int64_t)sizeof(int32_t);
    Py_BEGIN_ALLOW_THREADS
    for (int64_t i = 0; i < n; i++) out[next[of[i]]++] = (uint32_t)i;
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&task);
    PyBuffer_Release(&cursor);
    PyBuffer_Release(&order);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    { "em_pass", em_pass, METH_VARARGS, "Fused E-step and counts over a block of tasks." },
    { "count", count, METH_VARARGS, "Counts of labels by truth over a block of tasks." },
    { "group", group, METH_VARARGS, "Row numbers grouped by task, in order." },
    { "encode", encode, METH_VARARGS, "The code of each annotation's worker and label." },
    { "vote_pass", vote_pass, METH_VARARGS, "Shares of votes and their counts." },
    { "coin_pass", coin_pass, METH_VARARGS, "E-step where a label lifts its own class." },
    { "few_pass", few_pass, METH_VARARGS, "The same with very many classes." },
    { "glad_sweep", glad_sweep, METH_VARARGS, "GLAD: a step of each task's ease, and both steps' sums." },
    { "entropy_pass", entropy_pass, METH_VARARGS, "Minimax entropy: steps of tasks, sums of workers." },
    { "new_cells", new_cells, METH_VARARGS, "Dictionaries for the texts of columns." },
    { "read_cells", read_cells, METH_VARARGS, "The codes of a block of delimited text." },
    { "join_cells", join_cells, METH_VARARGS, "The codes of one dictionary in another." },
    { "name_cells", name_cells, METH_VARARGS, "The texts of a dictionary in order." },
    { "sort_names", sort_names, METH_VARARGS, "The order of a list of texts." },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "_native", NULL, -1, methods };

/* SOURCES comes from setup.py, and compiled.py compares it with the sources beside the module. */
PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *m = PyModule_Create(&module);
    if (m && PyModule_AddIntConstant(m, "SOURCES", SOURCES) < 0) Py_CLEAR(m);
    return m;
}
