/* What the files of compiled loops share: types, macros, an exponential and a logarithm. */

#ifndef CROWDWISE_NATIVE_H
#define CROWDWISE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64
#define SMALL 16 /* up to this many classes a task's row lives in registers */
#define TIE 1e-9 /* log joints closer than this to the best one are tied with it */

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#if defined(__GNUC__) && defined(__x86_64__) && defined(__linux__)
#define MULTIVERSION __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define MULTIVERSION
#endif

/* exp(x) for x <= 0, to about one unit in the last place, without a branch or a call so
 * that the compiler can vectorize the loop around it. Below -708 the result is 0. */
INLINE double exp_of_nonpositive(double x)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2**52: rounds to an integer */
    const double y = x < -708.0 ? -708.0 : x;
    const double shifted = y * 1.4426950408889634074 + magic;
    const double n = shifted - magic;
    const double r = (y - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.6059043836821613e-10; /* 1 / 13! */
    p = p * r + 2.0876756987868099e-09;
    p = p * r + 2.5052108385441719e-08;
    p = p * r + 2.7557319223985891e-07;
    p = p * r + 2.7557319223985893e-06;
    p = p * r + 2.4801587301587302e-05;
    p = p * r + 1.9841269841269841e-04;
    p = p * r + 1.3888888888888889e-03;
    p = p * r + 8.3333333333333333e-03;
    p = p * r + 4.1666666666666667e-02;
    p = p * r + 1.6666666666666667e-01;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    union { double d; int64_t i; } bits = { shifted }, scale;
    scale.i = (bits.i + 1023) << 52; /* the low bits of `shifted` hold n */
    return x < -708.0 ? 0.0 : p * scale.d;
}

/* log(x) for x > 0 without a branch or a call: 2 artanh(s) of the mantissa as a series. */
INLINE double log_of_positive(double x)
{
    const int64_t root = 0x3fe6a09e667f3bcd; /* the bits of sqrt(1/2) */
    union { double d; uint64_t i; } bits = { x < 1e-300 ? 1e-300 : x }, power;
    const uint64_t shifted = bits.i + (0x3ff0000000000000 - root);
    power.i = (shifted >> 52) | 0x4330000000000000; /* 2**52 + exponent + 1023 */
    bits.i = (shifted & 0x000fffffffffffff) + root;
    const double n = power.d - (4503599627370496.0 + 1023.0);
    const double s = (bits.d - 1.0) / (bits.d + 1.0), z = s * s;
    double q = 1.0 / 23.0;
    q = q * z + 1.0 / 21.0;
    q = q * z + 1.0 / 19.0;
    q = q * z + 1.0 / 17.0;
    q = q * z + 1.0 / 15.0;
    q = q * z + 1.0 / 13.0;
    q = q * z + 1.0 / 11.0;
    q = q * z + 1.0 / 9.0;
    q = q * z + 1.0 / 7.0;
    q = q * z + 1.0 / 5.0;
    q = q * z + 1.0 / 3.0;
    return n * 6.93147180369123816490e-01 + (n * 1.90821492927058770002e-10 + 2.0 * (s + s * z * q));
}

/* cell[c] += value * row[c], with `value` 1 where there are no values. */
INLINE void add_to(double *restrict cell, const double *restrict row, const double *value,
                   int64_t i, const int64_t k)
{
    if (value) {
        const double scale = value[i];
        for (int64_t c = 0; c < k; c++) cell[c] += scale * row[c];
    } else {
        for (int64_t c = 0; c < k; c++) cell[c] += row[c];
    }
}

INLINE void release(Py_buffer *all, int n)
{
    for (int i = 0; i < n; i++)
        if (all[i].obj) PyBuffer_Release(&all[i]);
}

/* A buffer's content, NULL where it is None or empty. */
INLINE void *content(const Py_buffer *buffer) { return buffer->len ? buffer->buf : NULL; }

PyObject *encode(PyObject *self, PyObject *args);
PyObject *vote_pass(PyObject *self, PyObject *args);
PyObject *coin_pass(PyObject *self, PyObject *args);
PyObject *few_pass(PyObject *self, PyObject *args);
PyObject *glad_sweep(PyObject *self, PyObject *args);
PyObject *entropy_pass(PyObject *self, PyObject *args);
PyObject *new_cells(PyObject *self, PyObject *args);
PyObject *read_cells(PyObject *self, PyObject *args);
PyObject *join_cells(PyObject *self, PyObject *args);
PyObject *name_cells(PyObject *self, PyObject *args);
PyObject *sort_names(PyObject *self, PyObject *args);

#endif
