/* Minimax conditional entropy: Newton steps on each task's own matrix, its truth, and what the
 * workers' next steps need. See inference/entropy_steps.py for the plain twin.
 *
 * Tables of a worker or task have their labels in rows and their truths in columns here, so that
 * loops over truths are vectorized. */

#include "_native.h"

#define MOST_HALVINGS 20 /* as in inference/entropy_steps.py */
#define ROUNDING 1e-12
#define NO_GAIN 1e-10
#define HALF_ROOT 0.70710678118654752440
#define CHUNK 512 /* totals of cells and truths that are taken at once, and */
#define LANES 8   /* how many of them at least, so that none is left to a loop of its own */

typedef struct {
    const int64_t *indptr;    /* (n_tasks + 1) */
    const int32_t *code;      /* (n_cells): which (worker, label) */
    const double *value;      /* (n_cells) or NULL for all ones */
    const int32_t *worker;    /* (n_codes) */
    const int32_t *label;     /* (n_codes) */
    const int32_t *gold;      /* (n_tasks) or NULL */
    const double *odds;       /* (n_workers, k, k): effects, the largest of each truth 0 */
    const double *chance;     /* the same: their exponentials */
    const uint8_t *live;      /* (n_workers): those whose sums are wanted */
    double *parameters;       /* (n_tasks, p), replaced */
    double *posterior;        /* (n_tasks, k), replaced */
    double *given;            /* (n_workers, k, k), added to, or NULL */
    double *expected;         /* (n_workers, k, k), added to: without the worker's own chance */
    double *spent;            /* (n_workers), added to */
    double penalty, tol;
    int64_t n_tasks, k, p;
    int steps;                /* most Newton steps of a task; -1 leaves its truth too */
    int ordinal;              /* parameters by thresholds instead of one for each cell */
} Entropy;

typedef struct {
    double *odds, *chance, *sum, *given, *step, *matrix;  /* (k, k); the matrix (2k, 2k) */
    double *here, *there;                                 /* (p) */
    double *logs, *room, *count, *below;                  /* (k) */
    double *total, *log;                                  /* (CHUNK + k): of some cells */
} Work;

/* A task's odds and chances from its parameters. */
INLINE void find_effect(const Entropy *a, const int64_t k, const double *restrict from,
                        double *restrict odds, double *restrict chance)
{
    for (int64_t c = 0; c < k; c++) {
        double top = -INFINITY, at = 0.0;
        if (a->ordinal)
            for (int64_t s = 0; s + 1 < k; s++) at -= HALF_ROOT * from[(c > s ? 0 : k - 1) + s];
        for (int64_t l = 0; l < k; l++) {
            if (!a->ordinal) at = from[c * k + l];
            else if (l) at += 2.0 * HALF_ROOT * from[(c > l - 1 ? 0 : k - 1) + l - 1];
            odds[l * k + c] = at;
            top = at > top ? at : top;
        }
        for (int64_t l = 0; l < k; l++) odds[l * k + c] -= top;
    }
    for (int64_t j = 0; j < k * k; j++) chance[j] = exp_of_nonpositive(odds[j]);
}

/* to[c] += a[c] * b[c]. All of a short row is read before any is written, so that the compiler
 * takes it at once without knowing where the arrays lie. */
INLINE void add_products(const int64_t k, double *restrict to, const double *restrict a,
                         const double *restrict b)
{
    double small[SMALL];
    if (k > SMALL) {
        for (int64_t c = 0; c < k; c++) to[c] += a[c] * b[c];
    } else {
        for (int64_t c = 0; c < k; c++) small[c] = to[c] + a[c] * b[c];
        for (int64_t c = 0; c < k; c++) to[c] = small[c];
    }
}

/* The cells from `first` on that are taken at once. */
INLINE int64_t chunk_end(const int64_t k, int64_t first, int64_t stop)
{
    const int64_t most = CHUNK > k ? CHUNK / k : 1;
    return stop - first < most ? stop : first + most;
}

/* The totals of the chances of each truth for some cells, (cell, k), and their logarithms. */
INLINE void add_chances(const Entropy *a, const int64_t k, int64_t first, int64_t stop, const Work *w)
{
    double small[SMALL], *restrict own = w->chance, *restrict total = w->total, *restrict log = w->log;
    for (int64_t i = first; i < stop; i++) {
        const double *restrict other = a->chance + (int64_t)a->worker[a->code[i]] * k * k;
        double *row = k <= SMALL ? small : total + (i - first) * k;
        for (int64_t c = 0; c < k; c++) row[c] = 0.0;
        for (int64_t l = 0; l < k; l++) add_products(k, row, own + l * k, other + l * k);
        if (k <= SMALL) memcpy(total + (i - first) * k, small, k * sizeof(double));
    }
    const int64_t n = (stop - first) * k, whole = (n + LANES - 1) / LANES * LANES;
    for (int64_t j = n; j < whole; j++) total[j] = 1.0;
    for (int64_t j = 0; j < whole; j++) log[j] = log_of_positive(total[j]);
}

