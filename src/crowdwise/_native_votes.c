/* Sweeps without a table for each truth: shares of votes, and labels that lift their own class.
 * See inference/engines/kernels.py for the plain twins. */

#include "_native.h"

INLINE int64_t label_at(const void *label, int size, int64_t i)
{
    switch (size) {
    case 1: return ((const int8_t *)label)[i];
    case 2: return ((const int16_t *)label)[i];
    case 4: return ((const int32_t *)label)[i];
    default: return ((const int64_t *)label)[i];
    }
}

/* encode(worker, label, place, code, start, stop, n_labels): code = place[worker * n_labels +
 * label], or that number itself where `place` is None, for the annotations from start to stop. */
PyObject *encode(PyObject *self, PyObject *args)
{
    Py_buffer b[4];
    long long start, stop, k;
    if (!PyArg_ParseTuple(args, "y*y*z*w*LLL", &b[0], &b[1], &b[2], &b[3], &start, &stop, &k))
        return NULL;
    const int32_t *worker = b[0].buf, *place = content(&b[2]);
    const void *label = b[1].buf;
    const int size = b[0].len ? (int)(b[1].len / (b[0].len / (Py_ssize_t)sizeof(int32_t))) : 1;
    int32_t *code = b[3].buf;
    Py_BEGIN_ALLOW_THREADS
    if (size == 1 && !place)
        for (int64_t i = start; i < stop; i++)
            code[i] = worker[i] * (int32_t)k + ((const int8_t *)label)[i];
    else
        for (int64_t i = start; i < stop; i++) {
            const int64_t whole = worker[i] * k + label_at(label, size, i);
            code[i] = place ? place[whole] : (int32_t)whole;
        }
    Py_END_ALLOW_THREADS
    release(b, 4);
    Py_RETURN_NONE;
}

typedef struct {
    const int64_t *indptr;  /* (n_tasks + 1): where each task's cells begin */
    const int32_t *code;    /* (n_cells): which (worker, label) */
    const double *value;    /* (n_cells) or NULL for all ones */
    const int32_t *label;   /* (n_codes): its label */
    const int32_t *gold;    /* (n_tasks): known class, -1 for none; or NULL */
    int64_t start, stop, k; /* the block of tasks, and the number of classes */
} Block;

/* The votes of one task by class, in `row`; `named` receives the classes that have any. */
INLINE int64_t gather(const Block *a, int64_t task, double *row, int32_t *named, double *total)
{
    int64_t n = 0;
    double sum = 0.0;
    for (int64_t i = a->indptr[task]; i < a->indptr[task + 1]; i++) {
        const int32_t label = a->label[a->code[i]];
        const double value = a->value ? a->value[i] : 1.0;
        if (value <= 0.0) continue;
        if (row[label] == 0.0) named[n++] = label;
        row[label] += value;
        sum += value;
    }
    *total = sum;
    return n;
}

static void count_votes(const Block *a, double *truths, double *counts, int whole, double *row,
                        int32_t *named)
{
    const int64_t k = a->k;
    for (int64_t task = a->start; task < a->stop; task++) {
        const int64_t first = a->indptr[task], last = a->indptr[task + 1];
        const int32_t gold = a->gold ? a->gold[task] : -1;
        double total;
        int64_t n = gather(a, task, row, named, &total);
        if (gold >= 0) {
            for (int64_t j = 0; j < n; j++) row[named[j]] = 0.0;
            row[gold] = 1.0;
            named[0] = gold;
            n = 1;
        } else if (total > 0.0) {
            for (int64_t j = 0; j < n; j++) row[named[j]] /= total;
        } else {
            for (int64_t c = 0; c < k; c++) truths[c] += 1.0 / (double)k;
        }
        for (int64_t j = 0; j < n; j++) truths[named[j]] += row[named[j]];
        for (int64_t i = first; i < last; i++) {
            const double value = a->value ? a->value[i] : 1.0;
            const int32_t code = a->code[i];
            if (whole) {
                double *cell = counts + (int64_t)code * k;
                for (int64_t j = 0; j < n; j++) cell[named[j]] += value * row[named[j]];
            } else {
                counts[code] += value * row[a->label[code]];
            }
        }
        for (int64_t j = 0; j < n; j++) row[named[j]] = 0.0;
    }
}

