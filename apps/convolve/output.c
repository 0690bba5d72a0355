// SPDX-License-Identifier: MIT
// See output.h. The rule: as the input, unless the file's name or --output-format says otherwise.
#include "output.h"

#include <string.h>
#include <sys/stat.h>

#include "io/formats/sigmf.h"

static bool is_complex(enum partita_type type)
{
    return type == PARTITA_CF32 || type == PARTITA_CF64;
}

// Standard output, pipes and devices have no name that tells.
static bool is_nameless(const char *path)
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
        return fault_set(
            fault, "%s: text is read as taps, never written; name a .wav, .npy or .raw", path);
    if (known) return true;
    if (in->container == CONTAINER_RAW || in->container == CONTAINER_NPY)
        out->container = in->container;
    else out->container = CONTAINER_WAV;
    if (is_nameless(path) || in->container == CONTAINER_RAW) return true;
    return fault_set(
        fault, "%s: the name does not tell the format; use .wav, .flac, .npy, .raw and the like",
        path);
}

// What the samples would like to be stored as.
static void wished_encoding(struct encoding *ret, const struct settings *settings,
                            const struct audio_info *in, enum container container,
                            enum partita_type type)
{
    const char *dot = strrchr(settings->operands[2], '.');
    bool is_double = type == PARTITA_F64 || type == PARTITA_CF64;
    struct encoding computed = {
        .kind = ENCODING_FLOAT, .bytes = is_double ? 8 : 4, .is_complex = is_complex(type)};
    if (settings->output_format && encoding_parse(settings->output_format, ret)) return;
    if (container == CONTAINER_RAW && dot && encoding_parse(dot + 1, ret)) return;
    bool keep = in->container != CONTAINER_TEXT && container != CONTAINER_NPY &&
                in->encoding.is_complex == computed.is_complex;
    *ret = keep ? in->encoding : computed;
}

// As users write it: without the r of real samples and the byte order.
static const char *short_name(struct encoding encoding, char name[ENCODING_NAME_SIZE])
{
    encoding_name(encoding, name);
    name[strcspn(name, "_")] = 0;
    return encoding.is_complex ? name : name + 1;
}

static bool choose_encoding(struct audio_info *out, const struct settings *settings,
                            const struct audio_info *in, enum partita_type type,
                            struct fault *fault)
{
    const char *path = settings->operands[2];
    struct encoding wish;
    char nearest[ENCODING_NAME_SIZE];
    wished_encoding(&wish, settings, in, out->container, type);
    if (wish.is_complex != is_complex(type))
        return fault_set(fault, "%s: the result is %s, which %s does not hold; use %s", path,
                         is_complex(type) ? "complex" : "real",
                         settings->output_format ? settings->output_format : strrchr(path, '.') + 1,
                         is_complex(type) ? "cf32 or cf64" : "f32 or f64");
    if (!container_encoding(out->container, path, wish, &out->encoding))
        return fault_set(
            fault, "%s: cannot hold complex samples, which the result has; use .npy or .raw", path);
    bool exact = out->encoding.kind == wish.kind && out->encoding.bytes == wish.bytes;
    if (exact || !settings->output_format) return true;
    return fault_set(fault, "%s: cannot hold %s samples; use --output-format %s", path,
                     settings->output_format, short_name(out->encoding, nearest));
}

bool output_choose(struct audio_info *ret, const struct settings *settings,
                   const struct audio_info *in, uint32_t ir_rate, const struct taps *taps,
                   enum partita_type type, uint64_t frames, struct fault *fault)
{
    uint32_t rate = in->rate ? in->rate : ir_rate;
    *ret = (struct audio_info){
        .channels = taps->out_channels,
        .rate = (uint32_t)((rate + settings->stride / 2) / settings->stride),
        .frames = frames,
        .rank = taps->out_channels > 1 ? 2 : in->rank,
    };
    return choose_container(ret, settings->operands[2], in, fault) &&
           choose_encoding(ret, settings, in, type, fault);
}
