// SPDX-License-Identifier: MIT
#include "tiles.h"

// Units of a run of groups and positions, or of its taps.
static int64_t units_of(const struct cuda_tiles *tiles, const struct cuda_tiles_part *part,
                        enum cuda_units_of of)
{
    if (of == CUDA_UNITS_TAPS) return part->groups * tiles->in * ((tiles->out + 1) / 2);
    return part->groups * (of == CUDA_UNITS_OUTPUTS ? tiles->out : tiles->in) * (part->block / 2);
}

enum partita_status cuda_units_forward(const struct tiles_call *of,
                                       const struct cuda_tiles_part *part, enum cuda_units_of what,
                                       void *spectra, const void *from)
{
    const struct partita_plan *plan = of->plan;
    const struct tiles_plan *state = plan->state;
    const struct cuda_tiles *tiles = &state->cut.tiles;
    const int64_t n = units_of(tiles, part, what), room = state->cut.room;
    struct cuda_tiles_units units = {.of = what};
    enum partita_status status = PARTITA_OK;
    for (; units.first < n && status == PARTITA_OK; units.first += room) {
        units.n = n - units.first < room ? n - units.first : room;
        status = CU(plan, cuda_units_fill(tiles, part, &units, of->z, from, cudaStreamPerThread));
        if (status == PARTITA_OK) status = cuda_fft_run(plan, &state->fft, of->lease, of->z, false);
        if (status == PARTITA_OK)
            status = CU(plan,
                        cuda_units_split(tiles, part, &units, spectra, of->z, cudaStreamPerThread));
    }
    return status;
}

enum partita_status cuda_units_inverse(const struct tiles_call *of,
                                       const struct cuda_tiles_part *part, enum cuda_units_of what,
                                       void *to, const void *spectra, const void *bias)
{
    const struct partita_plan *plan = of->plan;
    const struct tiles_plan *state = plan->state;
    const struct cuda_tiles *tiles = &state->cut.tiles;
    const int64_t n = units_of(tiles, part, what), room = state->cut.room;
    const bool relu = plan->direction == PARTITA_FORWARD && plan->shape.relu;
    struct cuda_tiles_units units = {.of = what};
    enum partita_status status = PARTITA_OK;
    for (; units.first < n && status == PARTITA_OK; units.first += room) {
        units.n = n - units.first < room ? n - units.first : room;
        status =
            CU(plan, cuda_units_join(tiles, part, &units, of->z, spectra, cudaStreamPerThread));
        if (status == PARTITA_OK) status = cuda_fft_run(plan, &state->fft, of->lease, of->z, true);
        if (status == PARTITA_OK)
            status = CU(plan, cuda_units_drain(tiles, part, &units, to, of->z, bias, relu,
                                               cudaStreamPerThread));
    }
    return status;
}
