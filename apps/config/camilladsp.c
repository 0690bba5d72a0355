// SPDX-License-Identifier: MIT
// Configurations of CamillaDSP: the filters and mixers that its pipeline uses, each step of which
// becomes a stage. What is not linear is refused. Devices are those of the caller; only the sample
// rate and the numbers of channels are taken from the configuration.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "camilladsp.h"

static const double MAX_GAIN_DB = 300, MAX_GAIN = 1e6, MAX_RATE = 1 << 24;
static const double MAX_SKIP = SIZE_MAX < UINT64_MAX ? 1e9 : 1e12; // bytes or lines

// gain, scale, inverted and mute of a filter or of a mixer's source.
static bool parse_gain(struct camilladsp *c, const yaml_node_t *map, struct network_term *term)
{
    const char *scale = yaml_node_text(yaml_node_get(&c->yaml, map, "scale"));
    const bool linear = scale && strcmp(scale, "linear") == 0;
    const double bound = linear ? MAX_GAIN : MAX_GAIN_DB;
    double gain = linear ? 1 : 0;
    bool inverted = false, mute = false;
    if (scale && !linear && strcmp(scale, "dB") != 0)
        return yaml_node_fault(&c->yaml, yaml_node_get(&c->yaml, map, "scale"),
                               "scale: '%.40s' is neither dB nor linear", scale);
    if (!yaml_node_get_real(&c->yaml, map, "gain", -bound, bound, &gain) ||
        !yaml_node_get_flag(&c->yaml, map, "inverted", &inverted) ||
        !yaml_node_get_flag(&c->yaml, map, "mute", &mute))
        return false;
    if (!linear) gain = pow(10, gain / 20);
    term->gain = mute ? 0 : gain * (inverted ? -1 : 1);
    return true;
}

// Reads a list of numbers into impulse->values.
static bool parse_values(struct camilladsp *c, const yaml_node_t *list, struct impulse *impulse)
{
    const struct network_number number = {"value", 0, -MAX_COEFFICIENT, MAX_COEFFICIENT};
    const size_t n = yaml_node_count(list);
    if (!n) return yaml_node_fault(&c->yaml, list, "needs a list of numbers, such as [0.5, 0.5]");
    bool good = network_allocate_values(c->network, impulse, n, c->yaml.fault);
    for (size_t i = 0; good && i < n; i++)
        good = yaml_node_number(&c->yaml, yaml_node_element(&c->yaml, list, i), &number,
                                &impulse->values[i], NULL);
    if (!good) free(impulse->values);
    return good;
}

// A name, in which $samplerate$ and $channels$ stand for numbers. key: of a map; NULL: `node` is
// it.
static bool expand_name(struct camilladsp *c, const yaml_node_t *node, const char *key,
                        char ret[PATH_MAX])
{
    if (key && !yaml_node_get_text(&c->yaml, node, key)) return false;
    if (key) node = yaml_node_get(&c->yaml, node, key);
    const struct {
        const char *text;
        size_t value;
    } tokens[] = {{"$samplerate$", (size_t)c->network->rate},
                  {"$channels$", c->network->in_channels}};
    size_t n = 0;
    const char *from = yaml_node_text(node);
    while (from && *from && n < PATH_MAX - 1) {
        size_t i = 0;
        while (i < 2 && strncmp(from, tokens[i].text, strlen(tokens[i].text)) != 0) i++;
        if (i == 2) ret[n++] = *from++;
        else n += (size_t)snprintf(ret + n, PATH_MAX - n, "%zu", tokens[i].value);
        if (i < 2) from += strlen(tokens[i].text);
    }
    ret[n < PATH_MAX ? n : 0] = 0;
    return !from || (!*from && n < PATH_MAX) ||
           yaml_node_fault(&c->yaml, node, "a name is longer than %d characters", PATH_MAX - 1);
}

static bool parse_file_name(struct camilladsp *c, const yaml_node_t *map, struct impulse *impulse)
{
    char name[PATH_MAX];
    if (!expand_name(c, map, "filename", name)) return false;
    impulse->path = network_file(c->network, NULL, name);
    return true;
}

