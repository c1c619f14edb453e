/* GLAD's sweeps: the objective as a function of skills, and of each task's ease.
 * See inference/glad_steps.py for the plain twins. */

#include "_native.h"

#define LONGEST 1.0      /* as in inference/logistic.py */
#define MOST_HALVINGS 30
#define ROUNDING 1e-12
#define CELLS 512        /* cells taken at once, but whole tasks */

typedef struct {
    const int64_t *indptr;  /* (n_tasks + 1) */
    const int32_t *code;    /* (n_cells): which (worker, label) */
    const double *value;    /* (n_cells) or NULL for all ones */
    const int32_t *worker;  /* (n_codes) */
    const int32_t *label;   /* (n_codes) */
    const double *skill;    /* (n_workers) */
    int64_t start, stop, k;
} Rows;

/* The tasks from `first` on that have about CELLS cells together, one at least. */
INLINE int64_t batch_end(const Rows *a, int64_t first)
{
    int64_t last = first + 1;
    while (last < a->stop && last - first < CELLS && a->indptr[last + 1] - a->indptr[first] <= CELLS)
        last++;
    return last;
}

static int64_t largest_batch(const Rows *a)
{
    int64_t most = CELLS;
    for (int64_t task = a->start; task < a->stop; task++) {
        const int64_t n = a->indptr[task + 1] - a->indptr[task];
        most = n > most ? n : most;
    }
    return most;
}

INLINE void fade(const double *restrict x, double *restrict e, int64_t n)
{
    for (int64_t i = 0; i < n; i++) e[i] = exp_of_nonpositive(-fabs(x[i]));
}

INLINE double chance_of(double x, double e) { return (x >= 0.0 ? 1.0 : e) / (1.0 + e); }

MULTIVERSION static void run_skill(const Rows *a, const double *posterior, const double *ease,
                                   double *sums, double *x, double *e)
{
    for (int64_t first = a->start, last; first < a->stop; first = last) {
        last = batch_end(a, first);
        const int64_t low = a->indptr[first], n = a->indptr[last] - low;
        for (int64_t task = first; task < last; task++)
            for (int64_t i = a->indptr[task]; i < a->indptr[task + 1]; i++)
                x[i - low] = a->skill[a->worker[a->code[i]]] * ease[task];
        fade(x, e, n);
        for (int64_t task = first; task < last; task++)
            for (int64_t i = a->indptr[task]; i < a->indptr[task + 1]; i++) {
                const int32_t code = a->code[i];
                const double at = x[i - low], part = e[i - low], chance = chance_of(at, part);
                const double right = posterior[task * a->k + a->label[code]];
                const double gain = right * at - (at > 0.0 ? at : 0.0);
                double *to = sums + 4 * (int64_t)a->worker[code], scale = ease[task];
                if (a->value) {
                    to[0] += a->value[i] * (gain - log1p(part));
                    to[1] += a->value[i] * (right - chance) * scale;
                    to[2] += a->value[i] * chance * (1.0 - chance) * scale * scale;
                } else { /* one logarithm for many factors */
                    to[0] += gain;
                    to[1] += (right - chance) * scale;
                    to[2] += chance * (1.0 - chance) * scale * scale;
                    to[3] *= 1.0 + part;
                    if (to[3] > 1e250) { to[0] -= log(to[3]); to[3] = 1.0; }
                }
            }
    }
}

/* skill_pass(indptr, code, value, worker, label, skill, posterior, ease, sums, start, stop, k):
 * sums[worker] += value, slope and curvature of the objective; the fourth column is a factor,
 * 1 at first, whose logarithm is still to be taken off the value. */
