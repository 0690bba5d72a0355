// SPDX-License-Identifier: MIT
#include "response.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/ir_name.h"
#include "base/memory.h"
#include "cli/report.h"
#include "config/impulse_file.h"
#include "config/matrix.h"
#include "filter_set.h"
#include "route/route.h"

enum { STEREO = 2 };
static const char DEVICE[] = "the audio device";

// The onset of a response, as in ISO 3382-1: within 20 dB of its peak.
static const float ONSET_THRESHOLD = 0.1f;

// The settings for reading a response: its own word overrides the options. A file that has as many
// channels as the filter of a run has inputs and outputs, and not as many as paths, goes from each
// input to the output of the same number, also beside matrices.
static struct settings settings_for(const struct settings *settings, enum ir_layout layout,
                                    size_t channels, const struct response_shape *shape)
{
    struct settings s = *settings;
    const size_t in = shape->in_channels, out = shape->out_channels;
    const bool fits_paths = settings->true_stereo ? channels == 4 : channels == in * out;
    s.true_stereo = layout == IR_TRUE_STEREO || (layout == IR_PLAIN && s.true_stereo);
    if (layout == IR_TRUE_STEREO) s.matrix_order = MATRIX_IN_OUT;
    if (layout != IR_PLAIN) s.matrix = 1;
    else if (in == out && (channels == in || channels == 1) && !fits_paths)
        s.matrix = s.true_stereo = 0;
    return s;
}

static bool response_open(struct audio_reader **ret_reader, const struct settings *s,
                          const char *path, struct fault *fault)
{
    struct audio_request request = {
        .path = path, .max_channels = options_max_channels(s), .wake_fd = -1};
    if (strcmp(path, "-") == 0)
        return fault_set(fault, "--ir -: a live filter is read from a file");
    return audio_open(ret_reader, &request, fault);
}

// Without --channels: as many inputs as responses, or two if that does not determine them, but no
// more than the device has.
static size_t choose_inputs(const struct settings *s, bool matrix, size_t n_ir,
                            const struct filter_set_request *request)
{
    if (s->channels) return (size_t)s->channels;
    size_t n = n_ir == 1 || matrix ? 2 : n_ir;
    if (n_ir == 1 && n > request->max_out) n = request->max_out;
    return n < request->max_in ? n : request->max_in;
}

// The channels of a configuration or a chain. The inputs of a chain are those of its first file.
static bool choose_network_shape(const struct settings *settings, const char *ir,
                                 const struct filter_set_request *request, size_t *ret_in,
                                 size_t *ret_out, struct fault *fault)
{
    struct settings s = *settings; // with the name of the signal for messages
    struct audio_info first = {0};
    struct network network;
    enum ir_layout layout;
    ir_name_path(ir, &layout);
    s.operands[1] = DEVICE;
    if (!route_read(&network, &s, ir, NULL, fault)) return false;
    network_select(&network, request->rate);
    bool good = network.in_channels ||
                impulse_file_info(network.impulses, options_max_channels(&s), &first, fault);
    if (s.channels) first.channels = (size_t)s.channels;
    else if (network.in_channels) first.channels = network.in_channels;
    else
        first.channels = choose_inputs(&s, layout != IR_PLAIN || s.matrix, first.channels, request);
    network_release(&network);
    first.rate = request->rate;
    if (!good || !route_read(&network, &s, ir, &first, fault)) return false;
    network_select(&network, request->rate);
    *ret_in = first.channels;
    *ret_out = network.out_channels;
    network_release(&network);
    return true;
}

