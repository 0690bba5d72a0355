// SPDX-License-Identifier: MIT
// Transforms of pairs of lines of tiles along all axes, by kernels->tile.
#ifndef PARTITA_TILES_TRANSFORM_H
#define PARTITA_TILES_TRANSFORM_H

#include "geometry/tile_tables.h"
#include "kernels/kernels.h"

// Bytes of the elements of one pair of lines of tiles.
size_t tiles_transform_bytes(const size_t n[3]);

// Forward: the caller transforms row after row along the last axis, then all columns at once.
void tiles_transform_row(const struct tile_tables *tables, const struct kernels *kernels,
                         void *row);
void tiles_transform_columns(const struct tile_tables *tables, const struct kernels *kernels,
                             void *z);

// The inverse: all columns, then the rows that are needed.
void tiles_transform_columns_inverse(const struct tile_tables *tables,
                                     const struct kernels *kernels, void *z);
void tiles_transform_row_inverse(const struct tile_tables *tables, const struct kernels *kernels,
                                 void *row);

#endif
