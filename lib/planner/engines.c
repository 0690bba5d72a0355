// SPDX-License-Identifier: MIT
// The CPU as a device, and the list of its engines: the only file that knows them all. In doubt the
// planner takes the earlier one. (Those of other devices are listed in their modules: device.h.)
#include "core/spectrum.h"
#include "layer/bounded.h"
#include "layer/filter.h"
#include "planner.h"

extern const struct engine engine_direct, engine_gemm, engine_winograd, engine_tiles,
    engine_depthwise, engine_overlap_save, engine_overlap_add, engine_partitioned, engine_blocks;

const struct engine *const cpu_engines[] = {
    &engine_gemm,        &engine_direct,
    &engine_winograd,    &engine_tiles,
    &engine_depthwise,   &engine_overlap_save,
    &engine_overlap_add, &engine_partitioned,
    &engine_blocks,      NULL,
};

static enum partita_status cpu_reserve(const struct partita_plan *plan, size_t bytes, void **ret)
{
    *ret = mem_reserve(&plan->allocator, bytes);
    return *ret ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

static void cpu_release(const struct partita_plan *plan, void *memory)
{
    mem_release(&plan->allocator, memory);
}

struct device cpu_device = {
    .host = true,
    .name = "the CPU",
    .engines = cpu_engines,
    .spectra = &cpu_spectra,
    .run = cpu_run,
    .reserve = cpu_reserve,
    .release = cpu_release,
    .filter_update = cpu_filter_update,
    .backward_bias = cpu_backward_bias,
};
