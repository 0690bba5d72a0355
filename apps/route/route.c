// SPDX-License-Identifier: MIT
// See route.h. A chain has a stage for each of its files, so that config/matrix.h computes it as it
// computes the pipeline of a configuration.
#include "route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ir_name.h"
#include "base/number.h"
#include "config/impulse_file.h"
#include "layout.h"

bool route_is_made(const struct settings *settings, const char *ir)
{
    enum ir_layout layout;
    const char *path = ir_name_path(ir, &layout);
    return ir[ir_name_first(ir)] || layout == IR_HESUVI ||
           (settings->layout && !network_is_named(path)) ||
           (settings->command == COMMAND_CONVOLVE && sofa_is_named(path));
}

bool route_is_named(const struct settings *settings, const char *ir)
{
    const char *path = ir_name_path(ir, NULL);
    return route_is_made(settings, ir) || network_is_named(path);
}

bool route_check(const struct settings *settings, const char *ir, struct fault *fault)
{
    enum ir_layout layout;
    const char *path = ir_name_path(ir, &layout);
    const bool is_sofa = sofa_is_named(path), whole = is_sofa || route_is_named(settings, ir),
               plain = layout == IR_PLAIN || layout == IR_HESUVI;
    if (whole && settings->ir_channel)
        return fault_set(fault, "%s: --ir-channel is for the channels of one file; leave it out",
                         path);
    return !whole || ir[ir_name_first(ir)] || (plain && !settings->matrix) ||
           fault_set(fault, "%s: %s; leave out %s", path,
                     is_sofa ? "the responses of a SOFA file lead from one input to two ears"
                             : "a configuration names the responses and their paths",
                     !plain ? ir_prefixes[layout] : "--matrix, --matrix-order and --true-stereo");
}

void route_adopt(struct settings *settings)
{
    struct settings *s = settings;
    if (s->command != COMMAND_CONVOLVE || s->n_irs != 1 || !route_is_made(s, s->files[0])) return;
    s->config = s->operands[0];
    s->n_irs = 0;
    s->is_route = true;
}

// Appends a stage in which response k of a file, an impulse from `first` on, leads from input i to
// output o: one response for every channel, one for each channel, or a matrix.
static bool add_stage(struct network *n, const struct settings *s, const char *part, size_t first,
                      const struct audio_info *file, struct fault *fault)
{
    enum ir_layout layout;
    const char *path = ir_name_path(part, &layout);
    const size_t in = n->out_channels, channels = file->channels;
    const bool matrix = layout != IR_PLAIN || file->outputs || in == 1 ||
                        (s->matrix && channels != 1 && channels != in);
    const bool by_input = layout == IR_TRUE_STEREO || (layout == IR_PLAIN && !file->outputs &&
                                                       s->matrix_order == MATRIX_IN_OUT);
    if (matrix ? channels % in != 0 || (file->outputs && channels / file->outputs != in)
               : channels != 1 && channels != in)
        return fault_set(fault,
                         "%s: %s: has %zu channels for %zu; a filter in a chain has 1 channel or "
                         "as many as come in, or as a matrix (matrix:%s) a multiple of %zu",
                         n->path, path, channels, in, path, in);
    const size_t out = matrix ? channels / in : in;
    if (!network_add_stage(n, out, in, fault)) return false;
    for (size_t o = 0; o < out; o++) {
        for (size_t i = matrix ? 0 : o; i < (matrix ? in : o + 1); i++) {
            const size_t k = !matrix    ? (channels == 1 ? 0 : o)
                             : by_input ? i * out + o
                                        : o * in + i;
            const struct network_term term = {.out = o, .in = i, .impulse = first + k, .gain = 1};
            if (!network_add_term(n, &term, fault)) return false;
        }
    }
    n->out_channels = out;
    return true;
}