/* sum[l, c] += table[l, c] * weight * share[c] / total[c] */
INLINE void add_expected(const int64_t k, double *restrict sum, const double *restrict table,
                         double weight, const double *restrict share, const double *restrict total,
                         double *restrict room)
{
    double small[SMALL], *restrict inverse = k <= SMALL ? small : room;
    if (k > SMALL)
        for (int64_t c = 0; c < k; c++) room[c] = weight * share[c] / total[c];
    else
        for (int64_t c = 0; c < k; c++) small[c] = weight * share[c] / total[c];
    for (int64_t l = 0; l < k; l++) add_products(k, sum + l * k, table + l * k, inverse);
}

/* A task's part of the objective at `at`; leaves the expected label counts in `sum`. */
INLINE double look(const Entropy *a, const int64_t k, int64_t task, const double *share,
                   double base, const double *at, const Work *w)
{
    double value = base, size = 0.0, *restrict sum = w->sum;
    find_effect(a, k, at, w->odds, w->chance);
    for (int64_t j = 0; j < k * k; j++) sum[j] = 0.0;
    for (int64_t c = 0; c < k; c++) w->logs[c] = 0.0;
    for (int64_t first = a->indptr[task], stop; first < a->indptr[task + 1]; first = stop) {
        stop = chunk_end(k, first, a->indptr[task + 1]);
        add_chances(a, k, first, stop, w);
        for (int64_t i = first; i < stop; i++) {
            const double *other = a->chance + (int64_t)a->worker[a->code[i]] * k * k;
            const double weight = a->value ? a->value[i] : 1.0, *total = w->total + (i - first) * k;
            for (int64_t c = 0; c < k; c++) w->logs[c] += weight * w->log[(i - first) * k + c];
            add_expected(k, sum, other, weight, share, total, w->room);
        }
    }
    double part[LANES] = { 0.0 }; /* sums side by side */
    for (int64_t j = 0; j < k * k; j++) sum[j] *= w->chance[j];
    for (int64_t j = 0; j < k * k; j++) part[j % LANES] += w->given[j] * w->odds[j];
    for (int64_t j = 0; j < LANES; j++) value += part[j];
    for (int64_t c = 0; c < k; c++) value -= share[c] * w->logs[c];
    for (int64_t j = 0; j < a->p; j++) size += at[j] * at[j];
    return value - a->penalty / 2.0 * size;
}

/* The Newton step where every cell has a parameter: its bracket is diagonal and of rank one. */
INLINE void step_cells(const Entropy *a, const int64_t k, const Work *w)
{
    for (int64_t c = 0; c < k; c++) {
        double slack = 0.0, along = 0.0;
        for (int64_t l = 0; l < k; l++) {
            const double expected = w->sum[l * k + c], odds = expected + a->penalty;
            const double up = w->given[l * k + c] - expected - a->penalty * w->here[c * k + l];
            w->step[c * k + l] = up / odds;
            slack += a->penalty * (expected / odds);
            along += expected * (up / odds);
        }
        const double lift = along / (slack > 2.2250738585072014e-308 ? slack : 2.2250738585072014e-308);
        for (int64_t l = 0; l < k; l++) {
            const double expected = w->sum[l * k + c];
            w->step[c * k + l] += expected / (expected + a->penalty) * lift;
        }
    }
}

