// SPDX-License-Identifier: MIT
// The list of the CPU's engines: the only file that knows them all. In doubt the planner takes the
// earlier one. (Those of other devices are listed in their modules: device.h.)
#include "planner.h"

extern const struct engine engine_direct, engine_gemm, engine_winograd, engine_tiles,
    engine_depthwise, engine_overlap_save, engine_overlap_add, engine_partitioned, engine_blocks;

const struct engine *const cpu_engines[] = {
    &engine_direct,      &engine_gemm,
    &engine_winograd,    &engine_tiles,
    &engine_depthwise,   &engine_overlap_save,
    &engine_overlap_add, &engine_partitioned,
    &engine_blocks,      NULL,
};
