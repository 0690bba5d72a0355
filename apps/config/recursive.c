// SPDX-License-Identifier: MIT
// CamillaDSP's filters with feedback, as sections of equalizers. Filters that follow a volume are
// as they are at 0 dB, with which CamillaDSP starts.
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "camilladsp.h"

#define AT(field) offsetof(struct partita_section, field)
#define KIND(name) .kind = PARTITA_SECTION_##name
#define BUTTERWORTH .family = PARTITA_FAMILY_BUTTERWORTH
#define LINKWITZ_RILEY .family = PARTITA_FAMILY_LINKWITZ_RILEY
#define MIN_POSITIVE 1e-6

static const double SOUND_MM_PER_SECOND = 343000;
enum { MAX_ORDER = 16, MAX_GAINS = 4096 };

// Keys of numbers, and their places in a section.
static const struct number_keys {
    const char *keys;
    size_t offset;
    double low, high; // high 0: half of the sample rate
} numbers[] = {
    {"freq|freq_z|freq_act|fls|fp1|fp2|fp3|fhs", AT(frequency), 0, 0},
    {"freq_p|freq_target", AT(target_frequency), 0, 0},
    {"gain|gls|gp1|gp2|gp3|ghs", AT(gain), -150, 150},
    {"q|q_act|qls|qp1|qp2|qp3|qhs", AT(q), MIN_POSITIVE, 1e6},
    {"q_p|q_target", AT(target_q), MIN_POSITIVE, 1e6},
    {"bandwidth", AT(bandwidth), MIN_POSITIVE, 20},
    {"slope", AT(slope), MIN_POSITIVE, 12},
    {"b0", AT(biquad.b[0]), -MAX_COEFFICIENT, MAX_COEFFICIENT},
    {"b1", AT(biquad.b[1]), -MAX_COEFFICIENT, MAX_COEFFICIENT},
    {"b2", AT(biquad.b[2]), -MAX_COEFFICIENT, MAX_COEFFICIENT},
    {"a1", AT(biquad.a[0]), -MAX_COEFFICIENT, MAX_COEFFICIENT},
    {"a2", AT(biquad.a[1]), -MAX_COEFFICIENT, MAX_COEFFICIENT},
};

// Types of Biquad and BiquadCombo but for GraphicEqualizer; FivePointPeq has a row for each
// section. All keys are needed, but only one of q and a key after it.
static const struct section_type {
    const char *name, *keys;
    struct partita_section section;
} types[] = {
    {"Free", "a1|a2|b0|b1|b2", {KIND(BIQUAD)}},
    {"Highpass", "freq|q", {KIND(HIGH_PASS)}},
    {"Lowpass", "freq|q", {KIND(LOW_PASS)}},
    {"HighpassFO", "freq", {KIND(HIGH_PASS), .order = 1}},
    {"LowpassFO", "freq", {KIND(LOW_PASS), .order = 1}},
    {"Highshelf", "freq|gain|q|slope", {KIND(HIGH_SHELF)}},
    {"Lowshelf", "freq|gain|q|slope", {KIND(LOW_SHELF)}},
    {"HighshelfFO", "freq|gain", {KIND(HIGH_SHELF), .order = 1}},
    {"LowshelfFO", "freq|gain", {KIND(LOW_SHELF), .order = 1}},
    {"Peaking", "freq|gain|q|bandwidth", {KIND(PEAK)}},
    {"Notch", "freq|q|bandwidth", {KIND(NOTCH)}},
    {"Bandpass", "freq|q|bandwidth", {KIND(BAND_PASS)}},
    {"Allpass", "freq|q|bandwidth", {KIND(ALL_PASS)}},
    {"AllpassFO", "freq", {KIND(ALL_PASS), .order = 1}},
    {"GeneralNotch", "freq_z|freq_p|q_p|normalize_at_dc", {KIND(GENERAL_NOTCH)}},
    {"LinkwitzTransform", "freq_act|q_act|freq_target|q_target", {KIND(LINKWITZ_TRANSFORM)}},
    {"ButterworthHighpass", "freq|order", {KIND(HIGH_PASS), BUTTERWORTH}},
    {"ButterworthLowpass", "freq|order", {KIND(LOW_PASS), BUTTERWORTH}},
    {"LinkwitzRileyHighpass", "freq|order", {KIND(HIGH_PASS), LINKWITZ_RILEY}},
    {"LinkwitzRileyLowpass", "freq|order", {KIND(LOW_PASS), LINKWITZ_RILEY}},
    {"Tilt", "gain", {KIND(TILT)}},
    {"FivePointPeq", "fls|gls|qls", {KIND(LOW_SHELF)}},
    {"FivePointPeq", "fp1|gp1|qp1", {KIND(PEAK)}},
    {"FivePointPeq", "fp2|gp2|qp2", {KIND(PEAK)}},
    {"FivePointPeq", "fp3|gp3|qp3", {KIND(PEAK)}},
    {"FivePointPeq", "fhs|ghs|qhs", {KIND(HIGH_SHELF)}},
};

