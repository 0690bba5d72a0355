// SPDX-License-Identifier: MIT
#include "response.h"

#include <math.h>

#include "base/ir_name.h"
#include "base/memory.h"
#include "cli/report.h"
#include "config/impulse_file.h"
#include "config/matrix.h"
#include "filter_set.h"
#include "route/route.h"

// The onset of a response, as in ISO 3382-1: within 20 dB of its peak.
static const float ONSET = 0.1f;

static struct rows rows_of(const struct taps *taps)
{
    return (struct rows){taps->data, taps_count_rows(taps), taps->length};
}

// Without --channels: as many inputs as responses, or two if that does not determine them, but no
// more than the device has.
static size_t choose_inputs(const struct filter_set_request *request, bool matrix, size_t n_ir)
{
    size_t n = n_ir == 1 || matrix ? 2 : n_ir;
    if (n_ir == 1 && n > request->max_out) n = request->max_out;
    return n < request->max_in ? n : request->max_in;
}

// The network of an IR that is no SOFA file to be turned; of a file it has one stage. NULL: only
// its files.
static bool read_network(struct network *ret, const struct settings *settings, const char *ir,
                         const struct audio_info *device, double rate, struct fault *fault)
{
    if (!route_read(ret, settings, ir, device, fault)) return false;
    network_select(ret, rate);
    return true;
}

// The channels of a network. The inputs of a chain are those of its first file.
static bool choose_network_shape(const struct settings *s, const char *ir,
                                 const struct filter_set_request *request, size_t *ret_in,
                                 size_t *ret_out, struct fault *fault)
{
    struct audio_info first = {0};
    struct network network;
    enum ir_layout layout;
    size_t chosen[MAX_WORDS];
    ir_name_path(ir, &layout);
    if (!read_network(&network, s, ir, NULL, request->rate, fault)) return false;
    const bool good =
        network.in_channels || !*ir ||
        (impulse_file_info(network.impulses, options_max_channels(s), &first, fault) &&
         route_choose_channels(chosen, &first, s, fault));
    if (s->channels) first.channels = (size_t)s->channels;
    else if (network.in_channels) first.channels = network.in_channels;
    else first.channels = choose_inputs(request, layout != IR_PLAIN || s->matrix, first.channels);
    network_release(&network);
    first.rate = request->rate;
    if (!good || !read_network(&network, s, ir, &first, request->rate, fault)) return false;
    *ret_in = first.channels;
    *ret_out = network.out_channels;
    network_release(&network);
    return true;
}

static bool is_turned(const struct settings *settings, const char *ir)
{
    return sofa_is_named(ir_name_path(ir, NULL)) && !route_is_named(settings, ir);
}

bool response_choose_shape(struct response_shape *ret, const struct settings *settings,
                           const char *ir, const struct filter_set_request *request,
                           struct fault *fault)
{
    const char *path = ir_name_path(ir, NULL);
    size_t in = 1, out = SOFA_EARS;
    if (settings->channels > (int64_t)request->max_in)
        return fault_set(fault, "--channels %lld: the device has %zu free input channels",
                         (long long)settings->channels, request->max_in);
    if (!is_turned(settings, ir) && !choose_network_shape(settings, ir, request, &in, &out, fault))
        return false;
    if (settings->out_channels) out = (size_t)settings->out_channels;
    if (in > request->max_in)
        return fault_set(fault, "%s: needs %zu input channels; the device has %zu free", path, in,
                         request->max_in);
    if (out > request->max_out)
        return fault_set(fault, "%s: gives %zu output channels; the device has %zu", path, out,
                         request->max_out);
    *ret = (struct response_shape){
        .in_channels = in, .out_channels = out, .rate = (uint32_t)lrint(request->rate)};
    return true;
}

double response_rate(const struct settings *settings, const char *ir)
{
    struct network network;
    struct fault ignored; // response_load will report it
    if (!route_read(&network, settings, ir, NULL, &ignored)) return 0;
    const double rate = matrix_rate(&network);
    network_release(&network);
    return rate;
}

