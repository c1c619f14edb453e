/* GLAD's sweep: for each task a step of its ease and its truth, and the objective as a function of
 * every worker's skill before and after. See inference/glad_steps.py for the plain twin. */

#include "_native.h"

#define LONGEST 1.0      /* as in inference/logistic.py */
#define MOST_HALVINGS 30
#define ROUNDING 1e-12
#define CELLS 512        /* cells taken at once, but whole tasks */
#define COLUMNS 6        /* value, slope, curvature and a factor; value and factor of the trial */

typedef struct {
    const int64_t *indptr;    /* (n_tasks + 1) */
    const int32_t *code;      /* (n_cells): which (worker, label) */
    const double *value;      /* (n_cells) or NULL for all ones */
    const int32_t *worker;    /* (n_codes) */
    const int32_t *label;     /* (n_codes) */
    const int32_t *gold;      /* (n_tasks) or NULL */
    const double *old_prior;  /* (k): log prior of the truths, as it was */
    const double *old_skill;  /* (n_workers) */
    const double *prior;      /* (k) */
    const double *skill;      /* (n_workers) */
    const double *log_ease;   /* (n_tasks) */
    double *next_ease;        /* (n_tasks), replaced: its logarithm after the step */
    double *posterior;        /* (n_tasks, k) or NULL, replaced */
    double *truths;           /* (k), added to */
    double *sums;             /* (n_workers, COLUMNS) or NULL, added to; factors are multiplied */
    double mean, variance;    /* of the prior of log ease */
    int64_t n_tasks, k;
    int move;                 /* whether to take a step before the E-step */
} Glad;

typedef struct {
    double *x, *e;                 /* (n_cells of a batch): skill times ease, exp(-|x|) */
    double *row;                   /* (CELLS, k): posteriors */
    double *ease, *before, *step;  /* (CELLS), one for each task of a batch */
} Work;

/* The tasks from `first` on that have about CELLS cells together, one at least. */
INLINE int64_t batch_end(const Glad *a, int64_t first)
{
    int64_t last = first + 1;
    while (last < a->n_tasks && last - first < CELLS && a->indptr[last + 1] - a->indptr[first] <= CELLS)
        last++;
    return last;
}

static int64_t largest_batch(const Glad *a)
{
    int64_t most = CELLS;
    for (int64_t task = 0; task < a->n_tasks; task++) {
        const int64_t n = a->indptr[task + 1] - a->indptr[task];
        most = n > most ? n : most;
    }
    return most;
}

INLINE void fade(const double *restrict x, double *restrict e, int64_t n)
{
    for (int64_t i = 0; i < n; i++) e[i] = exp_of_nonpositive(-fabs(x[i]));
}

/* The ease of the tasks of a batch; exp_of_nonpositive is as exact for positive numbers below 708. */
INLINE void find_ease(const double *restrict log_ease, const double *restrict step,
                      double *restrict ease, int64_t n)
{
    for (int64_t b = 0; b < n; b++) {
        const double at = log_ease[b] + (step ? step[b] : 0.0);
        ease[b] = exp_of_nonpositive(at > 708.0 ? 708.0 : at);
    }
}

INLINE double chance_of(double x, double e) { return (x >= 0.0 ? 1.0 : e) / (1.0 + e); }

INLINE void place(const Glad *a, int64_t task, double ease, double *x)
{
    const int64_t low = a->indptr[task];
    for (int64_t i = low; i < a->indptr[task + 1]; i++)
        x[i - low] = a->skill[a->worker[a->code[i]]] * ease;
}

INLINE double pull(const Glad *a, double at)
{
    return (at - a->mean) * (at - a->mean) / (2.0 * a->variance);
}

INLINE int has_fallen(double before, double after)
{
    return !(after >= before - ROUNDING * (1.0 + fabs(before)));
}

/* P(truth | labels) from log joints, in place; what was taken out of them. */
INLINE double normalize(const Glad *a, int64_t task, double *row, double *sum)
{
    const int64_t k = a->k;
    if (a->gold && a->gold[task] >= 0)
        for (int64_t c = 0; c < k; c++) if (c != a->gold[task]) row[c] = -INFINITY;
    double top = row[0];
    *sum = 0.0;
    for (int64_t c = 1; c < k; c++) top = row[c] > top ? row[c] : top;
    for (int64_t c = 0; c < k; c++) row[c] = exp_of_nonpositive(row[c] - top);
    for (int64_t c = 0; c < k; c++) *sum += row[c];
    for (int64_t c = 0; c < k; c++) row[c] /= *sum;
    return top;
}