// The stage of a file, whose channels become impulses. A signal without a rate has that of the
// files.
static bool add_file(struct network *n, const struct settings *s, const char *part,
                     const struct audio_info *signal, struct fault *fault)
{
    const char *path = ir_name_path(part, NULL);
    struct impulse impulse = {.source = IMPULSE_FILE, .path = strdup(path)};
    struct audio_info file;
    size_t first, more;
    if (!network_add_impulse(n, &impulse, &first, fault)) return false;
    if (!signal) return true;
    if (!impulse_file_info(&impulse, options_max_channels(s), &file, fault)) return false;
    if (!(signal->rate > 0) && file.rate > 0) {
        if (n->rate > 0 && !rates_agree(n->rate, file.rate))
            return fault_set(fault,
                             "%s: %s: sample rate %.12g Hz differs from the %.12g Hz of the files "
                             "before it; add --rate and --resample-ir",
                             n->path, path, file.rate, n->rate);
        n->rate = file.rate;
    }
    for (size_t c = 1; c < file.channels; c++) {
        struct impulse next = {.source = IMPULSE_FILE, .path = strdup(path), .channel = c};
        if (!network_add_impulse(n, &next, &more, fault)) return false;
    }
    return add_stage(n, s, part, first, &file, fault);
}

static bool is_binaural(const char *part)
{
    enum ir_layout layout;
    const char *path = ir_name_path(part, &layout);
    return layout == IR_HESUVI || sofa_is_named(path);
}

static bool add_part(struct network *n, const struct settings *s, const char *part,
                     const struct audio_info *signal, struct fault *fault)
{
    enum ir_layout layout;
    const char *path = ir_name_path(part, &layout);
    if (!*path)
        return fault_set(fault, "%s: names no filter%s", n->path,
                         strchr(n->path, '+') ? " on one side of a +" : "; add a file");
    if (network_is_named(path))
        return fault_set(fault, "%s: %s: a configuration cannot be part of a chain", n->path, path);
    if (!is_binaural(part)) return add_file(n, s, part, signal, fault);
    if (signal) return layout_add_stages(n, s, part, signal, fault);
    if (!layout_inputs(s, layout, n->n_impulses ? &n->out_channels : &n->in_channels, fault))
        return false;
    if (s->command == COMMAND_LIVE && layout != IR_HESUVI) n->rate = sofa_rate(path, fault);
    return add_file(n, s, part, NULL, fault);
}

static bool read_chain(struct network *n, const struct settings *s, const char *ir,
                       const struct audio_info *signal, struct fault *fault)
{
    const bool turned = !isnan(s->azimuth) || !isnan(s->elevation);
    bool good = true, more = *ir, binaural = false;
    n->path = ir;
    n->in_channels = n->out_channels = signal ? signal->channels : 0;
    while (good && more) {
        const size_t length = ir_name_first(ir);
        char *part = strndup(ir, length);
        good = part ? add_part(n, s, part, signal, fault) : fault_set(fault, "out of memory");
        binaural = binaural || (good && is_binaural(part));
        free(part);
        more = ir[length];
        ir += length + more;
    }
    if (good && (s->layout || s->lfe != 0) && !binaural)
        return fault_usage(fault,
                           "%s: --layout and --lfe need a SOFA file (.sofa), or a file of HeSuVi, "
                           "named hesuvi:FILE; leave them out, or name one",
                           n->path);
    if (good && turned && s->command == COMMAND_CONVOLVE && (s->layout || !binaural))
        return fault_usage(fault,
                           "--azimuth and --elevation choose responses of a SOFA file (.sofa), "
                           "without --layout: leave them out");
    return good;
}

bool route_read(struct network *ret, const struct settings *settings, const char *ir,
                const struct audio_info *signal, struct fault *fault)
{
    struct network network = {0};
    const char *path = ir_name_path(ir, NULL);
    if (!route_is_made(settings, ir) && network_is_named(path))
        return network_read(ret, path, true, fault);
    const bool good = read_chain(&network, settings, ir, signal, fault);
    if (good) *ret = network;
    else network_release(&network);
    return good;
}
