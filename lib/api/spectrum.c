// SPDX-License-Identifier: MIT
// Spectra as objects: the public functions. Arguments are checked here; everything else is the
// backend's (spectrum.h).
#include "core/spectrum.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/arguments.h"
#include "core/slice.h"
#include "planner/planner.h"
#include "sized.h"

// What is to be transformed.
struct signal {
    enum partita_type type;
    const void *x;
    size_t n, block;
};

static enum partita_status check(const struct signal *signal, const struct partita_options *options)
{
    const size_t sample = partita_type_size(signal->type);
    if (sample >= sizeof(float) && signal->n && signal->n <= PTRDIFF_MAX / 8 / sample &&
        signal->block <= SPECTRUM_LARGEST_BLOCK && options->threads >= 0 &&
        options->threads <= MAX_THREADS &&
        !options->allocator.allocate == !options->allocator.release)
        return PARTITA_OK;
    return log_error(&options->log, PARTITA_ERR_ARG,
                     "partita_spectrum_create: %s of %zu samples in blocks of %zu, %d threads",
                     partita_type_name(signal->type), signal->n, signal->block, options->threads);
}

// The spectrum has the device from here on.
static enum partita_status spectrum_make(const struct signal *signal,
                                         const struct partita_options *options,
                                         struct device *device,
                                         struct partita_spectrum **ret_spectrum)
{
    struct partita_spectrum *spectrum = mem_allocate(&options->allocator, sizeof *spectrum);
    if (!spectrum) {
        device_close(device);
        return PARTITA_ERR_NOMEM;
    }
    *spectrum = (struct partita_spectrum){.backend = device->spectra,
                                          .device = device,
                                          .type = signal->type,
                                          .scalar_bytes = type_alignment(signal->type),
                                          .sample_bytes = partita_type_size(signal->type),
                                          .n = signal->n,
                                          .threads = thread_bound(options->threads),
                                          .workspace_limit = options->workspace_limit,
                                          .allocator = options->allocator,
                                          .log = options->log};
    const enum partita_status status =
        spectrum->backend->create(spectrum, signal->x, signal->block);
    if (status == PARTITA_OK) *ret_spectrum = spectrum;
    else partita_spectrum_destroy(spectrum);
    return status;
}

enum partita_status partita_spectrum_create_sized(enum partita_type type, const void *x, size_t n,
                                                  size_t block,
                                                  const struct partita_options *options,
                                                  size_t options_bytes,
                                                  struct partita_spectrum **ret_spectrum)
{
    const struct signal signal = {type ? type : PARTITA_F32, x, n, block};
    struct partita_options known;
    struct device *device = &cpu_device;
    if (!options_read(&known, options, options_bytes)) return PARTITA_ERR_UNSUPPORTED;
    if (!arguments_given(known.log, x, ret_spectrum) ||
        !arrays_usable(known.log, {"x", x, 1, type_alignment(signal.type), false}))
        return PARTITA_ERR_ARG;
    enum partita_status status = check(&signal, &known);
    if (status == PARTITA_OK) status = device_of_options(&known, &device);
    return status == PARTITA_OK ? spectrum_make(&signal, &known, device, ret_spectrum) : status;
}

void partita_spectrum_destroy(struct partita_spectrum *spectrum)
{
    if (!spectrum) return;
    const struct partita_allocator allocator = spectrum->allocator;
    spectrum->backend->destroy(spectrum);
    device_close(spectrum->device);
    mem_release(&allocator, spectrum);
}

size_t partita_spectrum_size(const struct partita_spectrum *spectrum)
{
    return spectrum ? spectrum->n : 0;
}

size_t partita_spectrum_block(const struct partita_spectrum *spectrum)
{
    return spectrum ? spectrum->block : 0;
}

size_t partita_spectrum_bytes(const struct partita_spectrum *spectrum)
{
    return spectrum ? spectrum->bytes : 0;
}

static bool spectrum_check_pair(const struct partita_spectrum *x, const struct partita_spectrum *h)
{
    if (x->type == h->type && x->block == h->block && x->backend == h->backend &&
        x->backend->meet(x, h))
        return true;
    return log_line(
        &x->log,
        "spectra of %s in blocks of %zu on %s and of %s in blocks of %zu on %s do not meet",
        partita_type_name(x->type), x->block, x->device->name, partita_type_name(h->type), h->block,
        h->device->name);
}

static enum partita_status spectrum_multiply(const char *function, enum partita_op op, void *y,
                                             const struct partita_spectrum *x,
                                             const struct partita_spectrum *h,
                                             const struct partita_slice *slice)
{
    const struct partita_log log = x ? x->log : log_default();
    if (!arguments_check_null(log, function, "y, x, h", (const void *const[]){y, x, h}, 3) ||
        !arrays_usable(log, {"y", y, 1, x->scalar_bytes, true}) || !spectrum_check_pair(x, h))
        return PARTITA_ERR_ARG;
    const struct range range = slice_resolve(op, x->n, h->n, slice);
    return range.size ? x->backend->multiply(op, y, x, h, &range) : slice_error(&log, x->n, h->n);
}

enum partita_status partita_spectrum_convolve(void *y, const struct partita_spectrum *x,
                                              const struct partita_spectrum *h,
                                              const struct partita_slice *slice)
{
    return spectrum_multiply(__func__, PARTITA_CONVOLVE, y, x, h, slice);
}

enum partita_status partita_spectrum_correlate(void *y, const struct partita_spectrum *x,
                                               const struct partita_spectrum *h,
                                               const struct partita_slice *slice)
{
    return spectrum_multiply(__func__, PARTITA_CORRELATE, y, x, h, slice);
}
