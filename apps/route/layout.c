// SPDX-License-Identifier: MIT
#include "layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "config/impulse_file.h"
#include "io/frames.h"

// The loudspeakers of WAVE_FORMAT_EXTENSIBLE by the bits of its channel mask, whose order is that
// of the channels. Directions are within the ranges of ITU-R BS.2051, as the EBU ADM Renderer has
// them (ear 2.1.0, 2051_layouts.yaml), for all of its layouts that have the loudspeaker. Channels
// of HeSuVi are as PipeWire's sink-virtual-surround-7.1-hesuvi.conf takes them.
static const struct speaker {
    const char *name;
    struct sofa_direction direction;
    int hesuvi[SOFA_EARS]; // channels of the left and the right ear; both 0: none
} speakers[] = {
    {"FL", {30, 0}, {0, 1}},  {"FR", {-30, 0}, {8, 7}},   {"FC", {0, 0}, {6, 13}},
    {"LFE", {0, 0}, {0}},     {"BL", {135, 0}, {4, 5}},   {"BR", {-135, 0}, {12, 11}},
    {"FLC", {22.5, 0}, {0}},  {"FRC", {-22.5, 0}, {0}},   {"BC", {180, 0}, {0}},
    {"SL", {110, 0}, {2, 3}}, {"SR", {-110, 0}, {10, 9}}, {"TC", {0, 90}, {0}},
    {"TFL", {45, 45}, {0}},   {"TFC", {0, 45}, {0}},      {"TFR", {-45, 45}, {0}},
    {"TBL", {135, 45}, {0}},  {"TBC", {180, 45}, {0}},    {"TBR", {-135, 45}, {0}},
};
enum { N_SPEAKERS = sizeof speakers / sizeof *speakers, CENTRE = 2, LFE = 3, HESUVI_CHANNELS = 14 };
enum { BACKS = 0x30, SIDES = 0x600 }; // in the mask
static const double BESIDE = 90;      // azimuth of sides where there are backs

// By their names in --layout, the first without it; the last are Ambisonics of order 1 to 3.
static const struct layout {
    const char *name;
    uint32_t mask; // 0: Ambisonics
} layouts[] = {
    {"", 0x4},          {"2.0", 0x3},        {"2.1", 0xb},        {"3.0", 0x7},
    {"4.0", 0x33},      {"5.0", 0x607},      {"5.1", 0x60f},      {"6.1", 0x70f},
    {"7.1", 0x63f},     {"5.1.2", 0x560f},   {"5.1.4", 0x2d60f},  {"7.1.2", 0x563f},
    {"7.1.4", 0x2d63f}, {"ambisonics-1", 0}, {"ambisonics-2", 0}, {"ambisonics-3", 0},
};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts, OF_HESUVI = 8, FIRST_ORDER = 13 };
enum { MAX_HARMONICS = 16, NAMES_SIZE = 128 };

// N_LAYOUTS: it is unknown.
static size_t layout_number(const struct settings *s, enum ir_layout prefix)
{
    size_t i = 1;
    if (!s->layout) return prefix == IR_HESUVI ? OF_HESUVI : 0;
    while (i < N_LAYOUTS && strcmp(s->layout, layouts[i].name) != 0) i++;
    return i;
}

static size_t count_channels(size_t layout)
{
    const size_t terms = layout - FIRST_ORDER + 2;
    return layout >= FIRST_ORDER ? terms * terms : (size_t)__builtin_popcount(layouts[layout].mask);
}

bool layout_inputs(const struct settings *settings, enum ir_layout prefix, size_t *ret,
                   struct fault *fault)
{
    const size_t layout = layout_number(settings, prefix);
    if (layout == N_LAYOUTS)
        return fault_usage(fault,
                           "--layout %s: is unknown; `partita convolve --help` lists layouts",
                           settings->layout);
    if (settings->lfe != 0 && !(layouts[layout].mask >> LFE & 1))
        return fault_usage(fault, "--lfe: %s%s has no LFE; leave it out",
                           settings->layout ? "--layout " : "a single source",
                           settings->layout ? settings->layout : "");
    *ret = count_channels(layout);
    return true;
}