// Adds a filter of n sections, which are still zeros. NULL: not done, with a fault.
static struct partita_section *add_sections(struct camilladsp *c, const yaml_node_t *map, size_t n,
                                            const char *note, struct network_term *term)
{
    const struct impulse impulse = {.source = IMPULSE_SECTIONS,
                                    .sections = calloc(n, sizeof *impulse.sections),
                                    .n_sections = n,
                                    .note = note,
                                    .line = yaml_node_line(map)};
    if (!network_add_impulse(c->network, &impulse, &term->impulse, c->yaml.fault)) return NULL;
    return c->network->impulses[term->impulse].sections;
}

static bool read_key(struct camilladsp *c, const yaml_node_t *map, const char *key, bool needed,
                     struct partita_section *s)
{
    size_t order = 0;
    if (strcmp(key, "normalize_at_dc") == 0)
        return yaml_node_get_flag(&c->yaml, map, key, &s->unity_at_0);
    if (needed && !yaml_node_get(&c->yaml, map, key))
        return yaml_node_fault(&c->yaml, map, "needs a value of %s", key);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!yaml_node_is_word(numbers[i].keys, key)) continue;
        const double high = numbers[i].high > 0 ? numbers[i].high : c->network->rate / 2;
        double *field = (double *)((char *)s + numbers[i].offset);
        return yaml_node_get_real(&c->yaml, map, key, numbers[i].low, high, field);
    }
    if (!yaml_node_get_whole(&c->yaml, map, key, 1, MAX_ORDER, &order)) return false;
    s->order = (int)order;
    return true;
}

static bool read_section(struct camilladsp *c, const yaml_node_t *map,
                         const struct section_type *type, struct partita_section *s)
{
    const char *choice = strstr(type->keys, "|q|");
    char key[24];
    *s = type->section;
    for (const char *word = type->keys; *word;) {
        const size_t n = strcspn(word, "|");
        memcpy(key, word, n);
        key[n] = 0;
        if (!read_key(c, map, key, !choice || word <= choice, s)) return false;
        word += n + (word[n] == '|');
    }
    return !choice || s->q > 0 || s->bandwidth > 0 || s->slope > 0 ||
           yaml_node_fault(&c->yaml, map, "needs a value of %s", choice + 1);
}

// Bands of the same number of octaves, which lie side by side.
static bool read_graphic(struct camilladsp *c, const yaml_node_t *map, struct network_term *term)
{
    const double half = c->network->rate / 2;
    const struct network_number gain = {"gains", 0, -40, 40};
    double low = 20, high = 20000;
    const yaml_node_t *gains;
    if (!yaml_node_check_keys(&c->yaml, map, "type|freq_min|freq_max|gains") ||
        !yaml_node_get_real(&c->yaml, map, "freq_min", MIN_POSITIVE, half, &low) ||
        !yaml_node_get_real(&c->yaml, map, "freq_max", MIN_POSITIVE, half, &high) ||
        !yaml_node_get_list(&c->yaml, map, "gains", &gains))
        return false;
    const size_t n = yaml_node_count(gains);
    if (!n || n > MAX_GAINS)
        return yaml_node_fault(&c->yaml, map, "gains: needs a list of 1 to %d numbers", MAX_GAINS);
    if (high <= low)
        return yaml_node_fault(&c->yaml, map, "freq_max: must be above freq_min, %g", low);
    struct partita_section *s = add_sections(c, map, n, NULL, term);
    const double octaves = log2(high / low) / (double)n;
    for (size_t i = 0; s && i < n; i++) {
        s[i].frequency = low * exp2(((double)i + 0.5) * octaves);
        s[i].bandwidth = octaves;
        if (!yaml_node_number(&c->yaml, yaml_node_element(&c->yaml, gains, i), &gain, &s[i].gain,
                              NULL))
            return false;
    }
    return s;
}

