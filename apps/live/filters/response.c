// SPDX-License-Identifier: MIT
// See response.h.
#include "response.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "filter_set.h"
#include "io/rows.h"

// The onset of a response, as in ISO 3382-1: within 20 dB of its peak.
static const float ONSET_THRESHOLD = 0.1f;

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
static size_t choose_inputs(const struct settings *s, size_t n_ir,
                            const struct filter_set_request *request)
{
    if (s->channels) return (size_t)s->channels;
    size_t n = n_ir == 1 || s->matrix ? 2 : n_ir;
    if (n_ir == 1 && n > request->max_out) n = request->max_out;
    return n < request->max_in ? n : request->max_in;
}

bool response_choose_shape(struct response_shape *ret, const struct settings *settings,
                           const char *path, const struct filter_set_request *request,
                           struct fault *fault)
{
    struct audio_reader *reader;
    if (!response_open(&reader, settings, path, fault)) return false;
    size_t n_ir = audio_reader_info(reader)->channels, in = choose_inputs(settings, n_ir, request);
    audio_reader_close(reader);
    size_t out = settings->matrix ? n_ir / in : in == 1 ? n_ir : in;
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

double response_rate(const struct settings *settings, const char *path)
{
    struct audio_reader *reader;
    struct fault ignored; // response_load will report it
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

bool response_load(struct response *ret, const struct settings *settings, const char *path,
                   const struct response_shape *shape, struct fault *fault)
{
    struct response r = {.path = path};
    struct audio_reader *reader;
    struct audio_info device = {.channels = shape->in_channels, .rate = shape->rate};
    struct settings s = *settings; // with the names that taps_load prints
    s.operands[0] = path;
    s.operands[1] = "the audio device";
    s.gain = 0; // applied to the output, where it can change while playing
    if (!response_open(&reader, settings, path, fault)) return false;
    r.channels = audio_reader_info(reader)->channels;
    bool good = audio_reader_info(reader)->encoding.is_complex == 0 ||
                fault_set(fault, "%s: complex taps; sound is real", path);
    good = good && taps_load(&r.taps, reader, PARTITA_F32, &device, &s, fault);
    if (good && audio_shortfall(reader))
        snprintf(r.shortfall, sizeof r.shortfall, "%s", audio_shortfall(reader));
    audio_reader_close(reader);
    if (good && !check_outputs(&r, shape, fault)) {
        taps_release(&r.taps);
        good = false;
    }
    if (!good) return false;
    const struct rows rows = {
        r.taps.data, r.taps.out_channels * (r.taps.in_channels / r.taps.groups), r.taps.length};
    r.first = rows_omitted_lead(&rows, r.taps.lead);
    r.length = r.taps.length - r.taps.lead - r.first; // after the end is as much as the lead
    r.onset = rows_first_above(&rows, ONSET_THRESHOLD * rows_peak(&rows), r.taps.length) - r.first;
    *ret = r;
    return true;
}

void response_release(struct response *response)
{
    taps_release(&response->taps);
}

const float *response_taps(const struct response *response, size_t out, size_t in)
{
    const struct response *r = response;
    if (r->spread) return response_row(r, 0) + r->first;
    if (r->taps.groups == 1) return response_row(r, out * r->taps.in_channels + in) + r->first;
    return out == in ? response_row(r, out) + r->first : NULL;
}
