// SPDX-License-Identifier: MIT
// See response.h.
#include "response.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "config/matrix.h"
#include "convolve/network_taps.h"
#include "filter_set.h"
#include "io/rows.h"

// The onset of a response, as in ISO 3382-1: within 20 dB of its peak.
static const float ONSET_THRESHOLD = 0.1f;

static const char MATRIX_PREFIX[] = "matrix:";

const char *response_path(const char *ir, bool *ret_matrix)
{
    size_t n = sizeof MATRIX_PREFIX - 1;
    *ret_matrix = strncmp(ir, MATRIX_PREFIX, n) == 0;
    return ir + (*ret_matrix ? n : 0);
}

bool response_check(const struct settings *settings, const char *ir, struct fault *fault)
{
    bool matrix;
    const char *path = response_path(ir, &matrix);
    const bool is_sofa = sofa_is_named(path);
    return (!is_sofa && !network_is_named(path)) || (!matrix && !settings->matrix) ||
           fault_set(fault, "%s: %s; leave out %s", path,
                     is_sofa ? "the responses of a SOFA file lead from one input to two ears"
                             : "a configuration names the responses and their paths",
                     matrix ? MATRIX_PREFIX : "--matrix, --matrix-order and --true-stereo");
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

// The channels that a configuration has.
static bool choose_network_shape(const struct settings *s, const char *path, uint32_t rate,
                                 size_t *ret_in, size_t *ret_out, struct fault *fault)
{
    struct network network;
    if (!network_read(&network, path, fault)) return false;
    network_select(&network, rate);
    *ret_in = s->channels ? (size_t)s->channels : network.in_channels;
    *ret_out = network.out_channels;
    network_release(&network);
    return true;
}

bool response_choose_shape(struct response_shape *ret, const struct settings *settings,
                           const char *ir, const struct filter_set_request *request,
                           struct fault *fault)
{
    struct audio_reader *reader;
    bool matrix;
    const char *path = response_path(ir, &matrix);
    matrix = matrix || settings->matrix;
    size_t n_ir = SOFA_EARS, in = 1, out = 0;
    if (network_is_named(path)) {
        if (!choose_network_shape(settings, path, (uint32_t)lrint(request->rate), &in, &out, fault))
            return false;
    } else if (!sofa_is_named(path)) {
        if (!response_open(&reader, settings, path, fault)) return false;
        n_ir = audio_reader_info(reader)->channels;
        in = choose_inputs(settings, matrix, n_ir, request);
        audio_reader_close(reader);
    }
    if (!out) out = matrix ? n_ir / in : in == 1 ? n_ir : in;
    if (settings->out_channels) out = (size_t)settings->out_channels;
    if (in > request->max_in)
        return fault_set(fault, "--channels %zu: the device has %zu inputs", in, request->max_in);
    if (out > request->max_out)
        return fault_set(fault, "%s: gives %zu output channels; the device has %zu", path, out,
                         request->max_out);
    *ret = (struct response_shape){
        .in_channels = in, .out_channels = out, .rate = (uint32_t)lrint(request->rate)};
    return true;
}

static double rate_of_network(const char *path)
{
    struct network network;
    struct fault ignored;
    if (!network_read(&network, path, &ignored)) return 0;
    const double rate = matrix_rate(&network);
    network_release(&network);
    return rate;
}

double response_rate(const struct settings *settings, const char *ir)
{
    struct audio_reader *reader;
    bool matrix;
    struct fault ignored; // response_load will report it
    const char *path = response_path(ir, &matrix);
    if (sofa_is_named(path)) return sofa_rate(path, &ignored);
    if (network_is_named(path)) return rate_of_network(path);
    if (!response_open(&reader, settings, path, &ignored)) return 0;
    double rate = audio_reader_info(reader)->rate;
    audio_reader_close(reader);
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
    return fault_set(fault, "%s: gives %zu output channels for %zu inputs; this run has %zu",
                     r->path, out, in, shape->out_channels);
}

bool response_turn(struct response *ret, const char *path, const struct sofa *sofa,
                   const struct sofa_direction *direction, struct fault *fault)
{
    struct response r = {.path = path, .channels = SOFA_EARS, .length = sofa_length(sofa)};
    float *taps = sofa_pair(sofa, path, direction, &r.pair, fault);
    *ret = r;
    if (!taps) return false;
    r.taps = (struct taps){.data = taps,
                           .type = PARTITA_F32,
                           .length = r.length,
                           .in_channels = 1,
                           .out_channels = SOFA_EARS,
                           .groups = 1};
    const struct rows rows = {taps, SOFA_EARS, r.length};
    r.onset = rows_first_above(&rows, ONSET_THRESHOLD * rows_peak(&rows), r.length);
    *ret = r;
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

static bool load_network(struct response *r, const struct audio_info *device,
                         const struct settings *settings, struct fault *fault)
{
    struct network network;
    if (!network_read(&network, r->path, fault)) return false;
    network_select(&network, device->rate);
    r->channels = network.out_channels;
    const bool good = network_taps_load(&r->taps, &network, PARTITA_F32, device, settings, fault);
    network_release(&network);
    return good;
}

static bool load_file(struct response *r, const struct audio_info *device,
                      const struct settings *settings, struct fault *fault)
{
    struct audio_reader *reader;
    if (!response_open(&reader, settings, r->path, fault)) return false;
    r->channels = audio_reader_info(reader)->channels;
    bool good = audio_reader_info(reader)->encoding.is_complex == 0 ||
                fault_set(fault, "%s: complex taps; sound is real", r->path);
    good = good && taps_load(&r->taps, &reader, PARTITA_F32, device, settings, fault);
    if (good && audio_shortfall(reader))
        snprintf(r->shortfall, sizeof r->shortfall, "%s", audio_shortfall(reader));
    if (good && audio_note(reader)) snprintf(r->note, sizeof r->note, "%s", audio_note(reader));
    audio_reader_close(reader);
    return good;
}

bool response_load(struct response *ret, const struct settings *settings, const char *ir,
                   const struct response_shape *shape, const struct sofa_direction *direction,
                   struct fault *fault)
{
    struct response r = {0};
    struct audio_info device = {.channels = shape->in_channels, .rate = shape->rate};
    struct settings s = *settings; // with the names that taps_load prints
    bool matrix;
    r.path = response_path(ir, &matrix);
    if (sofa_is_named(r.path)) return load_sofa(ret, settings, r.path, shape, direction, fault);
    if (matrix) s.matrix = 1;
    s.operands[0] = r.path;
    s.operands[1] = "the audio device";
    s.gain = 0; // this and --dry are applied to the output, where they can change while playing
    s.dry = -INFINITY;
    bool good = network_is_named(r.path) ? load_network(&r, &device, &s, fault)
                                         : load_file(&r, &device, &s, fault);
    if (good && !check_outputs(&r, shape, fault)) {
        taps_release(&r.taps);
        good = false;
    }
    if (!good) return false;
    const struct rows rows = {r.taps.data, taps_count_rows(&r.taps), r.taps.length};
    r.first = rows_omitted_lead(&rows, r.taps.lead);
    r.length = r.taps.length - r.taps.lead - r.first; // after the end is as much as the lead
    r.onset = rows_first_above(&rows, ONSET_THRESHOLD * rows_peak(&rows), r.taps.length) - r.first;
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