PyObject *skill_pass(PyObject *self, PyObject *args)
{
    Py_buffer b[9];
    long long start, stop, k;
    if (!PyArg_ParseTuple(args, "y*y*z*y*y*y*y*y*w*LLL", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
                          &b[6], &b[7], &b[8], &start, &stop, &k))
        return NULL;
    const Rows rows = { b[0].buf, b[1].buf, content(&b[2]), b[3].buf, b[4].buf, b[5].buf,
                        start, stop, k };
    double *x = malloc(2 * largest_batch(&rows) * sizeof(double));
    if (x) {
        Py_BEGIN_ALLOW_THREADS
        run_skill(&rows, b[6].buf, b[7].buf, b[8].buf, x, x + largest_batch(&rows));
        Py_END_ALLOW_THREADS
    }
    free(x);
    release(b, 9);
    if (!x) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

typedef struct {
    Rows rows;
    const double *prior;    /* (k): log prior of the truths */
    const int32_t *gold;    /* (n_tasks) or NULL */
    double *log_ease;       /* (n_tasks), moved */
    double *posterior;      /* (n_tasks, k), replaced */
    double *truths;         /* (k), added to */
    double mean, variance;  /* of the prior of log ease */
    int move;               /* whether to take a step before the E-step */
} Ease;

/* Value of a task's part of the objective, and slope and curvature by ease if they are asked for. */
INLINE double task_value(const Rows *a, int64_t task, const double *x, const double *e,
                         const double *row, double *slope, double *curvature)
{
    double value = 0.0, product = 1.0, up = 0.0, bend = 0.0;
    const int64_t low = a->indptr[task];
    for (int64_t i = low; i < a->indptr[task + 1]; i++) {
        const int32_t code = a->code[i];
        const double weight = a->value ? a->value[i] : 1.0, at = x[i - low], part = e[i - low];
        const double right = row[a->label[code]];
        value += weight * (right * at - (at > 0.0 ? at : 0.0));
        if (a->value) value -= weight * log1p(part); else product *= 1.0 + part;
        if (product > 1e250) { value -= log(product); product = 1.0; }
        if (slope) {
            const double skill = a->skill[a->worker[code]], chance = chance_of(at, part);
            up += weight * (right - chance) * skill;
            bend += weight * chance * (1.0 - chance) * skill * skill;
        }
    }
    if (slope) { *slope = up; *curvature = bend; }
    return value - log(product);
}

INLINE void place(const Rows *a, int64_t task, double ease, double *x)
{
    const int64_t low = a->indptr[task];
    for (int64_t i = low; i < a->indptr[task + 1]; i++)
        x[i - low] = a->skill[a->worker[a->code[i]]] * ease;
}

INLINE double pull(const Ease *a, double at) { return (at - a->mean) * (at - a->mean) / (2.0 * a->variance); }

INLINE int has_fallen(double before, double after)
{
    return !(after >= before - ROUNDING * (1.0 + fabs(before)));
}

/* A Newton step of one task whose first trial has fallen: halve it until it does not. */
static void halve(const Ease *a, int64_t task, double before, double step, double *x, double *e)
{
    const Rows *rows = &a->rows;
    const double *row = a->posterior + task * rows->k, here = a->log_ease[task];
    const int64_t n = rows->indptr[task + 1] - rows->indptr[task];
    for (int trial = 1; trial < MOST_HALVINGS; trial++) {
        step /= 2.0;
        place(rows, task, exp(here + step), x);
        fade(x, e, n);
        const double after = task_value(rows, task, x, e, row, NULL, NULL) - pull(a, here + step);
        if (!has_fallen(before, after)) { a->log_ease[task] = here + step; return; }
    }
    place(rows, task, exp(here), x);
    fade(x, e, n);
}

/* Moves the ease of the tasks of a batch; x and e are left at where they are then. */
INLINE void move_ease(const Ease *a, int64_t first, int64_t last, double *x, double *e,
                      double *before, double *step)
{
    const Rows *rows = &a->rows;
    const int64_t low = rows->indptr[first], k = rows->k;
    for (int64_t task = first; task < last; task++) {
        const int64_t at = rows->indptr[task] - low;
        const double ease = exp(a->log_ease[task]);
        double slope, curvature;
        before[task - first] = task_value(rows, task, x + at, e + at, a->posterior + task * k,
                                          &slope, &curvature) - pull(a, a->log_ease[task]);
        double bend = ease * ease * curvature - ease * slope;
        bend = (bend > 0.0 ? bend : 0.0) + 1.0 / a->variance;
        const double up = (ease * slope - (a->log_ease[task] - a->mean) / a->variance) / bend;
        step[task - first] = up > LONGEST ? LONGEST : up < -LONGEST ? -LONGEST : up;
        place(rows, task, exp(a->log_ease[task] + step[task - first]), x + at);
    }
    fade(x, e, rows->indptr[last] - low);
    for (int64_t task = first; task < last; task++) {
        const int64_t at = rows->indptr[task] - low, b = task - first;
        const double there = a->log_ease[task] + step[b];
        const double after = task_value(rows, task, x + at, e + at, a->posterior + task * k, NULL,
                                        NULL) - pull(a, there);
        if (has_fallen(before[b], after)) halve(a, task, before[b], step[b], x + at, e + at);
        else a->log_ease[task] = there;
    }
}

MULTIVERSION static double run_ease(const Ease *a, double *x, double *e, double *before,
                                    double *step)
{
    const Rows *rows = &a->rows;
    const int64_t k = rows->k;
    const double others = log(k > 1 ? (double)(k - 1) : 1.0);
    double evidence = 0.0;
    for (int64_t first = rows->start, last; first < rows->stop; first = last) {
        last = batch_end(rows, first);
        const int64_t low = rows->indptr[first];
        for (int64_t task = first; task < last; task++)
            place(rows, task, exp(a->log_ease[task]), x + (rows->indptr[task] - low));
        fade(x, e, rows->indptr[last] - low);
        if (a->move) move_ease(a, first, last, x, e, before, step);
        for (int64_t task = first; task < last; task++) {
            double *row = a->posterior + task * k, product = 1.0, sum = 0.0;
            for (int64_t c = 0; c < k; c++) row[c] = a->prior[c];
            for (int64_t i = rows->indptr[task]; i < rows->indptr[task + 1]; i++) {
                const double weight = rows->value ? rows->value[i] : 1.0, at = x[i - low];
                row[rows->label[rows->code[i]]] += weight * (at + others);
                evidence -= weight * ((at > 0.0 ? at : 0.0) + others);
                if (rows->value) evidence -= weight * log1p(e[i - low]);
                else product *= 1.0 + e[i - low];
                if (product > 1e250) { evidence -= log(product); product = 1.0; }
            }
            if (a->gold && a->gold[task] >= 0)
                for (int64_t c = 0; c < k; c++) if (c != a->gold[task]) row[c] = -INFINITY;
            double top = row[0];
            for (int64_t c = 1; c < k; c++) top = row[c] > top ? row[c] : top;
            for (int64_t c = 0; c < k; c++) row[c] = exp_of_nonpositive(row[c] - top);
            for (int64_t c = 0; c < k; c++) sum += row[c];
            for (int64_t c = 0; c < k; c++) row[c] /= sum;
            for (int64_t c = 0; c < k; c++) a->truths[c] += row[c];
            evidence += top + log(sum / product);
        }
    }
    return evidence;
}

/* ease_pass(indptr, code, value, worker, label, skill, prior, gold, log_ease, posterior, truths,
 *           mean, variance, start, stop, move) -> evidence. */
PyObject *ease_pass(PyObject *self, PyObject *args)
{
    Py_buffer b[11];
    long long start, stop;
    double mean, variance;
    int move;
    if (!PyArg_ParseTuple(args, "y*y*z*y*y*y*y*z*w*w*w*ddLLp", &b[0], &b[1], &b[2], &b[3], &b[4],
                          &b[5], &b[6], &b[7], &b[8], &b[9], &b[10], &mean, &variance, &start,
                          &stop, &move))
        return NULL;
    const Ease pass = {
        { b[0].buf, b[1].buf, content(&b[2]), b[3].buf, b[4].buf, b[5].buf, start, stop,
          b[6].len / (int64_t)sizeof(double) },
        b[6].buf, content(&b[7]), b[8].buf, b[9].buf, b[10].buf, mean, variance, move,
    };
    const int64_t most = largest_batch(&pass.rows);
    double *x = malloc((2 * most + 2 * CELLS) * sizeof(double)), evidence = 0.0;
    if (x) {
        Py_BEGIN_ALLOW_THREADS
        evidence = run_ease(&pass, x, x + most, x + 2 * most, x + 2 * most + CELLS);
        Py_END_ALLOW_THREADS
    }
    free(x);
    release(b, 11);
    return x ? PyFloat_FromDouble(evidence) : PyErr_NoMemory();
}
