// SPDX-License-Identifier: MIT
// Transforms of a pair of lines of tiles along all axes.
#include "tiles.h"

size_t tiles_transform_bytes(const size_t n[3])
{
    return size_mul(tile_tables_elements(n), 2 * (size_t)TILE_LINE_BYTES);
}

void tiles_transform_row(const struct tile_tables *tables, tile_dft_fn *kernel, char *row)
{
    if (tables->n[2] > 1) kernel(row, &tables->dft[2], 1, 1, 0);
}

// All columns along axis 0 or 1.
static void transform_axis(const struct tile_tables *tables, tile_dft_fn *kernel, char *z, int axis)
{
    const int other = 1 - axis;
    if (tables->n[axis] == 1) return;
    for (size_t i = 0; i < tables->n[other]; i++)
        kernel(z + i * tables->step[other] * 2 * TILE_LINE_BYTES, &tables->dft[axis],
               tables->step[axis], tables->n[2], 1);
}

void tiles_transform_columns(const struct tile_tables *tables, tile_dft_fn *kernel, char *z,
                             bool inverse)
{
    transform_axis(tables, kernel, z, !inverse);
    transform_axis(tables, kernel, z, inverse);
}
