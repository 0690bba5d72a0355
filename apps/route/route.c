// SPDX-License-Identifier: MIT
// See route.h. A chain has a stage for each of its files, so that config/matrix.h computes it as it
// computes the pipeline of a configuration.
#include "route.h"

#include <math.h>
#include <stdio.h>
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

void route_adopt(struct settings *s)
{
    if (s->command != COMMAND_CONVOLVE || s->n_irs != 1 || !route_is_made(s, s->files[0])) return;
    s->config = s->operands[0];
    s->n_irs = 0;
    s->is_route = true;
}

bool route_choose_channels(size_t chosen[MAX_WORDS], struct audio_info *info,
                           const struct settings *settings, struct fault *fault)
{
    const char *list = settings->ir_channel, *at = list;
    char *end;
    size_t n = 0;
    if (!list) return true;
    do {
        const unsigned long channel = strtoul(at, &end, 10);
        if (end == at || (*end && *end != ',') || n == MAX_WORDS || channel - 1 >= info->channels)
            return fault_usage(fault,
                               "--ir-channel %s: must be numbers from 1 to %zu, the channels of "
                               "IR, at most %d, with commas between them",
                               list, info->channels, (int)MAX_WORDS);
        chosen[n++] = channel - 1;
        at = end + 1;
    } while (*end);
    info->channels = n;
    info->outputs = 0;
    return true;
}

// Channels and frames; for an array also the order of axes, a frequent mistake.
static bool map_fault(const struct route_map *map, const char *path, const struct audio_info *file,
                      const char *needs, struct fault *fault)
{
    char frames[64] = "";
    if (file->frames != SIZE_UNKNOWN)
        snprintf(frames, sizeof frames, " of %llu frames%s", (unsigned long long)file->frames,
                 file->container == CONTAINER_NPY ? " ([channels, frames])" : "");
    return fault_set(fault, "%s: %zu channel%s%s; %s has %zu channel%s: %s", path, file->channels,
                     file->channels == 1 ? "" : "s", frames, map->from, map->in,
                     map->in == 1 ? "" : "s", needs);
}

bool route_map_channels(struct route_map *map, const struct settings *s, const char *part,
                        const struct audio_info *file, struct fault *fault)
{
    enum ir_layout layout = IR_PLAIN;
    const char *path = part ? ir_name_path(part, &layout) : operand_name(s, 0);
    const size_t in = map->in, n = map->channels = file->channels;
    const bool four = n == 4 && in == 2, one_each = n == 1 || n == in,
               true_stereo = layout == IR_TRUE_STEREO || (!part && s->true_stereo);
    char needs[sizeof fault->text];
    map->matrix =
        layout != IR_PLAIN || file->outputs || in == 1 || (s->matrix && !(part && one_each));
    map->by_input = true_stereo || (s->matrix_order == MATRIX_IN_OUT && !(part && file->outputs));
    map->out = map->matrix ? n / in : in;
    if (true_stereo && !four)
        snprintf(needs, sizeof needs,
                 "true-stereo needs a response of 4 channels and an input of 2");
    else if (file->outputs && n / file->outputs != in)
        snprintf(needs, sizeof needs, "it is a matrix of %zu outputs and %zu inputs", file->outputs,
                 n / file->outputs);
    else if (map->matrix ? n % in == 0 : one_each) return true;
    else if (map->matrix) snprintf(needs, sizeof needs, "a matrix needs a multiple of %zu", in);
    else if (part && four)
        snprintf(needs, sizeof needs,
                 "name it true-stereo:%s if they lead from left to left, left to right, right to "
                 "left, right to right, or matrix:%s if the second and the third are exchanged",
                 path, path);
    else
        snprintf(needs, sizeof needs,
                 "the filter needs 1 or %zu channels, or a multiple of %zu %s%s%s", in, in,
                 part ? "as a matrix, named matrix:" : "with --matrix", part ? path : "",
                 four ? " or --true-stereo" : "");
    return map_fault(map, path, file, needs, fault);
}

size_t route_channel(const struct route_map *map, size_t out, size_t in)
{
    if (!map->matrix) return map->channels == 1 ? 0 : out;
    return map->by_input ? in * map->out + out : out * map->in + in;
}

// Appends a stage of the channels of a file, impulses from `first` on.
static bool add_stage(struct network *n, const struct settings *s, const char *part, size_t first,
                      const struct audio_info *file, struct fault *fault)
{
    const char *signal = s->command == COMMAND_LIVE ? "this run" : operand_name(s, 1);
    struct route_map m = {.from = n->n_stages ? "the filter before it" : signal,
                          .in = n->out_channels};
    struct fault said;
    if (!route_map_channels(&m, s, part, file, &said))
        return network_fault(n, 0, fault, "%s", said.text);
    if (!network_add_stage(n, m.out, m.in, fault)) return false;
    for (size_t o = 0; o < m.out; o++) {
        for (size_t i = m.matrix ? 0 : o; i < (m.matrix ? m.in : o + 1); i++) {
            const struct network_term term = {
                .out = o, .in = i, .impulse = first + route_channel(&m, o, i), .gain = 1};
            if (!network_add_term(n, &term, fault)) return false;
        }
    }
    n->out_channels = m.out;
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
    size_t first, more, chosen[MAX_WORDS];
    if (!network_add_impulse(n, &impulse, &first, fault)) return false;
    if (!signal) return true;
    if (!impulse_file_info(&impulse, options_max_channels(s), &file, fault) ||
        !route_choose_channels(chosen, &file, s, fault))
        return false;
    if (!(signal->rate > 0) && file.rate > 0) {
        if (n->rate > 0 && !rates_agree(n->rate, file.rate))
            return fault_set(fault,
                             "%s: %s: sample rate %.12g Hz differs from the %.12g Hz of the files "
                             "before it; add --rate and --resample-ir",
                             n->path, path, file.rate, n->rate);
        n->rate = file.rate;
    }
    if (s->ir_channel) n->impulses[first].channel = *chosen;
    for (size_t c = 1; c < file.channels; c++) {
        struct impulse next = {
            .source = IMPULSE_FILE, .path = strdup(path), .channel = s->ir_channel ? chosen[c] : c};
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