/* The posterior of a task as it was before this step. */
INLINE void recall(const Glad *a, int64_t task, double ease, double others, double *row)
{
    double sum;
    for (int64_t c = 0; c < a->k; c++) row[c] = a->old_prior[c];
    for (int64_t i = a->indptr[task]; i < a->indptr[task + 1]; i++) {
        const int32_t code = a->code[i];
        const double weight = a->value ? a->value[i] : 1.0;
        row[a->label[code]] += weight * (a->old_skill[a->worker[code]] * ease + others);
    }
    normalize(a, task, row, &sum);
}

/* Adds to a worker's last columns what the skill is worth under the posterior as it was. */
INLINE void add_trial(const Glad *a, int64_t who, double weight, double gain, double part)
{
    double *to = a->sums + COLUMNS * who;
    if (a->value) {
        to[4] += weight * (gain - log1p(part));
    } else { /* one logarithm for many factors */
        to[4] += gain;
        to[5] *= 1.0 + part;
        if (to[5] > 1e250) { to[4] -= log(to[5]); to[5] = 1.0; }
    }
}

/* Value of a task's part of the objective; and if they are asked for, slope and curvature by ease,
 * with the trial of its workers' skills. */
INLINE double task_value(const Glad *a, int64_t task, const double *x, const double *e,
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
            const int64_t who = a->worker[code];
            const double skill = a->skill[who], chance = chance_of(at, part);
            up += weight * (right - chance) * skill;
            bend += weight * chance * (1.0 - chance) * skill * skill;
            if (a->sums) add_trial(a, who, weight, right * at - (at > 0.0 ? at : 0.0), part);
        }
    }
    if (slope) { *slope = up; *curvature = bend; }
    return value - log(product);
}

/* A Newton step of one task whose first trial has fallen: halve it until it does not. */
static double halve(const Glad *a, int64_t task, const double *row, double before, double step,
                    double *x, double *e)
{
    const double here = a->log_ease[task];
    const int64_t n = a->indptr[task + 1] - a->indptr[task];
    for (int trial = 1; trial < MOST_HALVINGS; trial++) {
        step /= 2.0;
        place(a, task, exp(here + step), x);
        fade(x, e, n);
        const double after = task_value(a, task, x, e, row, NULL, NULL) - pull(a, here + step);
        if (!has_fallen(before, after)) return here + step;
    }
    place(a, task, exp(here), x);
    fade(x, e, n);
    return here;
}

/* Adds to the first columns value, slope and curvature by skill under the posterior as it is. */
INLINE void add_shape(const Glad *a, int64_t task, double ease, const double *x, const double *e,
                      const double *row)
{
    const int64_t low = a->indptr[task];
    for (int64_t i = low; i < a->indptr[task + 1]; i++) {
        const int32_t code = a->code[i];
        const double at = x[i - low], part = e[i - low], chance = chance_of(at, part);
        const double right = row[a->label[code]], weight = a->value ? a->value[i] : 1.0;
        const double gain = right * at - (at > 0.0 ? at : 0.0);
        double *to = a->sums + COLUMNS * (int64_t)a->worker[code];
        to[1] += weight * (right - chance) * ease;
        to[2] += weight * chance * (1.0 - chance) * ease * ease;
        if (a->value) {
            to[0] += weight * (gain - log1p(part));
        } else {
            to[0] += gain;
            to[3] *= 1.0 + part;
            if (to[3] > 1e250) { to[0] -= log(to[3]); to[3] = 1.0; }
        }
    }
}

/* Moves the ease of the tasks of a batch; x, e and ease are left at where they are then. */
INLINE void move_ease(const Glad *a, int64_t first, int64_t last, double others, const Work *w)
{
    const int64_t low = a->indptr[first], k = a->k;
    for (int64_t task = first, b = 0; task < last; task++, b++) {
        const int64_t at = a->indptr[task] - low;
        const double here = a->log_ease[task], ease = w->ease[b];
        double slope, curvature, *row = w->row + b * k;
        recall(a, task, ease, others, row);
        w->before[b] = task_value(a, task, w->x + at, w->e + at, row, &slope, &curvature)
                       - pull(a, here);
        double bend = ease * ease * curvature - ease * slope;
        bend = (bend > 0.0 ? bend : 0.0) + 1.0 / a->variance;
        const double up = (ease * slope - (here - a->mean) / a->variance) / bend;
        w->step[b] = up > LONGEST ? LONGEST : up < -LONGEST ? -LONGEST : up;
    }
    find_ease(a->log_ease + first, w->step, w->ease, last - first);
    for (int64_t task = first; task < last; task++)
        place(a, task, w->ease[task - first], w->x + (a->indptr[task] - low));
    fade(w->x, w->e, a->indptr[last] - low);
    for (int64_t task = first, b = 0; task < last; task++, b++) {
        const int64_t at = a->indptr[task] - low;
        const double there = a->log_ease[task] + w->step[b], *row = w->row + b * k;
        const double after = task_value(a, task, w->x + at, w->e + at, row, NULL, NULL)
                             - pull(a, there);
        a->next_ease[task] = there;
        if (has_fallen(w->before[b], after)) {
            a->next_ease[task] = halve(a, task, row, w->before[b], w->step[b], w->x + at, w->e + at);
            w->ease[b] = exp(a->next_ease[task]);
        }
    }
}