static const char *list_names(uint32_t mask, char text[NAMES_SIZE])
{
    size_t n = 0;
    *text = 0;
    for (int i = 0; i < N_SPEAKERS; i++)
        if (mask & 1u << i)
            n += (size_t)snprintf(text + n, NAMES_SIZE - n, "%s%s", n ? " " : "", speakers[i].name);
    return text;
}

// Backs and sides are two names of the same pair where a layout has one.
static bool is_mask_of(uint32_t mask, uint32_t layout)
{
    const uint32_t pairs = BACKS | SIDES;
    const bool one = (layout & pairs) == BACKS || (layout & pairs) == SIDES;
    return mask == layout || (one && mask == (layout ^ pairs));
}

// A file from which the pairs of responses are taken.
struct binaural {
    struct network *network;
    size_t layout;
    const char *path;
    struct sofa *sofa; // NULL: a file of HeSuVi
    struct fault *fault;
};

static bool check_signal(const struct binaural *b, const struct settings *s,
                         const struct audio_info *signal)
{
    const struct network *n = b->network;
    const struct layout *layout = &layouts[b->layout];
    const char *from = n->n_stages ? n->path : operand_name(s, 1);
    const size_t wanted = count_channels(b->layout);
    const uint32_t mask = n->n_stages || !*layout->name ? 0 : signal->channel_mask;
    char has[NAMES_SIZE], wants[NAMES_SIZE];
    size_t fits = 1;
    if (signal->encoding.is_complex)
        return fault_set(b->fault, "%s: its samples are complex; %s is for sound, which is real",
                         from, b->path);
    if (n->out_channels != wanted)
        return fault_set(b->fault, "%s: %zu channel%s; %s takes %zu%s%s%s%s", from, n->out_channels,
                         n->out_channels == 1 ? "" : "s", b->path, wanted,
                         s->layout ? " with --layout " : "; choose a --layout",
                         s->layout ? layout->name : "", layout->mask && s->layout ? ": " : "",
                         s->layout ? list_names(layout->mask, wants) : "");
    if (!mask || is_mask_of(mask, layout->mask)) return true;
    while (fits < FIRST_ORDER && !is_mask_of(mask, layouts[fits].mask)) fits++;
    return fault_set(b->fault, "%s: its loudspeakers are %s; --layout %s has %s: use %s%s", from,
                     list_names(mask, has), layout->name,
                     layout->mask ? list_names(layout->mask, wants) : "none",
                     fits < FIRST_ORDER ? "--layout " : "a file whose header has no channel mask",
                     fits < FIRST_ORDER ? layouts[fits].name : "");
}

// Connects an input with both ears: by a unit impulse, or by two impulses from this one on.
static bool connect(struct binaural *b, size_t in, size_t impulse, double gain, double delay)
{
    for (size_t ear = 0; ear < SOFA_EARS; ear++) {
        const size_t of_ear = impulse == IMPULSE_UNIT ? impulse : impulse + ear;
        const struct network_term term = {ear, in, of_ear, gain, delay, 0};
        if (!network_add_term(b->network, &term, b->fault)) return false;
    }
    return true;
}

// Appends the impulses of both ears for a direction of a SOFA file.
static bool add_measured(struct binaural *b, const struct sofa_direction *direction)
{
    const size_t n = sofa_length(b->sofa);
    int number;
    size_t index;
    float *pair = sofa_pair(b->sofa, b->path, direction, &number, b->fault);
    bool good = pair != NULL;
    for (size_t ear = 0; good && ear < SOFA_EARS; ear++) {
        struct impulse impulse = {0};
        good = network_allocate_values(b->network, &impulse, n, b->fault);
        for (size_t i = 0; good && i < n; i++) impulse.values[i] = (double)pair[ear * n + i];
        good = good && network_add_impulse(b->network, &impulse, &index, b->fault);
    }
    memory_free(pair);
    return good;
}

