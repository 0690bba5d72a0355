// SPDX-License-Identifier: MIT
// The list of engines: the only file that knows them all. In doubt the planner takes the earlier one.
#include "engine.h"

extern const struct engine engine_direct, engine_gemm, engine_winograd, engine_tiles, engine_depthwise,
    engine_overlap_save, engine_overlap_add, engine_partitioned, engine_blocks;

const struct engine *const engines[] = {
    &engine_direct,       &engine_gemm,        &engine_winograd,    &engine_tiles,  &engine_depthwise,
    &engine_overlap_save, &engine_overlap_add, &engine_partitioned, &engine_blocks, NULL,
};