MULTIVERSION static double run_glad(const Glad *a, const Work *w)
{
    const int64_t k = a->k;
    const double others = log(k > 1 ? (double)(k - 1) : 1.0);
    double evidence = 0.0;
    for (int64_t first = 0, last; first < a->n_tasks; first = last) {
        last = batch_end(a, first);
        const int64_t low = a->indptr[first];
        find_ease(a->log_ease + first, NULL, w->ease, last - first);
        for (int64_t task = first; task < last; task++)
            place(a, task, w->ease[task - first], w->x + (a->indptr[task] - low));
        fade(w->x, w->e, a->indptr[last] - low);
        if (a->move) move_ease(a, first, last, others, w);
        for (int64_t task = first; task < last; task++) {
            double *row = a->posterior ? a->posterior + task * k : w->row, product = 1.0, sum;
            const double *x = w->x - low, *e = w->e - low;
            for (int64_t c = 0; c < k; c++) row[c] = a->prior[c];
            for (int64_t i = a->indptr[task]; i < a->indptr[task + 1]; i++) {
                const double weight = a->value ? a->value[i] : 1.0, at = x[i];
                row[a->label[a->code[i]]] += weight * (at + others);
                evidence -= weight * ((at > 0.0 ? at : 0.0) + others);
                if (a->value) evidence -= weight * log1p(e[i]);
                else product *= 1.0 + e[i];
                if (product > 1e250) { evidence -= log(product); product = 1.0; }
            }
            const double top = normalize(a, task, row, &sum);
            for (int64_t c = 0; c < k; c++) a->truths[c] += row[c];
            evidence += top + log(sum / product);
            if (a->sums) {
                const int64_t at = a->indptr[task] - low;
                add_shape(a, task, w->ease[task - first], w->x + at, w->e + at, row);
            }
        }
    }
    return evidence;
}

/* glad_pass(indptr, code, value, worker, label, gold, old_prior, old_skill, prior, skill, log_ease,
 *           next_ease, posterior, truths, sums, mean, variance, move) -> evidence. */
PyObject *glad_pass(PyObject *self, PyObject *args)
{
    Py_buffer b[15];
    double mean, variance;
    int move;
    if (!PyArg_ParseTuple(args, "y*y*z*y*y*z*y*y*y*y*y*w*w*w*w*ddp", &b[0], &b[1], &b[2], &b[3],
                          &b[4], &b[5], &b[6], &b[7], &b[8], &b[9], &b[10], &b[11], &b[12], &b[13],
                          &b[14], &mean, &variance, &move))
        return NULL;
    const Glad pass = {
        b[0].buf, b[1].buf, content(&b[2]), b[3].buf, b[4].buf, content(&b[5]), b[6].buf, b[7].buf,
        b[8].buf, b[9].buf, b[10].buf, b[11].buf, content(&b[12]), b[13].buf, content(&b[14]),
        mean, variance, b[0].len / (int64_t)sizeof(int64_t) - 1, b[8].len / (int64_t)sizeof(double),
        move,
    };
    const int64_t most = largest_batch(&pass);
    double *x = malloc((2 * most + (3 + pass.k) * CELLS) * sizeof(double)), evidence = 0.0;
    if (x) {
        double *rest = x + 2 * most;
        const Work work = { x, x + most, rest + 3 * CELLS, rest, rest + CELLS, rest + 2 * CELLS };
        Py_BEGIN_ALLOW_THREADS
        evidence = run_glad(&pass, &work);
        Py_END_ALLOW_THREADS
    }
    free(x);
    release(b, 15);
    return x ? PyFloat_FromDouble(evidence) : PyErr_NoMemory();
}