/* The same for a few classes, and whole counts: a task's row lives in registers. */
INLINE void few_votes_over(const Block *a, double *restrict truths, double *restrict counts,
                           const int64_t k)
{
    double one_hot[SMALL * SMALL] = { 0.0 }; /* added without a branch on the label */
    for (int64_t c = 0; c < k; c++) one_hot[c * k + c] = 1.0;
    for (int64_t task = a->start; task < a->stop; task++) {
        const int64_t first = a->indptr[task], last = a->indptr[task + 1];
        const int32_t gold = a->gold ? a->gold[task] : -1;
        double row[SMALL] = { 0.0 }, total = 0.0;
        for (int64_t i = first; i < last; i++)
            add_to(row, one_hot + a->label[a->code[i]] * k, a->value, i, k);
        for (int64_t c = 0; c < k; c++) total += row[c];
        const double even = 1.0 / (double)k, scale = total > 0.0 ? 1.0 / total : 0.0;
        if (gold >= 0)
            for (int64_t c = 0; c < k; c++) row[c] = c == gold ? 1.0 : 0.0;
        else if (total > 0.0)
            for (int64_t c = 0; c < k; c++) row[c] *= scale;
        else
            for (int64_t c = 0; c < k; c++) row[c] = even;
        for (int64_t c = 0; c < k; c++) truths[c] += row[c];
        for (int64_t i = first; i < last; i++)
            add_to(counts + (int64_t)a->code[i] * k, row, a->value, i, k);
    }
}

MULTIVERSION static void count_few_votes(const Block *a, double *truths, double *counts)
{
    switch (a->k) {
    case 2: few_votes_over(a, truths, counts, 2); break;
    case 3: few_votes_over(a, truths, counts, 3); break;
    case 4: few_votes_over(a, truths, counts, 4); break;
    case 5: few_votes_over(a, truths, counts, 5); break;
    default: few_votes_over(a, truths, counts, a->k);
    }
}

/* vote_pass(indptr, code, value, label, gold, truths, counts, start, stop, k, whole): count as
 * if each task's share of votes, uniform without any, were its posterior. counts[code, truth]
 * is added to; unless `whole` counts[code], of right labels only. */
PyObject *vote_pass(PyObject *self, PyObject *args)
{
    Py_buffer b[7];
    long long start, stop, k;
    int whole;
    if (!PyArg_ParseTuple(args, "y*y*z*y*z*w*w*LLLp", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                          &b[6], &start, &stop, &k, &whole))
        return NULL;
    const Block block = { b[0].buf, b[1].buf, content(&b[2]), b[3].buf, content(&b[4]),
                          start, stop, k };
    double *row = calloc(k + 1, sizeof(double));
    int32_t *named = malloc((k + 1) * sizeof(int32_t));
    const int fits = row && named;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        if (whole && k <= SMALL) count_few_votes(&block, b[5].buf, b[6].buf);
        else count_votes(&block, b[5].buf, b[6].buf, whole, row, named);
        Py_END_ALLOW_THREADS
    }
    free(row);
    free(named);
    release(b, 7);
    if (!fits) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

typedef struct {
    Block at;
    const double *prior;    /* (k): log prior */
    const double *lift;     /* (n_codes): how far a label lifts its class over the others */
    const double *wrong;    /* (n_codes): log P(label | another class) */
    double *posterior;      /* (n_tasks, k) or NULL */
    double *truths;         /* (k), added to */
    double *right;          /* (n_codes), added to, or NULL */
    int hard;
} Coins;

