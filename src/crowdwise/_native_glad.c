/* GLAD's sweep: for each task a step of its ease and its truth, and the objective as a function of
 * every worker's skill before and after. See inference/glad_steps.py for the plain twin. */

#include "_native.h"

#define LONGEST 1.0      /* as in inference/logistic.py */
#define MOST_HALVINGS 30
#define ROUNDING 1e-12
#define CELLS 512        /* cells taken at once, but whole tasks */
#define COLUMNS 4        /* value, slope and curvature; value of the trial */

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
    double *sums;             /* (n_workers, COLUMNS) or NULL, added to */
    double mean, variance;    /* of the prior of log ease */
    int64_t n_tasks, k;
    int move;                 /* whether to take a step before the E-step */
} Glad;

/* A batch: some tasks, and their cells. All that takes exponentials and logarithms is done for
 * the whole batch in a loop of its own, which the compiler can vectorize. */
typedef struct {
    int64_t first, last, low, n;             /* its tasks; its first cell, and how many it has */
    int32_t *who, *label;                    /* (n) */
    double *weight, *skill, *x;              /* (n): x is skill times ease */
    double *chance, *loss, *trial;           /* (n): sigmoid(x), log(1 + exp(x)) */
    double *row, *top, *sum;                 /* (tasks, k): posteriors; what was taken out of them */
    double *ease, *before, *step;            /* (tasks) */
} Batch;

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

INLINE void open_batch(const Glad *a, Batch *b, int64_t first)
{
    b->first = first;
    b->last = batch_end(a, first);
    b->low = a->indptr[first];
    b->n = a->indptr[b->last] - b->low;
    for (int64_t i = 0; i < b->n; i++) {
        const int32_t code = a->code[b->low + i];
        b->who[i] = a->worker[code];
        b->label[i] = a->label[code];
        b->skill[i] = a->skill[b->who[i]];
        b->weight[i] = a->value ? a->value[b->low + i] : 1.0;
        b->trial[i] = 0.0;
    }
}

/* The ease of the tasks; exp_of_nonpositive is as exact for positive numbers below 708. */
INLINE void find_ease(const double *restrict log_ease, double *restrict ease, int64_t n)
{
    for (int64_t t = 0; t < n; t++) {
        const double at = log_ease[t];
        ease[t] = exp_of_nonpositive(at > 708.0 ? 708.0 : at);
    }
}

/* What labels say at x: the chance that they are right, and -log of the chance that not. */
INLINE void respond(const double *restrict x, double *restrict chance, double *restrict loss,
                    int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double e = exp_of_nonpositive(-fabs(x[i]));
        chance[i] = (x[i] >= 0.0 ? 1.0 : e) / (1.0 + e);
        loss[i] = (x[i] > 0.0 ? x[i] : 0.0) + log_of_positive(1.0 + e);
    }
}

/* The cells of a task, counted within the batch. */
INLINE int64_t cells_of(const Glad *a, const Batch *b, int64_t t, int64_t *stop)
{
    *stop = a->indptr[b->first + t + 1] - b->low;
    return a->indptr[b->first + t] - b->low;
}

INLINE void place(const Glad *a, const Batch *b, int64_t t, double ease)
{
    int64_t stop, i = cells_of(a, b, t, &stop);
    for (; i < stop; i++) b->x[i] = b->skill[i] * ease;
}

INLINE void place_all(const Glad *a, const Batch *b)
{
    for (int64_t t = 0; t < b->last - b->first; t++) place(a, b, t, b->ease[t]);
    respond(b->x, b->chance, b->loss, b->n);
}

INLINE double pull(const Glad *a, double at)
{
    return (at - a->mean) * (at - a->mean) / (2.0 * a->variance);
}

INLINE int has_fallen(double before, double after)
{
    return !(after >= before - ROUNDING * (1.0 + fabs(before)));
}