static bool parse_raw_format(struct camilladsp *c, const yaml_node_t *map, struct impulse *impulse)
{
    static const struct {
        const char *name;
        enum encoding_kind kind;
        unsigned bytes;
    } names[] = {
        {"S16LE", ENCODING_SIGNED, 2},       {"S16_LE", ENCODING_SIGNED, 2},
        {"S24LE3", ENCODING_SIGNED, 3},      {"S24_3_LE", ENCODING_SIGNED, 3},
        {"S24_4_LJ_LE", ENCODING_SIGNED, 4}, {"S32LE", ENCODING_SIGNED, 4},
        {"S32_LE", ENCODING_SIGNED, 4},      {"FLOAT32LE", ENCODING_FLOAT, 4},
        {"F32_LE", ENCODING_FLOAT, 4},       {"FLOAT64LE", ENCODING_FLOAT, 8},
        {"F64_LE", ENCODING_FLOAT, 8},
    };
    const yaml_node_t *node = yaml_node_get(&c->yaml, map, "format");
    const char *name = node ? yaml_node_text(node) : "TEXT";
    impulse->source = IMPULSE_TEXT;
    if (name && strcmp(name, "TEXT") == 0) return true;
    impulse->source = IMPULSE_RAW;
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i].name) != 0) continue;
        impulse->raw = (struct encoding){.kind = names[i].kind, .bytes = names[i].bytes};
        return true;
    }
    return yaml_node_fault(&c->yaml, node,
                           "format: '%.40s' is none of TEXT, S16_LE, S24_3_LE, S24_4_LJ_LE, "
                           "S32_LE, F32_LE and F64_LE",
                           name ? name : "");
}

// skip_bytes_lines and read_bytes_lines count lines of text and bytes of samples.
static bool parse_raw_range(struct camilladsp *c, const yaml_node_t *map, struct impulse *impulse)
{
    size_t skip = 0, read = 0;
    if (!yaml_node_get_whole(&c->yaml, map, "skip_bytes_lines", 0, MAX_SKIP, &skip) ||
        !yaml_node_get_whole(&c->yaml, map, "read_bytes_lines", 0, MAX_SKIP, &read))
        return false;
    if (impulse->source == IMPULSE_TEXT) {
        impulse->skip_lines = skip;
        impulse->length = read;
        return true;
    }
    const unsigned bytes = impulse->raw.bytes;
    if (skip % bytes || read % bytes)
        return yaml_node_fault(&c->yaml, map,
                               "skip_bytes_lines and read_bytes_lines: must be multiples of %u, "
                               "the bytes of a sample",
                               bytes);
    impulse->offset = skip / bytes;
    impulse->length = read / bytes;
    return true;
}

// Without parameters and as Dummy a Conv filter is a unit impulse.
static bool parse_conv_filter(struct camilladsp *c, const yaml_node_t *map,
                              struct network_term *term)
{
    struct impulse impulse = {.source = IMPULSE_FILE};
    const char *type = map ? yaml_node_get_text(&c->yaml, map, "type") : "Dummy";
    bool good = false;
    if (!type || strcmp(type, "Dummy") == 0) return type;
    impulse.line = yaml_node_line(map);
    if (strcmp(type, "Values") == 0) {
        const yaml_node_t *list = yaml_node_get(&c->yaml, map, "values");
        good = parse_values(c, list ? list : map, &impulse);
    } else if (strcmp(type, "Wav") == 0)
        good =
            yaml_node_get_whole(&c->yaml, map, "channel", 0, NETWORK_MAX_TERMS, &impulse.channel) &&
            parse_file_name(c, map, &impulse);
    else if (strcmp(type, "Raw") == 0)
        good = parse_raw_format(c, map, &impulse) && parse_raw_range(c, map, &impulse) &&
               parse_file_name(c, map, &impulse);
    else
        yaml_node_fault(&c->yaml, yaml_node_get(&c->yaml, map, "type"),
                        "type: '%.40s' is none of Wav, Raw, Values and Dummy", type);
    return good && network_add_impulse(c->network, &impulse, &term->impulse, c->yaml.fault);
}