static bool check_outputs(struct response *r, const struct response_shape *shape,
                          struct fault *fault)
{
    size_t in = r->taps.in_channels, out = r->taps.out_channels;
    r->diagonal = in == out && r->taps.groups == in;
    r->spread = in == 1 && out == 1 && shape->out_channels > 1;
    if (r->spread) r->diagonal = false;
    if (r->spread || out == shape->out_channels) return true;
    return fault_set(fault,
                     "%s: gives %zu output channel%s for %zu input%s; this run has %zu, as its "
                     "first filter or --out-channels decided",
                     r->path, out, out == 1 ? "" : "s", in, in == 1 ? "" : "s",
                     shape->out_channels);
}

bool response_turn(struct response *r, const char *path, const struct sofa *sofa,
                   const struct sofa_direction *direction, struct fault *fault)
{
    *r = (struct response){.path = path};
    float *taps = sofa_pair(sofa, path, direction, &r->pair, fault);
    if (!taps) return false;
    r->taps = (struct taps){.data = taps,
                            .type = PARTITA_F32,
                            .length = sofa_length(sofa),
                            .in_channels = 1,
                            .out_channels = SOFA_EARS,
                            .groups = 1};
    const struct rows rows = rows_of(&r->taps);
    r->onset = rows_first_above(&rows, ONSET, rows.length);
    return true;
}

static bool load_sofa(struct response *ret, const struct settings *settings, const char *path,
                      const struct response_shape *shape, const struct sofa_direction *direction,
                      struct fault *fault)
{
    struct sofa *sofa;
    if (shape->in_channels != 1 || shape->out_channels != SOFA_EARS)
        return fault_set(fault, "%s: is for 1 input and 2 outputs; this run has %zu and %zu", path,
                         shape->in_channels, shape->out_channels);
    double rate = sofa_rate(path, fault);
    if (!(rate > 0)) return false;
    if (rate != shape->rate && !settings->resample_ir)
        return fault_set(fault,
                         "%s: sample rate %g Hz differs from the %u Hz of the audio device; use "
                         "--resample-ir",
                         path, rate, shape->rate);
    if (!sofa_open(&sofa, path, shape->rate, fault)) return false;
    if (response_turn(ret, path, sofa, direction, fault)) {
        ret->sofa = sofa;
        return true;
    }
    sofa_close(sofa);
    return false;
}

bool response_load(struct response *ret, const struct settings *settings, const char *ir,
                   const struct response_shape *shape, const struct sofa_direction *direction,
                   struct fault *fault)
{
    const struct audio_info device = {.channels = shape->in_channels, .rate = shape->rate};
    struct response r = {.path = ir_name_path(ir, NULL)};
    struct settings s = *settings;
    struct network network;
    if (is_turned(settings, ir)) return load_sofa(ret, settings, r.path, shape, direction, fault);
    s.operands[0] = r.path; // in messages
    s.gain = 0; // this and --dry are applied to the output, where they can change while playing
    s.dry = -INFINITY;
    if (!read_network(&network, &s, ir, &device, device.rate, fault)) return false;
    const bool good = network_taps_load(&r.taps, &network, PARTITA_F32, &device, &s, fault);
    network_release(&network);
    if (!good) return false;
    if (!check_outputs(&r, shape, fault)) {
        taps_release(&r.taps);
        return false;
    }
    struct rows rows = rows_of(&r.taps);
    const size_t first = rows_omitted_lead(&rows, r.taps.lead);
    taps_keep(&r.taps, first, r.taps.length - r.taps.lead - first); // after the end is a lead, too
    rows = rows_of(&r.taps);
    r.onset = rows_first_above(&rows, ONSET, rows.length);
    report_detail(settings, "%s: %zu taps, with their peak at frame %zu", r.path, r.taps.length,
                  rows_first_above(&rows, 1, rows.length));
    *ret = r;
    return true;
}

void response_release(struct response *response)
{
    taps_release(&response->taps);
    sofa_close(response->sofa);
    response->sofa = NULL;
}

const float *response_taps(const struct response *response, size_t out, size_t in)
{
    const struct taps *t = &response->taps;
    const size_t row = response->spread ? 0 : taps_find_row(t, out, in);
    return row == SIZE_MAX ? NULL : (const float *)t->data + row * t->length;
}
