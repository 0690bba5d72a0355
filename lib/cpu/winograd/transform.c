// SPDX-License-Identifier: MIT
// Transforms along one axis, nested into transforms along all of them (Lavin & Gray, eq. 8).
#include "winograd.h"

struct winograd_transform winograd_transform_of(const struct winograd *p,
                                                const struct kernels *kernels,
                                                enum winograd_operand operand)
{
    const bool inverse = operand == WINOGRAD_OUTPUT || operand == WINOGRAD_TAP_SUMS;
    struct winograd_transform ret = {.bytes = p->grid.scalar_bytes};
    for (int a = 0; a < WINOGRAD_ALL_AXES; a++) {
        const struct tile_axis *axis = winograd_axis(p, a);
        const bool taps = operand == WINOGRAD_TAPS || operand == WINOGRAD_TAP_SUMS;
        size_t count = taps ? axis->taps : axis->tile; // of the matrix; input has none
        if (operand == WINOGRAD_INPUT) count = 0;
        const size_t samples = operand == WINOGRAD_INPUT ? axis->extent : count;
        ret.extent[a] = axis->extent;
        ret.count[a] = count;
        ret.from[a] = inverse ? axis->extent : samples;
        ret.to[a] = inverse ? samples : axis->extent;
    }
    if (!kernels) return ret;
    if (inverse) ret.kernel = kernels->winograd_output;
    else ret.kernel = operand == WINOGRAD_INPUT ? kernels->winograd_input : kernels->winograd_taps;
    return ret;
}

void winograd_transform_strides(struct winograd_transform *transform, size_t n, size_t x_column,
                                size_t y_plane)
{
    transform->n = n;
    transform->x_column = x_column;
    transform->y_plane = y_plane;
    transform->y_row = transform->to[1] * y_plane;
    for (size_t i = 0; i < transform->from[0]; i++)
        transform->x_row[i] = i * transform->from[1] * x_column;
}

static void transform_plane(const struct winograd_transform *transform, char *y, const char *x,
                            char *stage)
{
    const size_t *from = transform->from, *to = transform->to, n = transform->n;
    const bool first = transform->extent[0] > 1, second = transform->extent[1] > 1;
    size_t column[WINOGRAD_EXTENT];
    struct winograd_rows lines = {.n = n,
                                  .rows = from[1],
                                  .x_row_stride = transform->x_column,
                                  .y_row_stride = n,
                                  .y_stride = second ? from[1] * n : transform->y_row,
                                  .offset = transform->x_row};
    if (first)
        transform->kernel(second ? stage : y, x, transform->extent[0], transform->count[0], &lines);
    if (!second) return;
    for (size_t j = 0; j < from[1]; j++)
        column[j] = first ? j * n : transform->x_row[0] + j * transform->x_column;
    lines = (struct winograd_rows){.n = n,
                                   .rows = to[0],
                                   .x_row_stride = from[1] * n,
                                   .y_row_stride = transform->y_row,
                                   .y_stride = transform->y_plane,
                                   .offset = column};
    transform->kernel(y, first ? stage : x, transform->extent[1], transform->count[1], &lines);
}

void winograd_transform_depth(const struct winograd_transform *transform, char *y, const char *x,
                              size_t x_plane, struct winograd_rows rows)
{
    size_t offset[WINOGRAD_EXTENT];
    for (size_t d = 0; d < transform->from[WINOGRAD_DEPTH]; d++) offset[d] = d * x_plane;
    rows.offset = offset;
    transform->kernel(y, x, transform->extent[WINOGRAD_DEPTH], transform->count[WINOGRAD_DEPTH],
                      &rows);
}

void winograd_transform_tiles(const struct winograd_transform *transform, char *y, const char *x,
                              char *stage)
{
    const size_t *extent = transform->extent, *to = transform->to, n = transform->n;
    const size_t columns = transform->x_column, elements = transform->from[0] * transform->from[1];
    const bool alone = extent[0] * extent[1] == 1;
    if (extent[WINOGRAD_DEPTH] == 1) {
        transform_plane(transform, y, x, stage);
        return;
    }
    const struct winograd_rows rows = {.n = n,
                                       .rows = elements,
                                       .x_row_stride = columns,
                                       .y_row_stride = n,
                                       .y_stride = alone ? transform->y_plane : elements * n};
    winograd_transform_depth(transform, alone ? y : stage, x, elements * columns, rows);
    struct winograd_transform plane = *transform;
    winograd_transform_strides(&plane, n, n, transform->y_plane);
    char *plane_stage = stage + to[WINOGRAD_DEPTH] * elements * n * transform->bytes;
    for (size_t d = 0; d < to[WINOGRAD_DEPTH] && !alone; d++)
        transform_plane(&plane, y + d * to[0] * to[1] * transform->y_plane * transform->bytes,
                        stage + d * elements * n * transform->bytes, plane_stage);
}
