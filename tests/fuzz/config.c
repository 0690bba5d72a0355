// SPDX-License-Identifier: MIT
// Fuzz target: the parsers of other convolvers' configurations, and that of scenes. The first byte
// chooses one of them, and whether the others are the text itself or choose words of its grammar,
// after a beginning that is right. What is accepted must be consistent.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/network.h"
#include "config/scenes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_WORDS_OF_GRAMMAR = 64 };

static const struct grammar {
    const char *path, *beginning, *words[MAX_WORDS_OF_GRAMMAR];
} grammars[] = {
    {"folder/fuzz.conf",
     "/convolver/new 2 3 64 1000\n",
     {"/convolver/new",
      "/impulse/read ",
      "/impulse/dirac ",
      "/impulse/hilbert ",
      "/impulse/copy ",
      "/input/name ",
      "/output/name ",
      "/cd ",
      "\n",
      "\n",
      "1 1 ",
      "1 2 ",
      "2 3 ",
      "1 ",
      "2 ",
      "0 ",
      "-1 ",
      "0.5 ",
      "64 ",
      "1000 ",
      "9e99 ",
      "x.wav ",
      "/a ",
      "\"a b\" ",
      "\"",
      "\\",
      "#",
      "nan "}},
    {"fuzz.cfg",
     "48000 2 2 0\n0 0\n0 1.5\n",
     {"x.wav\n", "0\n", "1\n", "0.0\n", "1.5\n", "-0.25 1.0\n", "2.0\n", "44100 1 1 3f\n", "\n",
      " ", "\\", "-", ".", "5", "\"", "#", "1e9 "}},
    {"fuzz.yml",
     "devices: {samplerate: 48000, capture: {channels: 2}, playback: {channels: 2}}\n"
     "filters: {a: {type: Conv, parameters: {type: Wav, filename: a$samplerate$}}, b: {type: "
     "Delay, "
     "parameters: {delay: 2, subsample: true}}, c: {type: DiffEq, parameters: {b: [1, 2]}}, d: "
     "{type: Biquad, parameters: {type: Peaking, freq: 9, gain: 1, q: 1}}}\n"
     "mixers: {m: {channels: {in: 2, out: 2}, mapping: [{dest: 1, sources: [{channel: 0}]}]}}\n",
     {"pipeline: [",
      "]\n",
      "{type: Filter, names: [a]}, ",
      "{type: Mixer, name: m}, ",
      "{type: Filter, channels: [1], names: [b, c, d]}, ",
      "filters: {",
      "mixers: {",
      "} ",
      "{",
      "[",
      "]",
      ", ",
      ": ",
      "type: ",
      "name: ",
      "names: ",
      "channels: ",
      "gain: ",
      "Gain",
      "Conv",
      "Values",
      "parameters: {",
      "BiquadCombo",
      "FivePointPeq",
      "GraphicEqualizer, gains: [1, 2]",
      "LinkwitzRileyLowpass, order: 4",
      "GeneralNotch",
      "Loudness",
      "Volume",
      "freq: ",
      "q: ",
      "null",
      "~",
      "1",
      "-1",
      "0.5",
      "true",
      "\n",
      "  ",
      "- ",
      "&x ",
      "*x ",
      "!t ",
      "a",
      "b"}},
    {"folder/scenes",
     "scenes: {a: {filter: matrix:a.wav, gain: -3}, b: {filter: b, dry: off}}\n",
     {"start: ",
      "a",
      "b",
      "\n",
      "scenes: {",
      "c: {",
      "filter: ",
      "}, ",
      "}}\n",
      ", ",
      "[",
      "]",
      "gain: ",
      "wet: ",
      "dry: ",
      "input-gain: ",
      "fade: ",
      "off",
      "up 3",
      "-6",
      "1e9",
      "nan",
      "azimuth: ",
      "elevation: ",
      "x: {filter: true-stereo:/x",
      "&x ",
      "*x ",
      "? "}},
};