INLINE double coins_over(const Coins *a, const double *values, const int64_t k,
                         double *restrict joint)
{
    const Block *at = &a->at;
    double evidence = 0.0;
    for (int64_t first = at->start; first < at->stop; first += BATCH) {
        const int64_t n = at->stop - first < BATCH ? at->stop - first : BATCH;
        for (int64_t b = 0; b < n; b++) {
            const int64_t task = first + b, stop = at->indptr[task + 1];
            double *row = joint + b * k, wrong = 0.0; /* of one task: no sum waits for another */
            for (int64_t c = 0; c < k; c++) row[c] = a->prior[c];
            for (int64_t i = at->indptr[task]; i < stop; i++) {
                const int32_t code = at->code[i];
                const double value = values ? values[i] : 1.0;
                row[at->label[code]] += value * a->lift[code];
                wrong += value * a->wrong[code];
            }
            if (at->gold && at->gold[task] >= 0)
                for (int64_t c = 0; c < k; c++)
                    if (c != at->gold[task]) row[c] = -INFINITY;
            double top = row[0];
            for (int64_t c = 1; c < k; c++) top = row[c] > top ? row[c] : top;
            for (int64_t c = 0; c < k; c++) row[c] -= top;
            evidence += wrong + top;
        }
        if (a->hard) {
            for (int64_t i = 0; i < n * k; i++) joint[i] = joint[i] >= -TIE ? 1.0 : 0.0;
        } else {
            for (int64_t i = 0; i < n * k; i++) joint[i] = exp_of_nonpositive(joint[i]);
        }
        double product = 1.0;
        for (int64_t b = 0; b < n; b++) {
            const int64_t task = first + b;
            double *row = joint + b * k, sum = 0.0;
            for (int64_t c = 0; c < k; c++) sum += row[c];
            const double scale = 1.0 / sum;
            for (int64_t c = 0; c < k; c++) row[c] *= scale;
            for (int64_t c = 0; c < k; c++) a->truths[c] += row[c];
            if (a->posterior) memcpy(a->posterior + task * k, row, k * sizeof(double));
            if (a->right)
                for (int64_t i = at->indptr[task]; i < at->indptr[task + 1]; i++) {
                    const int32_t code = at->code[i];
                    a->right[code] += (values ? values[i] : 1.0) * row[at->label[code]];
                }
            product *= sum;
            if (product > 1e250) { evidence += a->hard ? 0.0 : log(product); product = 1.0; }
        }
        if (!a->hard) evidence += log(product);
    }
    return evidence;
}

MULTIVERSION static double run_coins(const Coins *a, double *joint)
{
    const double *values = a->at.value;
    switch (values ? 0 : a->at.k) {
    case 2: return coins_over(a, NULL, 2, joint);
    case 3: return coins_over(a, NULL, 3, joint);
    case 4: return coins_over(a, NULL, 4, joint);
    case 5: return coins_over(a, NULL, 5, joint);
    default: return coins_over(a, values, a->at.k, joint);
    }
}

/* With very many classes: only those that a task was given differ from each other. Codes are
 * workers, and `label` has an entry for each cell. Without `lift`, shares of votes. */
static double run_few(const Coins *a, double *lift, int32_t *named, int32_t *slot)
{
    const Block *at = &a->at;
    double evidence = 0.0, rests = 0.0;
    for (int64_t task = at->start; task < at->stop; task++) {
        const int64_t first = at->indptr[task], last = at->indptr[task + 1];
        const int32_t gold = at->gold ? at->gold[task] : -1;
        int32_t n = 0;
        double all_wrong = 0.0, top = 0.0, taken = 0.0, total = 0.0;
        if (first == last && gold < 0) continue;
        for (int64_t i = first; i < last; i++) {
            const int32_t worker = at->code[i], label = at->label[i];
            const double value = at->value ? at->value[i] : 1.0;
            if (slot[label] < 0) { slot[label] = n; named[n] = label; lift[n++] = 0.0; }
            lift[slot[label]] += a->lift ? value * a->lift[worker] : value;
            all_wrong += a->lift ? value * a->wrong[worker] : 0.0;
        }
        if (gold >= 0) {
            evidence += all_wrong + (slot[gold] >= 0 ? lift[slot[gold]] : 0.0) + log(a->prior[gold]);
            for (int32_t j = 0; j < n; j++) lift[j] = named[j] == gold;
            a->truths[gold] += 1.0;
        } else if (!a->lift) {
            for (int32_t j = 0; j < n; j++) total += lift[j];
            for (int32_t j = 0; j < n; j++) a->truths[named[j]] += lift[j] /= total;
        } else {
            for (int32_t j = 0; j < n; j++) top = lift[j] > top ? lift[j] : top;
            for (int32_t j = 0; j < n; j++) {
                taken += a->prior[named[j]];
                lift[j] = a->prior[named[j]] * exp_of_nonpositive(lift[j] - top);
                total += lift[j];
            }
            const double others = exp_of_nonpositive(-top);
            total += (taken < 1.0 ? 1.0 - taken : 0.0) * others;
            const double rest = others / total;
            for (int32_t j = 0; j < n; j++) {
                lift[j] /= total;
                a->truths[named[j]] += lift[j] - rest * a->prior[named[j]];
            }
            rests += rest;
            evidence += all_wrong + top + log(total);
        }
        for (int64_t i = first; i < last; i++)
            a->right[at->code[i]] += (at->value ? at->value[i] : 1.0) * lift[slot[at->label[i]]];
        for (int32_t j = 0; j < n; j++) slot[named[j]] = -1;
    }
    for (int64_t c = 0; c < at->k; c++) a->truths[c] += rests * a->prior[c];
    return evidence;
}