// A difference equation without feedback, whose coefficients b are taps.
static bool parse_diffeq_filter(struct camilladsp *c, const yaml_node_t *map,
                                struct network_term *term)
{
    struct impulse impulse = {.line = yaml_node_line(map)};
    double first = 1;
    const yaml_node_t *a, *b;
    if (!yaml_node_get_list(&c->yaml, map, "a", &a) || !yaml_node_get_list(&c->yaml, map, "b", &b))
        return false;
    const size_t n = yaml_node_count(a);
    const struct network_number number = {"a", 0, -MAX_COEFFICIENT, MAX_COEFFICIENT};
    if (n && !yaml_node_number(&c->yaml, yaml_node_element(&c->yaml, a, 0), &number, &first, NULL))
        return false;
    if (n > 1 || first != 1)
        return yaml_node_fault(&c->yaml, a,
                               "a: only [1] can be convolved; a Biquad of type Free has feedback");
    return !b || (parse_values(c, b, &impulse) &&
                  network_add_impulse(c->network, &impulse, &term->impulse, c->yaml.fault));
}

static const struct filter_type {
    const char *name, *keys; // keys: of the parameters; NULL: the type of section decides
    bool (*parse)(struct camilladsp *, const yaml_node_t *map, struct network_term *);
} filter_types[] = {
    {"Conv", "type|filename|channel|format|skip_bytes_lines|read_bytes_lines|values|length",
     parse_conv_filter},
    {"Gain", "gain|scale|inverted|mute", parse_gain},
    {"Delay", "delay|unit|delay_unit|subsample", camilladsp_delay},
    {"DiffEq", "a|b", parse_diffeq_filter},
    {"Biquad", NULL, camilladsp_biquad},
    {"BiquadCombo", NULL, camilladsp_biquad},
    {"Loudness", "fader|reference_level|high_boost|low_boost|attenuate_mid|ramp_time",
     camilladsp_loudness},
    {"Volume", "fader|ramp_time|limit", camilladsp_volume},
};

static bool parse_filter(struct camilladsp *c, const yaml_node_t *used, struct network_term *ret)
{
    char name[PATH_MAX];
    *ret = (struct network_term){.gain = 1};
    if (!expand_name(c, used, NULL, name)) return false;
    yaml_node_t *filter = yaml_node_get(&c->yaml, c->filters, name);
    if (!filter) return yaml_node_fault(&c->yaml, used, "there is no filter '%.40s'", name);
    if (!yaml_node_check_keys(&c->yaml, filter, "type|description|parameters")) return false;
    const char *type = yaml_node_get_text(&c->yaml, filter, "type");
    if (!type) return false;
    ret->line = yaml_node_line(filter);
    size_t *known = &c->impulses[filter - c->yaml.document.nodes.start];
    ret->impulse = *known - 1; // IMPULSE_UNIT if it is not known
    if (*known) return true;
    const yaml_node_t *parameters = yaml_node_get(&c->yaml, filter, "parameters");
    for (size_t i = 0; i < sizeof filter_types / sizeof *filter_types; i++) {
        const struct filter_type *t = &filter_types[i];
        if (strcmp(type, t->name) != 0) continue;
        if (!parameters && t->parse != parse_conv_filter)
            return yaml_node_fault(&c->yaml, filter, "filter '%.40s' has no parameters", name);
        if (parameters && t->keys && !yaml_node_check_keys(&c->yaml, parameters, t->keys))
            return false;
        if (!t->parse(c, parameters, ret)) return false;
        if (ret->delay == 0) *known = ret->impulse + 1;
        return true;
    }
    return yaml_node_fault(
        &c->yaml, yaml_node_get(&c->yaml, filter, "type"),
        "filter '%.40s': %.40s cannot be convolved; take it out of the pipeline, "
        "which may have Biquad, BiquadCombo, Conv, Delay, DiffEq without "
        "feedback, Gain, Loudness and Volume",
        name, type);
}

static bool select_channel(struct camilladsp *c, const yaml_node_t *node, bool *selected)
{
    const struct network_number number = {"channel", 0, 0, (double)c->channels - 1};
    size_t channel;
    if (!yaml_node_number(&c->yaml, node, &number, NULL, &channel)) return false;
    selected[channel] = true;
    return true;
}