/* exp(row) in place. */
INLINE void raise(double *restrict row, int64_t n)
{
    for (int64_t i = 0; i < n; i++) row[i] = exp_of_nonpositive(row[i]);
}

/* P(truth | labels) of each task from x, and what was taken out of them. */
INLINE void infer(const Glad *a, const Batch *b, const double *prior, double others)
{
    const int64_t k = a->k, n_tasks = b->last - b->first;
    for (int64_t t = 0; t < n_tasks; t++) {
        double *row = b->row + t * k;
        int64_t stop, i = cells_of(a, b, t, &stop);
        for (int64_t c = 0; c < k; c++) row[c] = prior[c];
        for (; i < stop; i++) row[b->label[i]] += b->weight[i] * (b->x[i] + others);
        if (a->gold && a->gold[b->first + t] >= 0)
            for (int64_t c = 0; c < k; c++) if (c != a->gold[b->first + t]) row[c] = -INFINITY;
        double top = row[0];
        for (int64_t c = 1; c < k; c++) top = row[c] > top ? row[c] : top;
        for (int64_t c = 0; c < k; c++) row[c] -= top;
        b->top[t] = top;
    }
    raise(b->row, n_tasks * k);
    for (int64_t t = 0; t < n_tasks; t++) {
        double *row = b->row + t * k, sum = 0.0;
        for (int64_t c = 0; c < k; c++) sum += row[c];
        for (int64_t c = 0; c < k; c++) row[c] /= sum;
        b->sum[t] = sum;
    }
}

/* A task's part of the objective, without the prior of its ease. */
INLINE double task_value(const Glad *a, const Batch *b, int64_t t)
{
    double value = 0.0;
    const double *row = b->row + t * a->k;
    int64_t stop, i = cells_of(a, b, t, &stop);
    for (; i < stop; i++) value += b->weight[i] * (row[b->label[i]] * b->x[i] - b->loss[i]);
    return value;
}

/* A Newton step of one task whose first trial has fallen: halve it until it does not. */
static double halve(const Glad *a, const Batch *b, int64_t t)
{
    const double here = a->log_ease[b->first + t];
    double step = b->step[t];
    int64_t stop, first = cells_of(a, b, t, &stop);
    for (int trial = 1; trial <= MOST_HALVINGS; trial++) {
        step = trial < MOST_HALVINGS ? step / 2.0 : 0.0;
        place(a, b, t, exp(here + step));
        respond(b->x + first, b->chance + first, b->loss + first, stop - first);
        if (!has_fallen(b->before[t], task_value(a, b, t) - pull(a, here + step))) break;
    }
    return here + step;
}

/* Moves the ease of the tasks, as the old posterior has it; x and all from it are left there. */
INLINE void move_ease(const Glad *a, const Batch *b, double others)
{
    const int64_t n_tasks = b->last - b->first;
    double *there = a->next_ease + b->first;
    for (int64_t t = 0; t < n_tasks; t++) {
        int64_t stop, i = cells_of(a, b, t, &stop);
        for (; i < stop; i++) b->x[i] = a->old_skill[b->who[i]] * b->ease[t];
    }
    infer(a, b, a->old_prior, others);
    place_all(a, b);
    for (int64_t t = 0; t < n_tasks; t++) {
        const double here = a->log_ease[b->first + t], ease = b->ease[t], *row = b->row + t * a->k;
        double value = 0.0, slope = 0.0, curvature = 0.0;
        int64_t stop, i = cells_of(a, b, t, &stop);
        for (; i < stop; i++) {
            const double weight = b->weight[i], right = row[b->label[i]], chance = b->chance[i];
            b->trial[i] = weight * (right * b->x[i] - b->loss[i]);
            value += b->trial[i];
            slope += weight * (right - chance) * b->skill[i];
            curvature += weight * chance * (1.0 - chance) * b->skill[i] * b->skill[i];
        }
        b->before[t] = value - pull(a, here);
        double bend = ease * ease * curvature - ease * slope;
        bend = (bend > 0.0 ? bend : 0.0) + 1.0 / a->variance;
        const double up = (ease * slope - (here - a->mean) / a->variance) / bend;
        b->step[t] = up > LONGEST ? LONGEST : up < -LONGEST ? -LONGEST : up;
        there[t] = here + b->step[t];
    }
    find_ease(there, b->ease, n_tasks);
    place_all(a, b);
    for (int64_t t = 0; t < n_tasks; t++)
        if (has_fallen(b->before[t], task_value(a, b, t) - pull(a, there[t]))) {
            there[t] = halve(a, b, t);
            b->ease[t] = exp(there[t]);
        }
}