// Appends words to the beginning; at most `capacity` characters. Returns the number of characters.
static size_t compose(const struct grammar *g, const uint8_t *data, size_t size, char *text,
                      size_t capacity)
{
    size_t n = strlen(g->beginning), n_words = 0;
    memcpy(text, g->beginning, n);
    while (n_words < MAX_WORDS_OF_GRAMMAR && g->words[n_words]) n_words++;
    for (size_t i = 0; i < size; i++) {
        const char *word = g->words[data[i] % n_words];
        if (n + strlen(word) > capacity) break;
        memcpy(text + n, word, strlen(word));
        n += strlen(word);
    }
    return n;
}

static void check_stage(const struct network *n, const struct network_stage *stage, size_t channels)
{
    if (stage->in_channels != channels || stage->out_channels == 0) abort();
    for (size_t t = 0; t < stage->n_terms; t++) {
        const struct network_term *term = &stage->terms[t];
        if (term->in >= stage->in_channels || term->out >= stage->out_channels) abort();
        if (term->impulse != IMPULSE_UNIT && term->impulse >= n->n_impulses) abort();
        if (!isfinite(term->gain) || !(term->delay >= 0 && term->delay <= NETWORK_MAX_DELAY))
            abort();
    }
}

static void check_network(const struct network *n)
{
    size_t channels = n->in_channels;
    if (channels == 0 || channels > NETWORK_MAX_CHANNELS) abort();
    if (n->n_stages > NETWORK_MAX_TERMS || n->n_values > NETWORK_MAX_VALUES) abort();
    if (n->n_terms > NETWORK_MAX_TERMS || n->n_impulses > NETWORK_MAX_TERMS) abort();
    for (size_t i = 0; i < n->n_impulses; i++) {
        const struct impulse *impulse = &n->impulses[i];
        if ((impulse->source == IMPULSE_SECTIONS) != (impulse->n_sections > 0)) abort();
        for (size_t k = 0; k < impulse->n_sections; k++)
            if (!isfinite(impulse->sections[k].frequency + impulse->sections[k].gain)) abort();
    }
    for (size_t s = 0; s < n->n_stages; s++) {
        check_stage(n, &n->stages[s], channels);
        channels = n->stages[s].out_channels;
    }
    if (channels != n->out_channels) abort();
}

static void check_scenes(const char *path, const char *text)
{
    static struct scenes scenes;
    struct fault fault;
    if (!scenes_parse(&scenes, path, text, &fault)) return;
    if (scenes.n < 1 || scenes.n > MAX_WORDS || scenes.start < 0 || scenes.start >= scenes.n)
        abort();
    for (int i = 0; i < scenes.n; i++) {
        const struct scene *s = &scenes.list[i];
        if (!*s->name || !*s->ir || s->line < 1 || s->n_values < 0 || s->n_values > SCENE_VALUES)
            abort();
        if (scenes_find(&scenes, s->name, &fault) != i) abort();
        for (int k = 0; k < s->n_values; k++)
            if (s->values[k].verb != CONTROL_SET && s->values[k].verb != CONTROL_OFF) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { N_GRAMMARS = sizeof grammars / sizeof *grammars, CAPACITY = 16384 };
    struct network network;
    struct fault fault;
    if (size == 0 || size > CAPACITY) return 0;
    const struct grammar *g = &grammars[data[0] % N_GRAMMARS];
    char *text = malloc(CAPACITY + 1);
    if (!text) return 0;
    size_t n = size - 1;
    if (data[0] & 0x40) n = compose(g, data + 1, size - 1, text, CAPACITY);
    else memcpy(text, data + 1, n);
    // Exactly as long, so that a sanitizer sees reads beyond.
    char *exact = malloc(n + 1);
    if (exact) {
        memcpy(exact, text, n);
        exact[n] = 0;
        if (g == &grammars[N_GRAMMARS - 1]) check_scenes(g->path, exact);
        else if (network_parse(&network, g->path, exact, &fault)) {
            check_network(&network);
            network_release(&network);
        }
    }
    free(exact);
    free(text);
    return 0;
}