// The channels of a step: all if it names none.
static bool select_channels(struct camilladsp *c, const yaml_node_t *step, bool *selected)
{
    const yaml_node_t *one = yaml_node_get(&c->yaml, step, "channel"),
                      *list = yaml_node_get(&c->yaml, step, "channels");
    for (size_t i = 0; i < c->channels; i++) selected[i] = !one && !list;
    if (one && !select_channel(c, one, selected)) return false;
    if (list && list->type != YAML_SEQUENCE_NODE) return select_channel(c, list, selected);
    for (size_t i = 0; i < yaml_node_count(list); i++)
        if (!select_channel(c, yaml_node_element(&c->yaml, list, i), selected)) return false;
    return true;
}

// A stage that applies one filter to the selected channels and passes the others.
static bool add_filter_stage(struct camilladsp *c, const struct network_term *filter,
                             const bool *selected)
{
    if (!network_add_stage(c->network, c->channels, c->channels, c->yaml.fault)) return false;
    for (size_t i = 0; i < c->channels; i++) {
        struct network_term term = {.impulse = IMPULSE_UNIT, .gain = 1, .line = filter->line};
        if (selected[i]) term = *filter;
        term.in = term.out = i;
        if (term.gain != 0 && !network_add_term(c->network, &term, c->yaml.fault)) return false;
    }
    return true;
}

static bool add_filter_step(struct camilladsp *c, const yaml_node_t *step)
{
    bool selected[NETWORK_MAX_CHANNELS];
    if (!yaml_node_check_keys(&c->yaml, step, "type|channel|channels|names|bypassed|description") ||
        !select_channels(c, step, selected))
        return false;
    const yaml_node_t *names;
    if (!yaml_node_get_list(&c->yaml, step, "names", &names)) return false;
    for (size_t i = 0; i < yaml_node_count(names); i++) {
        struct network_term filter;
        if (!parse_filter(c, yaml_node_element(&c->yaml, names, i), &filter) ||
            !add_filter_stage(c, &filter, selected))
            return false;
    }
    return yaml_node_count(names) || yaml_node_fault(&c->yaml, step, "needs names of filters");
}

// The sources of one output of a mixer.
static bool add_sources(struct camilladsp *c, const yaml_node_t *mapping, size_t in, size_t out)
{
    static const char keys[] = "dest|mute|sources",
                      source_keys[] = "channel|gain|inverted|scale|mute";
    size_t output = NEEDED_WHOLE;
    bool mute = false;
    if (!yaml_node_check_keys(&c->yaml, mapping, keys) ||
        !yaml_node_get_whole(&c->yaml, mapping, "dest", 0, (double)out - 1, &output) ||
        !yaml_node_get_flag(&c->yaml, mapping, "mute", &mute))
        return false;
    const yaml_node_t *sources;
    if (!yaml_node_get_list(&c->yaml, mapping, "sources", &sources)) return false;
    for (size_t i = 0; i < yaml_node_count(sources); i++) {
        const yaml_node_t *source = yaml_node_element(&c->yaml, sources, i);
        struct network_term term = {.out = output,
                                    .in = NEEDED_WHOLE,
                                    .impulse = IMPULSE_UNIT,
                                    .line = yaml_node_line(source)};
        if (!yaml_node_check_keys(&c->yaml, source, source_keys) ||
            !yaml_node_get_whole(&c->yaml, source, "channel", 0, (double)in - 1, &term.in) ||
            !parse_gain(c, source, &term))
            return false;
        if (!mute && term.gain != 0 && !network_add_term(c->network, &term, c->yaml.fault))
            return false;
    }
    return true;
}