/* The same with two parameters for each threshold, by Cholesky's method. */
INLINE void step_thresholds(const Entropy *a, const int64_t k, const Work *w)
{
    const int64_t p = a->p, m = k - 1;
    double *restrict matrix = w->matrix, *restrict step = w->step, *restrict below = w->below;
    for (int64_t j = 0; j < p * p; j++) matrix[j] = 0.0;
    for (int64_t j = 0; j < p; j++) {
        matrix[j * p + j] = a->penalty;
        step[j] = -a->penalty * w->here[j];
    }
    for (int64_t c = 0; c < k; c++) {
        double all = 0.0, surplus = 0.0, less = 0.0;
        for (int64_t l = 0; l < k; l++) {
            all += w->sum[l * k + c];
            below[l] = all;
            surplus += w->given[l * k + c] - w->sum[l * k + c];
        }
        const double over = 1.0 / (all > 2.2250738585072014e-308 ? all : 2.2250738585072014e-308);
        for (int64_t s = 0; s < m; s++) {
            const int64_t row = (c > s ? 0 : m) + s;
            less += w->given[s * k + c] - w->sum[s * k + c];
            step[row] += HALF_ROOT * (surplus - 2.0 * less);
            for (int64_t t = 0; t <= s; t++) {
                const int64_t column = (c > t ? 0 : m) + t;
                const double same = all - 2.0 * (below[s] - below[t]);
                const double both = (all - 2.0 * below[s]) * (all - 2.0 * below[t]) * over;
                matrix[(row > column ? row : column) * p + (row > column ? column : row)]
                    += 0.5 * (same - both);
            }
        }
    }
    for (int64_t i = 0; i < p; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double rest = matrix[i * p + j];
            for (int64_t t = 0; t < j; t++) rest -= matrix[i * p + t] * matrix[j * p + t];
            matrix[i * p + j] = i == j ? sqrt(rest) : rest / matrix[j * p + j];
        }
        for (int64_t t = 0; t < i; t++) step[i] -= matrix[i * p + t] * step[t];
        step[i] /= matrix[i * p + i];
    }
    for (int64_t i = p - 1; i >= 0; i--) {
        for (int64_t t = i + 1; t < p; t++) step[i] -= matrix[t * p + i] * step[t];
        step[i] /= matrix[i * p + i];
    }
}

/* Newton steps on a task's parameters until they gain little; `logs` and `odds` are left there. */
INLINE void climb(const Entropy *a, const int64_t k, int64_t task, const double *share,
                  double base, const Work *w)
{
    double before = look(a, k, task, share, base, w->here, w);
    for (int step = 0; step < a->steps; step++) {
        double pace = 1.0, after = 0.0;
        int trial = 0;
        if (a->ordinal) step_thresholds(a, k, w); else step_cells(a, k, w);
        for (; trial < MOST_HALVINGS; trial++, pace /= 2.0) {
            for (int64_t j = 0; j < a->p; j++) w->there[j] = w->here[j] + pace * w->step[j];
            after = look(a, k, task, share, base, w->there, w);
            if (after >= before - ROUNDING * fabs(before)) break;
        }
        if (trial == MOST_HALVINGS) {
            look(a, k, task, share, base, w->here, w);
            return;
        }
        memcpy(w->here, w->there, a->p * sizeof(double));
        if (after - before <= (a->tol > NO_GAIN ? a->tol : NO_GAIN) * fabs(after)) return;
        before = after;
    }
}

/* Moves a task's parameters, then infers its truth; its part of the objective. */
INLINE double settle(const Entropy *a, const int64_t k, int64_t task, const Work *w)
{
    double *here = a->parameters + task * a->p, *share = a->posterior + task * k;
    double *restrict joint = w->room, base = 0.0, sum = 0.0, size = 0.0;
    for (int64_t l = 0; l < k; l++) w->count[l] = 0.0;
    for (int64_t i = a->indptr[task]; i < a->indptr[task + 1]; i++)
        w->count[a->label[a->code[i]]] += a->value ? a->value[i] : 1.0;
    for (int64_t l = 0; l < k; l++)
        for (int64_t c = 0; c < k; c++) w->given[l * k + c] = w->count[l] * share[c];
    for (int64_t i = a->indptr[task]; i < a->indptr[task + 1]; i++) {
        const int32_t code = a->code[i];
        const double *row = a->odds + ((int64_t)a->worker[code] * k + a->label[code]) * k;
        for (int64_t c = 0; c < k; c++) base += (a->value ? a->value[i] : 1.0) * share[c] * row[c];
    }
    memcpy(w->here, here, a->p * sizeof(double));
    climb(a, k, task, share, base, w);
    memcpy(here, w->here, a->p * sizeof(double));
    for (int64_t c = 0; c < k; c++) joint[c] = -w->logs[c];
    for (int64_t l = 0; l < k; l++)
        for (int64_t c = 0; c < k; c++) joint[c] += w->count[l] * w->odds[l * k + c];
    for (int64_t i = a->indptr[task]; i < a->indptr[task + 1]; i++) {
        const int32_t code = a->code[i];
        add_to(joint, a->odds + ((int64_t)a->worker[code] * k + a->label[code]) * k, a->value, i, k);
    }
    if (a->gold && a->gold[task] >= 0)
        for (int64_t c = 0; c < k; c++) if (c != a->gold[task]) joint[c] = -INFINITY;
    double top = joint[0];
    for (int64_t c = 1; c < k; c++) top = joint[c] > top ? joint[c] : top;
    for (int64_t c = 0; c < k; c++) share[c] = exp_of_nonpositive(joint[c] - top);
    for (int64_t c = 0; c < k; c++) sum += share[c];
    for (int64_t c = 0; c < k; c++) share[c] /= sum;
    for (int64_t j = 0; j < a->p; j++) size += w->here[j] * w->here[j];
    return top + log_of_positive(sum) - a->penalty / 2.0 * size;
}

