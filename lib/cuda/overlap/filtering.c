// SPDX-License-Identifier: MIT
#include "filtering.h"

#include <math.h>

#include "base/sizes.h"

struct cuda_filtering cuda_filtering_of(const struct shape *shape, const struct cuda_fft_form *form)
{
    const struct axis *axis = &shape->axis[0];
    const size_t samples = cuda_spectral_samples(shape, (size_t)1 << form->log2_points),
                 hop = samples - axis->span + 1;
    const size_t windows = ceil_div((axis->out - 1) * axis->stride + 1, hop);
    return (struct cuda_filtering){
        .form = *form,
        .in = cuda_input_windows(shape, axis->begin, hop, windows, samples),
        .out = {.skip = (int64_t)axis->span - 1,
                .hop = (int64_t)hop,
                .stride = (int64_t)axis->stride,
                .size = (int64_t)axis->out},
        .batch = (int64_t)shape->batch,
        .groups = (int64_t)shape->groups,
        .group_in = (int64_t)shape->group_in,
        .group_out = (int64_t)shape->group_out,
    };
}

struct cuda_fft_form cuda_form_of(const struct shape *shape, size_t points)
{
    struct cuda_fft_form form = {.turned = !shape->complex_signal};
    while ((size_t)1 << form.log2_points < points) form.log2_points++;
    return form;
}

struct cuda_work cuda_filtering_work(const struct shape *shape,
                                     const struct cuda_filtering *filtering, size_t points,
                                     double in_again)
{
    const double windows = (double)shape->batch * (double)filtering->in.windows,
                 in = (double)shape->in_channels, out = (double)shape->out_channels,
                 cells = out * (double)shape->group_in;
    const double read =
        windows * in * (double)(cuda_spectral_samples(shape, points) * shape->sample_bytes);
    return (struct cuda_work){
        .launches = 1,
        .slots = windows * (cuda_transform_slots(points, in * in_again + out) +
                            cuda_spectral_slots(points, cells)),
        .bytes = read + (double)cuda_output_bytes(shape) +
                 cells * (double)(points * 2 * shape->scalar_bytes),
    };
}

struct estimate cuda_filtering_estimate(const struct request *request, const struct shape *shape,
                                        const struct cuda_filtering *filtering,
                                        const struct cuda_work *work, size_t workspace)
{
    const size_t points = (size_t)1 << filtering->form.log2_points;
    const double windows = (double)shape->batch * (double)filtering->in.windows;
    const double cells = (double)shape->out_channels * (double)shape->group_in;
    const double lines = (double)(shape->in_channels + shape->out_channels);
    return (struct estimate){
        .applicable = true,
        .transform = cuda_spectral_samples(shape, points),
        .hop = (size_t)filtering->out.hop,
        .seconds = cuda_work_seconds(request, work),
        .flops = windows * (5 * lines * log2((double)points) + 8 * cells) * (double)points,
        .shared = workspace,
        .bytes = size_add((size_t)cells * points * 2 * shape->scalar_bytes, workspace),
        .error = cuda_transform_error(shape, points, (double)shape->group_in),
    };
}