static bool add_mixer_step(struct camilladsp *c, const yaml_node_t *step)
{
    size_t in = NEEDED_WHOLE, out = NEEDED_WHOLE;
    char name[PATH_MAX];
    if (!yaml_node_check_keys(&c->yaml, step, "type|name|bypassed|description") ||
        !expand_name(c, step, "name", name))
        return false;
    const yaml_node_t *mixer = yaml_node_get(&c->yaml, c->mixers, name);
    if (!mixer) return yaml_node_fault(&c->yaml, step, "there is no mixer '%.40s'", name);
    if (!yaml_node_check_keys(&c->yaml, mixer, "description|labels|channels|mapping")) return false;
    const yaml_node_t *channels = yaml_node_get(&c->yaml, mixer, "channels");
    if (!channels) return yaml_node_fault(&c->yaml, mixer, "mixer '%.40s' needs channels", name);
    if (!yaml_node_get_whole(&c->yaml, channels, "in", 1, NETWORK_MAX_CHANNELS, &in) ||
        !yaml_node_get_whole(&c->yaml, channels, "out", 1, NETWORK_MAX_CHANNELS, &out))
        return false;
    if (in != c->channels)
        return yaml_node_fault(&c->yaml, mixer,
                               "mixer '%.40s' has %zu inputs; the pipeline has %zu channels there",
                               name, in, c->channels);
    if (!network_add_stage(c->network, out, in, c->yaml.fault)) return false;
    const yaml_node_t *mapping;
    if (!yaml_node_get_list(&c->yaml, mixer, "mapping", &mapping)) return false;
    for (size_t i = 0; i < yaml_node_count(mapping); i++)
        if (!add_sources(c, yaml_node_element(&c->yaml, mapping, i), in, out)) return false;
    c->channels = out;
    return true;
}

static bool add_step(struct camilladsp *c, const yaml_node_t *step)
{
    bool bypassed = false;
    if (!yaml_node_is_map(step)) return yaml_node_fault(&c->yaml, step, "is no step of a pipeline");
    const char *type = yaml_node_get_text(&c->yaml, step, "type");
    if (!type || !yaml_node_get_flag(&c->yaml, step, "bypassed", &bypassed)) return false;
    if (bypassed) return true;
    if (strcmp(type, "Filter") == 0) return add_filter_step(c, step);
    if (strcmp(type, "Mixer") == 0) return add_mixer_step(c, step);
    return yaml_node_fault(&c->yaml, step,
                           "type: '%.40s' is no linear filter; only Filter and Mixer are", type);
}

static bool parse_root(struct camilladsp *c)
{
    const yaml_node_t *root = yaml_document_get_root_node(&c->yaml.document);
    if (!yaml_node_is_map(root))
        return fault_set(c->yaml.fault,
                         "%s: is no configuration of CamillaDSP, which has devices, "
                         "filters, mixers and a pipeline",
                         c->network->path);
    const yaml_node_t *devices = yaml_node_get(&c->yaml, root, "devices"),
                      *capture = yaml_node_get(&c->yaml, devices, "capture"),
                      *playback = yaml_node_get(&c->yaml, devices, "playback"), *pipeline;
    size_t rate = 0, in = 0, out = 0; // 0: not stated
    if (!yaml_node_get_whole(&c->yaml, devices, "samplerate", 1, MAX_RATE, &rate) ||
        !yaml_node_get_whole(&c->yaml, capture, "channels", 1, NETWORK_MAX_CHANNELS, &in) ||
        !yaml_node_get_whole(&c->yaml, playback, "channels", 1, NETWORK_MAX_CHANNELS, &out))
        return false;
    if (!rate || !in)
        return yaml_node_fault(&c->yaml, devices ? devices : root, "devices: needs %s",
                               rate ? "capture: channels" : "samplerate");
    c->network->rate = (double)rate;
    c->network->in_channels = c->channels = in;
    c->filters = yaml_node_get(&c->yaml, root, "filters");
    c->mixers = yaml_node_get(&c->yaml, root, "mixers");
    if (!yaml_node_get_list(&c->yaml, root, "pipeline", &pipeline)) return false;
    for (size_t i = 0; i < yaml_node_count(pipeline); i++)
        if (!add_step(c, yaml_node_element(&c->yaml, pipeline, i))) return false;
    c->network->out_channels = c->channels;
    return !out || out == c->channels ||
           yaml_node_fault(&c->yaml, playback, "has %zu channels; the pipeline ends with %zu", out,
                           c->channels);
}

bool camilladsp_parse(struct network *network, char *text, struct fault *fault)
{
    struct camilladsp c = {.network = network};
    if (!yaml_source_parse(&c.yaml, network, text, fault)) return false;
    const size_t n = (size_t)(c.yaml.document.nodes.top - c.yaml.document.nodes.start);
    c.impulses = calloc(n + 1, sizeof *c.impulses); // also for a document without nodes
    const bool good =
        c.impulses ? parse_root(&c) : fault_set(fault, "%s: out of memory", network->path);
    free(c.impulses);
    yaml_document_delete(&c.yaml.document);
    return good;
}