bool camilladsp_biquad(struct camilladsp *c, const yaml_node_t *map, struct network_term *term)
{
    char keys[128] = "type";
    size_t n = 0, end = 0;
    const char *type = yaml_node_get_text(&c->yaml, map, "type");
    if (!type) return false;
    if (strcmp(type, "GraphicEqualizer") == 0) return read_graphic(c, map, term);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(type, types[i].name) != 0) continue;
        const size_t used = strlen(keys);
        snprintf(keys + used, sizeof keys - used, "|%s", types[i].keys);
        n++;
        end = i + 1;
    }
    if (!n)
        return yaml_node_fault(&c->yaml, yaml_node_get(&c->yaml, map, "type"),
                               "type: '%.40s' is no type of Biquad and BiquadCombo", type);
    if (!yaml_node_check_keys(&c->yaml, map, keys)) return false;
    struct partita_section *s = add_sections(c, map, n, NULL, term);
    for (size_t i = 0; s && i < n; i++)
        if (!read_section(c, map, &types[end - n + i], &s[i])) return false;
    return s;
}

// Shelves with a share of their boost: none where the volume is at the reference level or above,
// all 20 dB below it.
bool camilladsp_loudness(struct camilladsp *c, const yaml_node_t *map, struct network_term *term)
{
    static const char note[] = "Loudness follows a volume, and is computed for one of 0 dB";
    double reference = NEEDED_REAL, high = 10, low = 10;
    bool attenuate = false;
    if (!yaml_node_get_real(&c->yaml, map, "reference_level", -100, 20, &reference) ||
        !yaml_node_get_real(&c->yaml, map, "high_boost", 0, 20, &high) ||
        !yaml_node_get_real(&c->yaml, map, "low_boost", 0, 20, &low) ||
        !yaml_node_get_flag(&c->yaml, map, "attenuate_mid", &attenuate))
        return false;
    struct partita_section *s = add_sections(c, map, 3, note, term);
    if (!s) return false;
    const double share = fmax(reference / 20, 0);
    s[0] = (struct partita_section){KIND(HIGH_SHELF), .frequency = 3500, .gain = share * high,
                                    .slope = 12};
    s[1] = (struct partita_section){KIND(LOW_SHELF), .frequency = 70, .gain = share * low,
                                    .slope = 12};
    s[2] = (struct partita_section){KIND(GAIN)};
    if (attenuate) s[2].gain = -fmax(s[0].gain, s[1].gain);
    return true;
}

bool camilladsp_volume(struct camilladsp *c, const yaml_node_t *map, struct network_term *term)
{
    double limit = 0;
    if (!yaml_node_get_real(&c->yaml, map, "limit", -150, 50, &limit)) return false;
    struct partita_section *s = add_sections(c, map, 1, "Volume is 0 dB", term);
    if (s) *s = (struct partita_section){KIND(GAIN), .gain = fmin(limit, 0)};
    return s;
}

// A delay of a part of a frame: Thiran's all pass of order 1 up to 1.1 frames, else of order 2 with
// a delay of 1.1 to 2.1 frames. Delays below a tenth of a frame are none.
static bool delay_by_all_pass(struct camilladsp *c, const yaml_node_t *map,
                              struct network_term *term)
{
    const double delay = term->delay, whole = fmax(floor(delay - 1.1), 0), d = delay - whole;
    term->delay = whole;
    if (delay < 0.1) return true;
    struct partita_section *s = add_sections(c, map, 1, NULL, term);
    if (!s) return false;
    const double first = (1 - d) / (1 + d), a1 = 2 * (2 - d) / (1 + d),
                 a2 = first * (2 - d) / (2 + d);
    *s = (struct partita_section){KIND(BIQUAD), .biquad = {{a2, a1, 1}, {a1, a2}}};
    if (d < 1.1) s->biquad = (struct partita_biquad){{first, 1, 0}, {first, 0}};
    return true;
}

bool camilladsp_delay(struct camilladsp *c, const yaml_node_t *map, struct network_term *term)
{
    const double rate = c->network->rate;
    const struct {
        const char *name;
        double frames;
    } units[] = {{"ms", rate / 1000},
                 {"us", rate / 1e6},
                 {"s", rate},
                 {"mm", rate / SOUND_MM_PER_SECOND},
                 {"samples", 1}};
    bool subsample = false;
    if (!yaml_node_get_real(&c->yaml, map, "delay", 0, NETWORK_MAX_DELAY, &term->delay) ||
        !yaml_node_get_flag(&c->yaml, map, "subsample", &subsample))
        return false;
    const yaml_node_t *node = yaml_node_get(&c->yaml, map, "delay_unit");
    if (!node) node = yaml_node_get(&c->yaml, map, "unit");
    const char *name = node ? yaml_node_text(node) : "ms";
    for (size_t i = 0; name && i < sizeof units / sizeof *units; i++) {
        if (strcmp(name, units[i].name) != 0) continue;
        term->delay *= units[i].frames;
        if (subsample) return delay_by_all_pass(c, map, term);
        term->delay = rint(term->delay);
        return true;
    }
    return yaml_node_fault(&c->yaml, node, "unit: '%.40s' is none of ms, us, s, mm and samples",
                           name ? name : "");
}
