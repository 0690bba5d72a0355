// SPDX-License-Identifier: MIT
// How jobs of overlap-save meet thread blocks.
#include "base/sizes.h"
#include "cuda/kernels/save.h"

bool cuda_cut_save(const struct cuda_filtering *filtering, bool f64, int processors, size_t most,
                   size_t kept_limit, struct cuda_save_cut *ret)
{
    enum { BLOCKS_OF_PROCESSOR = 4 };
    const size_t points = (size_t)1 << filtering->form.log2_points,
                 rows = (size_t)cuda_fft_rows(points);
    const size_t transforms = rows * cuda_fft_shared(points, f64),
                 group_in = (size_t)filtering->group_in;
    const size_t spectra = group_in > 1 ? rows * group_in * points * (f64 ? 16 : 8) : 0;
    const size_t jobs = (size_t)(filtering->groups * filtering->batch * filtering->in.windows);
    const size_t enough = (size_t)processors * BLOCKS_OF_PROCESSOR;
    // Outputs are done in parts where jobs alone leave processors idle.
    const size_t wanted = size_min(ceil_div(enough * rows, jobs), (size_t)filtering->group_out);
    const size_t of_part = ceil_div((size_t)filtering->group_out, wanted);
    const size_t parts = ceil_div((size_t)filtering->group_out, of_part);
    size_t blocks = ceil_div(jobs * parts, rows);
    *ret = (struct cuda_save_cut){
        .parts = (int64_t)parts, .of_part = (int)of_part, .in_memory = transforms + spectra > most};
    ret->shared_bytes = transforms + (ret->in_memory ? 0 : spectra);
    if (ret->in_memory) blocks = size_min(size_min(blocks, enough), kept_limit / spectra);
    if (ret->in_memory) ret->kept_bytes = blocks * spectra;
    ret->blocks = (int64_t)blocks;
    return transforms <= most && blocks > 0 && blocks <= INT32_MAX &&
           group_in <= INT32_MAX / points;
}
