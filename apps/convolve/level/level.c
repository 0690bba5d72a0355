// SPDX-License-Identifier: MIT
#include "level.h"

#include <math.h>
#include <stdio.h>

#include "cli/report.h"

bool level_is_wanted(const struct settings *settings)
{
    return !isnan(settings->normalize) || settings->gain == GAIN_AUTO;
}

bool level_check(const struct settings *s, struct fault *fault)
{
    const char *option = isnan(s->normalize) ? "--gain auto" : "--normalize";
    if (!level_is_wanted(s)) return true;
    if (!isnan(s->normalize) && s->gain != 0)
        return fault_set(fault, "--normalize sets the level of the result; leave out --gain");
    if (!options_sharded_by(s)) return true;
    return fault_set(fault,
                     "%s needs the peak of the whole result, which a run with %s does not compute; "
                     "write with --output-format f32 and change the level after that",
                     option, options_sharded_by(s));
}

// The largest magnitude that the encoding stores without clipping; full scale is 1.
static double full_scale(struct encoding encoding)
{
    return encoding.kind == ENCODING_FLOAT ? 1 : 1 - ldexp(1, 1 - 8 * (int)encoding.bytes);
}

// Float samples are suggested if the file can store them.
void level_warn_clipped(const struct settings *s, const struct audio_info *output,
                        const struct sample_counts *counts)
{
    const struct encoding requested = {
        .kind = ENCODING_FLOAT, .bytes = 4, .is_complex = output->encoding.is_complex};
    struct encoding held;
    if (!counts->clipped) return;
    const bool floats = container_encoding(output->container, s->operands[2], requested, &held) &&
                        held.kind == ENCODING_FLOAT;
    const double fitting =
        options_gain(s) + floor(200 * log10(full_scale(output->encoding) / counts->peak)) / 10;
    char gain[96] = "use a lower --gain";
    // Of a result that an earlier run began, the peak is not known.
    if (s->range) snprintf(gain, sizeof gain, "--gain %.1f avoids it in this shard", fitting);
    else if (s->shared && !s->resume) snprintf(gain, sizeof gain, "--gain %.1f avoids it", fitting);
    else if (!s->resume && fitting >= MIN_GAIN)
        snprintf(gain, sizeof gain, "--gain %.1f or --gain auto avoids it", fitting);
    report_warning(s, "%s: %llu samples clipped; %s%s", operand_name(s, 2),
                   (unsigned long long)counts->clipped, gain,
                   floats ? ", or use --output-format f32" : "");
}

bool level_factor(const struct settings *settings, struct encoding encoding, double peak,
                  double *ret_factor, struct fault *fault)
{
    // Noise of one step may raise a sample.
    const double noise =
        settings->dither == DITHER_TPDF ? ldexp(1, 1 - 8 * (int)encoding.bytes) : 0;
    const double full = full_scale(encoding) - noise;
    const double wanted = isnan(settings->normalize) ? 1 : pow(10, settings->normalize / 20);
    *ret_factor = 1;
    if (!isfinite(peak))
        return fault_set(fault, "the result has infinite samples, so that its level cannot be set");
    if (!(peak > 0) && !isnan(settings->normalize))
        report_warning(settings, "--normalize: the result is silent and stays so");
    if (peak > 0 && (!isnan(settings->normalize) || peak > full))
        *ret_factor = wanted * full / peak;
    return true;
}