/* Adds value, slope and curvature by skill under the posterior as it is, and the trial. */
INLINE void add_shape(const Glad *a, const Batch *b)
{
    for (int64_t t = 0; t < b->last - b->first; t++) {
        const double ease = b->ease[t], *row = b->row + t * a->k;
        int64_t stop, i = cells_of(a, b, t, &stop);
        for (; i < stop; i++) {
            const double weight = b->weight[i], right = row[b->label[i]], chance = b->chance[i];
            double *to = a->sums + COLUMNS * (int64_t)b->who[i];
            to[0] += weight * (right * b->x[i] - b->loss[i]);
            to[1] += weight * (right - chance) * ease;
            to[2] += weight * chance * (1.0 - chance) * ease * ease;
            to[3] += b->trial[i];
        }
    }
}

MULTIVERSION static double run_glad(const Glad *a, Batch *b)
{
    const int64_t k = a->k;
    const double others = log(k > 1 ? (double)(k - 1) : 1.0);
    double evidence = 0.0;
    for (int64_t first = 0; first < a->n_tasks; first = b->last) {
        open_batch(a, b, first);
        const int64_t n_tasks = b->last - first;
        find_ease(a->log_ease + first, b->ease, n_tasks);
        if (a->move) move_ease(a, b, others); else place_all(a, b);
        infer(a, b, a->prior, others);
        for (int64_t i = 0; i < b->n; i++) evidence -= b->weight[i] * (b->loss[i] + others);
        for (int64_t t = 0; t < n_tasks; t++) {
            evidence += b->top[t] + log_of_positive(b->sum[t]);
            for (int64_t c = 0; c < k; c++) a->truths[c] += b->row[t * k + c];
        }
        if (a->posterior)
            memcpy(a->posterior + first * k, b->row, (size_t)(n_tasks * k) * sizeof(double));
        if (a->sums) add_shape(a, b);
    }
    return evidence;
}

/* glad_sweep(indptr, code, value, worker, label, gold, old_prior, old_skill, prior, skill, log_ease,
 *            next_ease, posterior, truths, sums, mean, variance, move) -> evidence. */
PyObject *glad_sweep(PyObject *self, PyObject *args)
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
    double *room = malloc((7 * most + (5 + pass.k) * CELLS) * sizeof(double)), evidence = 0.0;
    if (room) {
        double *rest = room + 7 * most;
        Batch batch = {
            .who = (int32_t *)room, .label = (int32_t *)room + most, .weight = room + most,
            .skill = room + 2 * most, .x = room + 3 * most, .chance = room + 4 * most,
            .loss = room + 5 * most, .trial = room + 6 * most, .top = rest, .sum = rest + CELLS,
            .ease = rest + 2 * CELLS, .before = rest + 3 * CELLS, .step = rest + 4 * CELLS,
            .row = rest + 5 * CELLS,
        };
        Py_BEGIN_ALLOW_THREADS
        evidence = run_glad(&pass, &batch);
        Py_END_ALLOW_THREADS
    }
    free(room);
    release(b, 15);
    return room ? PyFloat_FromDouble(evidence) : PyErr_NoMemory();
}
