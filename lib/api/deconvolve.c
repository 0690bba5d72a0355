// SPDX-License-Identifier: MIT
// Public function of deconvolution.
#include "fft/deconvolve.h"
#include "base/sizes.h"
#include "core/arguments.h"
#include "fft/fft.h"

#include <partita/partita.h>

enum partita_status partita_deconvolve(double *h, const double *recording, size_t n,
                                       const double *signal, size_t m,
                                       const struct partita_allocator *allocator)
{
    const struct partita_allocator known = allocator ? *allocator : (struct partita_allocator){0};
    const struct partita_log log = log_default();
    if (!arguments_given(log, h, recording, signal)) return PARTITA_ERR_ARG;
    if (!n || !m || !known.allocate != !known.release)
        return log_error(&log, PARTITA_ERR_ARG, "n = %zu, m = %zu: at least 1%s", n, m,
                         n && m ? "; allocator: set both functions or none" : "");
    if (!fft_good_size(size_add(n, m)))
        return log_error(&log, PARTITA_ERR_UNSUPPORTED, "n + m = %zu: too many samples",
                         size_add(n, m));
    return fft_deconvolve(h, recording, n, signal, m, &known);
}