static bool add_speaker(struct binaural *b, int i)
{
    const struct speaker *speaker = &speakers[i];
    struct sofa_direction direction = speaker->direction;
    size_t index;
    if ((layouts[b->layout].mask & BACKS) && (1u << i & SIDES))
        direction.azimuth = copysign(BESIDE, direction.azimuth);
    if (b->sofa) return add_measured(b, &direction);
    if (!speaker->hesuvi[0] && !speaker->hesuvi[1])
        return fault_set(b->fault, "%s: HeSuVi's channels have no %s; use a SOFA file", b->path,
                         speaker->name);
    for (int ear = 0; ear < SOFA_EARS; ear++) {
        const struct impulse impulse = {.path = strdup(b->path),
                                        .channel = (size_t)speaker->hesuvi[ear]};
        if (!network_add_impulse(b->network, &impulse, &index, b->fault)) return false;
    }
    return true;
}

// The frame at which what comes from the front is loudest in the left ear.
static bool find_front(struct binaural *b, size_t max_channels, double *ret_delay)
{
    struct impulse_file file = {.max_channels = max_channels};
    const size_t index = b->network->n_impulses;
    struct frames f;
    double rate;
    const bool good =
        add_speaker(b, CENTRE) &&
        impulse_file_read(&file, b->network, &b->network->impulses[index], &f, &rate, b->fault);
    impulse_file_release(&file);
    if (!good) return false;
    *ret_delay = (double)frames_peak(f.data, f.n);
    frames_release(&f);
    return true;
}

// The LFE has no direction: both ears have it as it is, when they have what comes from the front.
static bool add_speakers(struct binaural *b, const struct settings *s)
{
    const uint32_t mask = layouts[b->layout].mask;
    double delay = 0;
    size_t in = 0;
    bool good = network_add_stage(b->network, SOFA_EARS, count_channels(b->layout), b->fault) &&
                (!(mask & 1u << LFE) || find_front(b, options_max_channels(s), &delay));
    for (int i = 0; good && i < N_SPEAKERS; i++) {
        const size_t first = b->network->n_impulses;
        if (!(mask & 1u << i)) continue;
        if (i == LFE) good = connect(b, in, IMPULSE_UNIT, pow(10, s->lfe / 20), delay);
        else good = add_speaker(b, i) && connect(b, in, first, 1, 0);
        in++;
    }
    return good;
}

// Real spherical harmonics up to order 3: channels in the order ACN, of the norm SN3D.
static void harmonics_of(const struct sofa_direction *d, double y[MAX_HARMONICS])
{
    const double a = d->azimuth * M_PI / 180, e = d->elevation * M_PI / 180;
    const double x = cos(a) * cos(e), l = sin(a) * cos(e), z = sin(e);
    const double all[MAX_HARMONICS] = {1,
                                       l,
                                       z,
                                       x,
                                       sqrt(3) * x * l,
                                       sqrt(3) * l * z,
                                       (3 * z * z - 1) / 2,
                                       sqrt(3) * x * z,
                                       sqrt(3) / 2 * (x * x - l * l),
                                       sqrt(5.0 / 8) * l * (3 * x * x - l * l),
                                       sqrt(15) * x * l * z,
                                       sqrt(3.0 / 8) * l * (5 * z * z - 1),
                                       z * (5 * z * z - 3) / 2,
                                       sqrt(3.0 / 8) * x * (5 * z * z - 1),
                                       sqrt(15) / 2 * z * (x * x - l * l),
                                       sqrt(5.0 / 8) * x * (x * x - 3 * l * l)};
    memcpy(y, all, sizeof all);
}

