// SPDX-License-Identifier: MIT
// Weighted sums of the spectra of filters. A line's sums stay in registers over all terms, whose
// order is fixed, so that they have the same bits wherever a line is summed.
#include "morph_loops.h"
#include "kernels/vector.h"

enum { VECTORS = SPECTRUM_LINE_BYTES / VECTOR_BYTES };

static void KERNEL(morph_sum)(const struct morph_operands *operands, size_t n_lines)
{
    for (size_t line = 0; line < n_lines; line++) {
        vec sum[VECTORS] = {{0}};
        for (size_t k = 0; k < operands->n_terms; k++) {
            const struct morph_term *term = &operands->term[k];
            const char *x = (const char *)term->x + line * term->pitch * SPECTRUM_LINE_BYTES;
            const vec weight = vec_broadcast((REAL)term->weight);
            UNROLL
            for (size_t v = 0; v < VECTORS; v++)
                sum[v] = vec_multiply_add(weight, ((const vec *)(const void *)x)[v], sum[v]);
        }
        vec *y = (void *)((char *)operands->y + line * operands->y_pitch * SPECTRUM_LINE_BYTES);
        vec *change = (void *)((char *)operands->change +
                               line * operands->change_pitch * SPECTRUM_LINE_BYTES);
        UNROLL
        for (size_t v = 0; v < VECTORS; v++) {
            change[v] = sum[v] - y[v];
            y[v] = sum[v];
        }
    }
}

const struct morph_loops KERNEL(morph) = {KERNEL(morph_sum)};