/* Adds to each live worker's sums what a task says. */
INLINE void add_task(const Entropy *a, const int64_t k, int64_t task, const Work *w)
{
    const double *restrict share = a->posterior + task * k;
    int wanted = 0;
    for (int64_t i = a->indptr[task]; i < a->indptr[task + 1]; i++)
        wanted |= a->live[a->worker[a->code[i]]];
    if (!wanted) return;
    if (a->steps < 0) find_effect(a, k, a->parameters + task * a->p, w->odds, w->chance);
    for (int64_t first = a->indptr[task], stop; first < a->indptr[task + 1]; first = stop) {
        stop = chunk_end(k, first, a->indptr[task + 1]);
        add_chances(a, k, first, stop, w);
        for (int64_t i = first; i < stop; i++) {
            const int64_t who = a->worker[a->code[i]], label = a->label[a->code[i]];
            if (!a->live[who]) continue;
            const double weight = a->value ? a->value[i] : 1.0, *odds = w->odds + label * k;
            const double *log = w->log + (i - first) * k, *total = w->total + (i - first) * k;
            double spent = 0.0;
            for (int64_t c = 0; c < k; c++) spent += share[c] * (log[c] - odds[c]);
            a->spent[who] += weight * spent;
            add_expected(k, a->expected + who * k * k, w->chance, weight, share, total, w->room);
            if (a->given)
                for (int64_t c = 0; c < k; c++)
                    a->given[(who * k + label) * k + c] += weight * share[c];
        }
    }
}

INLINE double pass_over(const Entropy *a, const int64_t k, const Work *w)
{
    double objective = 0.0;
    for (int64_t task = 0; task < a->n_tasks; task++) {
        if (a->steps >= 0) objective += settle(a, k, task, w);
        if (a->expected) add_task(a, k, task, w);
    }
    return objective;
}

MULTIVERSION static double run_entropy(const Entropy *a, const Work *w)
{
    switch (a->k) {
    case 2: return pass_over(a, 2, w);
    case 3: return pass_over(a, 3, w);
    case 4: return pass_over(a, 4, w);
    case 5: return pass_over(a, 5, w);
    case 8: return pass_over(a, 8, w);
    default: return pass_over(a, a->k, w);
    }
}

/* entropy_pass(indptr, code, value, worker, label, gold, odds, chance, live, parameters, posterior,
 *              given, expected, spent, penalty, tol, k, steps, ordinal) -> objective of the tasks. */
PyObject *entropy_pass(PyObject *self, PyObject *args)
{
    Py_buffer b[14];
    double penalty, tol, objective = 0.0;
    long long k;
    int steps, ordinal;
    if (!PyArg_ParseTuple(args, "y*y*z*y*y*z*y*y*y*w*w*w*w*w*ddLip", &b[0], &b[1], &b[2], &b[3],
                          &b[4], &b[5], &b[6], &b[7], &b[8], &b[9], &b[10], &b[11], &b[12], &b[13],
                          &penalty, &tol, &k, &steps, &ordinal))
        return NULL;
    const Entropy pass = {
        b[0].buf, b[1].buf, content(&b[2]), b[3].buf, b[4].buf, content(&b[5]), b[6].buf, b[7].buf,
        b[8].buf, b[9].buf, b[10].buf, content(&b[11]), content(&b[12]), b[13].buf, penalty, tol,
        b[0].len / (int64_t)sizeof(int64_t) - 1, k, ordinal ? 2 * (k - 1) : k * k, steps, ordinal,
    };
    double *all = malloc((11 * k * k + 6 * k + 2 * (CHUNK + LANES)) * sizeof(double));
    if (all) {
        double *rows = all + 11 * k * k;
        const Work work = {
            all, all + k * k, all + 2 * k * k, all + 3 * k * k, all + 4 * k * k, all + 5 * k * k,
            all + 9 * k * k, all + 10 * k * k, rows, rows + k, rows + 2 * k, rows + 3 * k,
            rows + 4 * k, rows + 5 * k + CHUNK + LANES,
        };
        Py_BEGIN_ALLOW_THREADS
        objective = run_entropy(&pass, &work);
        Py_END_ALLOW_THREADS
    }
    free(all);
    release(b, 14);
    return all ? PyFloat_FromDouble(objective) : PyErr_NoMemory();
}
