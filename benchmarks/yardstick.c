/* The least that a step of Dawid-Skene can do: a tuned loop in single precision, four classes,
 * as many labels for every task. Gather the log joints, exponentiate, scatter the posteriors. */

#include <math.h>
#include <stdint.h>

#define K 4
#define BATCH 64

static inline float fast_exp(float x) /* x <= 0; good to 1e-6 */
{
    const float y = x < -87.0f ? -87.0f : x, magic = 12582912.0f;
    const float shifted = y * 1.44269504f + magic, n = shifted - magic;
    const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    const float p = 1.0f + r * (1.0f + r * (0.5f + r * (0.16666666f + r * (0.04166666f + r * 0.0083334f))));
    union { float f; int32_t i; } scale = { 0 };
    scale.i = ((int32_t)n + 127) << 23;
    return p * scale.f;
}

__attribute__((target_clones("default", "avx2", "avx512f")))
void step(const int32_t *code, int64_t start, int64_t stop, int64_t per_task, const float *prior,
          const float *table, float *counts, double *truths)
{
    float joint[BATCH * K];
    for (int64_t first = start; first < stop; first += BATCH) {
        const int64_t n = stop - first < BATCH ? stop - first : BATCH;
        for (int64_t b = 0; b < n; b++) {
            float row[K];
            for (int c = 0; c < K; c++) row[c] = prior[c];
            for (int64_t i = (first + b) * per_task; i < (first + b + 1) * per_task; i++)
                for (int c = 0; c < K; c++) row[c] += table[(int64_t)code[i] * K + c];
            float top = row[0];
            for (int c = 1; c < K; c++) top = row[c] > top ? row[c] : top;
            for (int c = 0; c < K; c++) joint[b * K + c] = row[c] - top;
        }
        for (int64_t i = 0; i < n * K; i++) joint[i] = fast_exp(joint[i]);
        for (int64_t b = 0; b < n; b++) {
            float row[K], sum = 0.0f;
            for (int c = 0; c < K; c++) sum += joint[b * K + c];
            for (int c = 0; c < K; c++) row[c] = joint[b * K + c] / sum;
            for (int c = 0; c < K; c++) truths[c] += row[c];
            for (int64_t i = (first + b) * per_task; i < (first + b + 1) * per_task; i++)
                for (int c = 0; c < K; c++) counts[(int64_t)code[i] * K + c] += row[c];
        }
    }
}