// Virtual loudspeakers on four rings at the nodes of Gauss and Legendre, whose weights sum products
// of two harmonics exactly. Loudspeaker v has weight (2 order + 1) y(v) of each channel, which is
// the projection on its direction.
static bool add_ambisonics(struct binaural *b)
{
    enum { RINGS = 4, ON_RING = 8, VIRTUAL = RINGS * ON_RING };
    static const double sines[] = {-0.86113631159405258, -0.33998104358485626, 0.33998104358485626,
                                   0.86113631159405258},
                        weights[] = {0.34785484513745386, 0.65214515486254614};
    const size_t channels = count_channels(b->layout), first = b->network->n_impulses;
    bool good = network_add_stage(b->network, VIRTUAL, channels, b->fault);
    for (size_t v = 0; good && v < VIRTUAL; v++) {
        const size_t ring = v / ON_RING;
        const struct sofa_direction d = {360.0 / ON_RING * (double)(v % ON_RING),
                                         asin(sines[ring]) * 180 / M_PI};
        const double weight = weights[ring % 3 != 0] / 2 / ON_RING;
        double y[MAX_HARMONICS];
        harmonics_of(&d, y);
        good = add_measured(b, &d);
        for (size_t k = 0; good && k < channels; k++) {
            const double gain = weight * (2 * floor(sqrt((double)k)) + 1) * y[k];
            const struct network_term term = {v, k, IMPULSE_UNIT, gain, 0, 0};
            good = network_add_term(b->network, &term, b->fault);
        }
    }
    good = good && network_add_stage(b->network, SOFA_EARS, VIRTUAL, b->fault);
    for (size_t v = 0; good && v < VIRTUAL; v++) good = connect(b, v, first + SOFA_EARS * v, 1, 0);
    return good;
}

// Opens a SOFA file, and gives the network the rate of the file.
static bool open_file(struct binaural *b, const struct settings *s, enum ir_layout prefix)
{
    const struct impulse file = {.path = b->path};
    struct audio_info info = {.channels = HESUVI_CHANNELS};
    if (!audio_check_regular(b->path, b->fault)) return false; // a pipe could wait for ever
    if (prefix != IR_HESUVI) info.rate = sofa_rate(b->path, b->fault);
    if (prefix == IR_HESUVI
            ? !impulse_file_info(&file, options_max_channels(s), &info, b->fault)
            : !(info.rate > 0) || !sofa_open(&b->sofa, b->path, info.rate, b->fault))
        return false;
    if (info.channels != HESUVI_CHANNELS)
        return fault_set(b->fault, "%s: %zu channels; a file of HeSuVi has %d", b->path,
                         info.channels, (int)HESUVI_CHANNELS);
    if (!b->sofa && b->layout >= FIRST_ORDER)
        return fault_set(b->fault, "%s: HeSuVi's channels are loudspeakers; use a SOFA file for %s",
                         b->path, layouts[b->layout].name);
    if (b->network->rate > 0 && !rates_agree(b->network->rate, info.rate))
        return fault_set(b->fault, "%s: sample rate %.12g Hz differs from the %.12g Hz before it",
                         b->path, info.rate, b->network->rate);
    b->network->rate = info.rate;
    return true;
}

bool layout_add_stages(struct network *network, const struct settings *settings, const char *part,
                       const struct audio_info *signal, struct fault *fault)
{
    enum ir_layout prefix;
    const char *path = ir_name_path(part, &prefix);
    const struct sofa_direction direction = options_direction(settings);
    struct binaural b = {network, layout_number(settings, prefix), path, NULL, fault};
    const size_t first = network->n_impulses;
    bool good = check_signal(&b, settings, signal) && open_file(&b, settings, prefix);
    if (good && b.layout >= FIRST_ORDER) good = add_ambisonics(&b);
    else if (good && b.layout) good = add_speakers(&b, settings);
    else if (good)
        good = network_add_stage(network, SOFA_EARS, 1, fault) && add_measured(&b, &direction) &&
               connect(&b, 0, first, 1, 0);
    network->out_channels = SOFA_EARS;
    sofa_close(b.sofa);
    return good;
}