bool response_choose_shape(struct response_shape *ret, const struct settings *settings,
                           const char *ir, const struct filter_set_request *request,
                           struct fault *fault)
{
    struct audio_reader *reader;
    enum ir_layout layout;
    const char *path = ir_name_path(ir, &layout);
    bool matrix = layout != IR_PLAIN || settings->matrix;
    size_t n_ir = SOFA_EARS, in = 1, out = 0, chosen[MAX_WORDS];
    if (route_is_named(settings, ir)) {
        if (!choose_network_shape(settings, ir, request, &in, &out, fault)) return false;
    } else if (!sofa_is_named(path)) {
        if (!response_open(&reader, settings, path, fault)) return false;
        struct audio_info info = *audio_reader_info(reader);
        audio_reader_close(reader);
        if (!taps_choose_channels(chosen, &info, settings, fault)) return false;
        n_ir = info.channels;
        if (layout == IR_PLAIN && settings->true_stereo) matrix = n_ir == 4;
        in = choose_inputs(settings, matrix, n_ir, request);
        if (layout == IR_TRUE_STEREO || (layout == IR_PLAIN && matrix && settings->true_stereo)) {
            in = settings->channels ? in : STEREO;
            out = STEREO;
        }
    }
    if (!out) out = matrix ? n_ir / in : in == 1 ? n_ir : in;
    if (settings->out_channels) out = (size_t)settings->out_channels;
    if (in > request->max_in)
        return settings->channels
                   ? fault_set(fault, "--channels %zu: the device has %zu input channels", in,
                               request->max_in)
                   : fault_set(fault, "%s: needs %zu input channels; the device has %zu", path, in,
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
    struct audio_reader *reader;
    struct network network;
    struct fault ignored; // response_load will report it
    const char *path = ir_name_path(ir, NULL);
    double rate = 0;
    if (route_is_named(settings, ir)) {
        if (!route_read(&network, settings, ir, NULL, &ignored)) return 0;
        rate = matrix_rate(&network);
        network_release(&network);
    } else if (sofa_is_named(path)) {
        rate = sofa_rate(path, &ignored);
    } else if (response_open(&reader, settings, path, &ignored)) {
        rate = audio_reader_info(reader)->rate;
        audio_reader_close(reader);
    }
    return rate;
}

static const float *response_row(const struct response *r, size_t path)
{
    return (const float *)r->taps.data + path * r->taps.length;
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

bool response_turn(struct response *ret, const char *path, const struct sofa *sofa,
                   const struct sofa_direction *direction, struct fault *fault)
{
    struct response *r = ret;
    *r = (struct response){.path = path, .length = sofa_length(sofa)};
    float *taps = sofa_pair(sofa, path, direction, &r->pair, fault);
    if (!taps) return false;
    r->taps = (struct taps){.data = taps,
                            .type = PARTITA_F32,
                            .length = r->length,
                            .in_channels = 1,
                            .out_channels = SOFA_EARS,
                            .groups = 1};
    const struct rows rows = {taps, SOFA_EARS, r->length};
    r->onset = rows_first_above(&rows, ONSET_THRESHOLD * rows_peak(&rows), r->length);
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

static bool load_network(struct response *r, const char *ir, const struct response_shape *shape,
                         const struct settings *settings, struct fault *fault)
{
    const struct audio_info device = {.channels = shape->in_channels, .rate = shape->rate};
    struct network network;
    if (!route_read(&network, settings, ir, &device, fault)) return false;
    network_select(&network, device.rate);
    const bool good = network_taps_load(&r->taps, &network, PARTITA_F32, &device, settings, fault);
    network_release(&network);
    return good;
}

// False, with a fault, for a file whose channels fit the inputs of a run only if its name says how.
static bool check_channels(const char *path, enum ir_layout layout, const struct settings *s,
                           size_t n, size_t in, struct fault *fault)
{
    if (layout == IR_TRUE_STEREO && (n != 4 || in != STEREO))
        return fault_set(fault,
                         "%s: %zu channel%s for %zu input%s: a true-stereo response has 4 channels "
                         "and needs 2 inputs",
                         path, n, n == 1 ? "" : "s", in, in == 1 ? "" : "s");
    if (layout == IR_MATRIX && n % in)
        return fault_set(
            fault, "%s: %zu channel%s for %zu inputs: a matrix has a multiple of %zu channels",
            path, n, n == 1 ? "" : "s", in, in);
    if (s->matrix || in == 1 || n == 1 || n == in) return true;
    if (n == 4 && in == 2)
        return fault_set(fault,
                         "%s: 4 channels for 2 inputs: name it true-stereo:%s if they lead from "
                         "left to left, left to right, right to left, right to right, or matrix:%s "
                         "if the second and the third are exchanged",
                         path, path, path);
    return fault_set(
        fault, "%s: %zu channels; this run has %zu inputs: the filter needs 1 or %zu%s%s", path, n,
        in, in, n % in ? "" : ", or is a matrix named matrix:", n % in ? "" : path);
}

static bool load_file(struct response *r, enum ir_layout layout, const struct response_shape *shape,
                      const struct settings *settings, struct fault *fault)
{
    const struct audio_info device = {.channels = shape->in_channels, .rate = shape->rate};
    struct audio_reader *reader;
    if (!response_open(&reader, settings, r->path, fault)) return false;
    struct audio_info info = *audio_reader_info(reader);
    size_t chosen[MAX_WORDS];
    bool good = (!info.encoding.is_complex ||
                 fault_set(fault, "%s: complex taps; sound is real", r->path)) &&
                taps_choose_channels(chosen, &info, settings, fault);
    const struct settings s = settings_for(settings, layout, info.channels, shape);
    good = good &&
           (info.outputs ||
            check_channels(r->path, layout, &s, info.channels, shape->in_channels, fault)) &&
           taps_load(&r->taps, &reader, PARTITA_F32, &device, &s, fault);
    if (good && audio_shortfall(reader))
        snprintf(r->shortfall, sizeof r->shortfall, "%s", audio_shortfall(reader));
    if (good) snprintf(r->note, sizeof r->note, "%s", audio_reader_info(reader)->note);
    audio_reader_close(reader);
    return good;
}

bool response_load(struct response *ret, const struct settings *settings, const char *ir,
                   const struct response_shape *shape, const struct sofa_direction *direction,
                   struct fault *fault)
{
    struct response r = {0};
    struct settings s = *settings; // with the names that taps_load prints
    enum ir_layout layout;
    r.path = ir_name_path(ir, &layout);
    const bool is_network = route_is_named(settings, ir);
    if (sofa_is_named(r.path) && !is_network)
        return load_sofa(ret, settings, r.path, shape, direction, fault);
    s.operands[0] = r.path;
    s.operands[1] = DEVICE;
    s.gain = 0; // this and --dry are applied to the output, where they can change while playing
    s.dry = -INFINITY;
    bool good = is_network ? load_network(&r, ir, shape, &s, fault)
                           : load_file(&r, layout, shape, &s, fault);
    if (good && !check_outputs(&r, shape, fault)) {
        taps_release(&r.taps);
        good = false;
    }
    if (!good) return false;
    const struct rows rows = {r.taps.data, taps_count_rows(&r.taps), r.taps.length};
    r.first = rows_omitted_lead(&rows, r.taps.lead);
    r.length = r.taps.length - r.taps.lead - r.first; // after the end is as much as the lead
    r.onset = rows_first_above(&rows, ONSET_THRESHOLD * rows_peak(&rows), r.taps.length) - r.first;
    report_detail(settings, "%s: %zu taps, with their peak at frame %zu", r.path, r.length,
                  rows_first_above(&rows, rows_peak(&rows), r.taps.length) - r.first);
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
    const struct response *r = response;
    if (r->spread) return response_row(r, 0) + r->first;
    for (size_t i = 0; r->taps.paths && i < r->taps.n_paths; i++)
        if (r->taps.paths[i].out == out && r->taps.paths[i].in == in)
            return response_row(r, i) + r->first;
    if (r->taps.paths) return NULL;
    if (r->taps.groups == 1) return response_row(r, out * r->taps.in_channels + in) + r->first;
    return out == in ? response_row(r, out) + r->first : NULL;
}