/* coin_pass(indptr, code, value, label, gold, prior, lift, wrong, posterior, truths, right,
 *           start, stop, hard) -> evidence. `truths` and `right` are added to. */
PyObject *coin_pass(PyObject *self, PyObject *args)
{
    Py_buffer b[11];
    long long start, stop;
    int hard;
    if (!PyArg_ParseTuple(args, "y*y*z*y*z*y*y*y*w*w*w*LLp", &b[0], &b[1], &b[2], &b[3], &b[4],
                          &b[5], &b[6], &b[7], &b[8], &b[9], &b[10], &start, &stop, &hard))
        return NULL;
    const int64_t k = b[5].len / (int64_t)sizeof(double);
    const Coins pass = {
        { b[0].buf, b[1].buf, content(&b[2]), b[3].buf, content(&b[4]), start, stop, k },
        b[5].buf, b[6].buf, b[7].buf, content(&b[8]), b[9].buf, content(&b[10]), hard,
    };
    double *joint = malloc(BATCH * k * sizeof(double)), evidence = 0.0;
    if (joint) {
        Py_BEGIN_ALLOW_THREADS
        evidence = run_coins(&pass, joint);
        Py_END_ALLOW_THREADS
    }
    free(joint);
    release(b, 11);
    return joint ? PyFloat_FromDouble(evidence) : PyErr_NoMemory();
}

/* few_pass(indptr, worker, value, label, gold, prior, lift, wrong, truths, right, start, stop)
 * -> evidence. As coin_pass by worker, where `prior` is no logarithm and tasks without labels
 * do not count; time and memory do not grow with tasks x classes. `lift` may be None: votes. */
PyObject *few_pass(PyObject *self, PyObject *args)
{
    Py_buffer b[10];
    long long start, stop;
    if (!PyArg_ParseTuple(args, "y*y*z*y*z*y*z*z*w*w*LL", &b[0], &b[1], &b[2], &b[3], &b[4],
                          &b[5], &b[6], &b[7], &b[8], &b[9], &start, &stop))
        return NULL;
    const int64_t k = b[5].len / (int64_t)sizeof(double);
    const Coins pass = {
        { b[0].buf, b[1].buf, content(&b[2]), b[3].buf, content(&b[4]), start, stop, k },
        b[5].buf, content(&b[6]), content(&b[7]), NULL, b[8].buf, b[9].buf, 0,
    };
    double *lift = malloc(k * sizeof(double)), evidence = 0.0;
    int32_t *named = malloc(k * sizeof(int32_t)), *slot = malloc(k * sizeof(int32_t));
    const int fits = lift && named && slot;
    if (fits) {
        memset(slot, -1, k * sizeof(int32_t));
        Py_BEGIN_ALLOW_THREADS
        evidence = run_few(&pass, lift, named, slot);
        Py_END_ALLOW_THREADS
    }
    free(lift);
    free(named);
    free(slot);
    release(b, 10);
    return fits ? PyFloat_FromDouble(evidence) : PyErr_NoMemory();
}
