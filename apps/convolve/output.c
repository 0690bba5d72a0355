// SPDX-License-Identifier: MIT
// See output.h. The output is like the input, unless the file name or --output-format says
// otherwise.
#include "output.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sample_type.h"
#include "cli/report.h"
#include "io/formats/sigmf.h"

// Names of standard output, pipes and devices do not imply a format.
static bool has_no_suffix(const char *path)
{
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

static bool choose_container(struct audio_info *out, const char *path, const struct audio_info *in,
                             struct fault *fault)
{
    bool known;
    if (!sigmf_check_output(path, fault)) return false;
    out->container = container_of_name(path, &known);
    if (known && out->container == CONTAINER_TEXT)
        return fault_set(fault, "%s: text files hold taps only; write to .wav, .npy or .raw", path);
    if (known) return true;
    if (in->container == CONTAINER_RAW || in->container == CONTAINER_NPY)
        out->container = in->container;
    else out->container = CONTAINER_WAV;
    if (has_no_suffix(path) || in->container == CONTAINER_RAW) return true;
    return fault_set(
        fault, "%s: the name does not imply a format; use .wav, .flac, .npy, .raw and the like",
        path);
}

// The encoding to store if the container can: as requested, as the input's, or as computed.
static struct encoding preferred_encoding(const struct output_request *q, enum container container)
{
    const struct settings *s = q->settings;
    const struct encoding computed = {.kind = ENCODING_FLOAT,
                                      .bytes = type_is_double(q->type) ? 8 : 4,
                                      .is_complex = type_is_complex(q->type)};
    struct encoding named;
    if (s->output_format && encoding_parse(s->output_format, &named)) return named;
    if (container == CONTAINER_RAW && container_raw_type(s->operands[2], &named)) return named;
    // 1 does not fit into an integer type.
    if (s->normalised || q->in->container == CONTAINER_TEXT || container == CONTAINER_NPY)
        return computed;
    // Filtered samples have more than the 8 bits of those that went in.
    if (q->in->encoding.is_complex != computed.is_complex || q->in->encoding.bytes == 1 ||
        !encoding_is_writable(q->in->encoding))
        return computed;
    return q->in->encoding;
}

// Programs that read the output may expect the 8 bits of the input.
static void note_wider_output(const struct audio_info *out, const struct output_request *q)
{
    char read[ENCODING_NAME_SIZE], written[ENCODING_NAME_SIZE];
    struct encoding named;
    const struct settings *s = q->settings;
    if (q->in->encoding.bytes > 1 || out->encoding.bytes == 1 || s->output_format ||
        q->in->container == CONTAINER_NPY || out->container == CONTAINER_NPY ||
        container_raw_type(s->operands[2], &named))
        return;
    const char *type = encoding_short_name(q->in->encoding, read);
    const bool fits = q->in->encoding.is_complex == out->encoding.is_complex;
    report_warning(s, "%s: samples of %s are written as %s%s%s", operand_name(s, 1), type,
                   encoding_short_name(out->encoding, written),
                   fits ? "; to keep their type, use --output-format " : "", fits ? type : "");
}

// Players expect full scale to be 1.
static void note_level(const struct audio_info *out, const struct output_request *q)
{
    const struct settings *s = q->settings;
    if (q->in->container != CONTAINER_NPY || q->in->encoding.kind == ENCODING_FLOAT ||
        (out->container != CONTAINER_WAV && out->container != CONTAINER_SNDFILE) ||
        s->command != COMMAND_CONVOLVE || s->gain != 0 || !isnan(s->normalize))
        return;
    report_warning(s,
                   "%s: its integers are numbers, and not fractions of full scale; --normalize "
                   "sets the level of %s",
                   operand_name(s, 1), operand_name(s, 2));
}

static bool choose_encoding(struct audio_info *out, const struct output_request *q,
                            struct fault *fault)
{
    const struct settings *s = q->settings;
    const char *path = s->operands[2];
    struct encoding requested = preferred_encoding(q, out->container);
    char closest[ENCODING_NAME_SIZE];
    const bool pairs = type_is_complex(q->type) && (q->in->iq || s->iq) &&
                       (out->container == CONTAINER_WAV || out->container == CONTAINER_SNDFILE);
    if (pairs) {
        out->channels *= 2;
        out->rank = 2;
        requested.is_complex = false;
    } else if (requested.is_complex != type_is_complex(q->type))
        return fault_set(fault, "%s: the result is %s, which %s cannot store; use %s", path,
                         type_is_complex(q->type) ? "complex" : "real",
                         s->output_format ? s->output_format : strrchr(path, '.') + 1,
                         type_is_complex(q->type) ? "cf32 or cf64" : "f32 or f64");
    if (!container_encoding(out->container, path, requested, &out->encoding))
        return fault_set(
            fault,
            "%s: cannot store complex samples, which the result has; use .npy or .raw, "
            "or --iq for I and Q in two channels",
            path);
    if (s->dither == DITHER_TPDF && out->encoding.kind == ENCODING_FLOAT)
        return fault_set(fault,
                         "%s: --dither is for integers, and its samples are %s; use "
                         "--output-format i16",
                         path, encoding_short_name(out->encoding, closest));
    const bool exact =
        out->encoding.kind == requested.kind && out->encoding.bytes == requested.bytes;
    if (exact || !s->output_format) return true;
    return fault_set(fault, "%s: cannot store %s samples; use --output-format %s", path,
                     s->output_format, encoding_short_name(out->encoding, closest));
}

bool output_choose(struct audio_info *ret, const struct output_request *q, struct fault *fault)
{
    const struct settings *s = q->settings;
    const double rate = q->in->rate > 0 ? q->in->rate : q->ir_rate;
    *ret = (struct audio_info){
        .channels = q->channels,
        .rate = s->rate_out > 0 ? s->rate_out : rate * (double)s->up / (double)s->stride,
        .frames = q->frames,
        .rank = q->channels > 1 ? 2 : q->in->rank,
        .channel_mask = q->channels == q->in->channels ? q->in->channel_mask : 0,
        .dither = q->settings->dither == DITHER_TPDF,
    };
    if (!s->operands[2]) return true;
    if (!choose_container(ret, q->settings->operands[2], q->in, fault) ||
        !choose_encoding(ret, q, fault))
        return false;
    note_wider_output(ret, q);
    note_level(ret, q);
    if (!(q->in->rate > 0) && ret->rate > 0 && ret->container == CONTAINER_WAV)
        report_warning(
            s, "%s: has no sample rate and is taken to have the %.10g Hz of %s; else add --rate",
            operand_name(s, 1), rate, operand_name(s, 0));
    report_stored_rate(s, s->operands[2], ret);
    return true;
}

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
