// SPDX-License-Identifier: MIT
// Fuzz target: sections of equalizers. The first byte chooses between a list and the words of
// --section, and whether the others are the text itself or choose words of its grammar. What is
// accepted must be sections that the library takes.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "design/sections.h"
#include "fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIST = 1, GRAMMAR = 2, MAX_TEXT = 4096 };

static const char *const words[] = {
    "Filter",       ":",      "ON ",       "OFF ",       "PK ",      "LSC ",   "HS ",   "NO ",
    "None ",        "Fc ",    "Gain ",     "Q ",         "BW Oct ",  " Hz ",   " kHz ", " dB ",
    "Preamp:",      "\n",     "\n",        "GraphicEQ:", "; ",       "100",    "1",     "-3.5",
    "0,5",          "1,200",  "1.200,5",   "0",          "1e9",      "-",      ".",     ",",
    "\xC2\xA0",     " ",      "Channel: ", "peak ",      "lowpass ", "tilt ",  "lr",    "bw3 ",
    "lowshelf ",    "slope ", "q ",        "oct ",       "hz",       "fp 30 ", "qp 1 ", "gain ",
    "\xE2\x88\x92", "\r"};

// Writes the text; returns its length.
static size_t compose(struct input *input, bool grammar, char text[MAX_TEXT])
{
    size_t n = 0;
    while (input->left && n + 16 < MAX_TEXT) {
        const uint8_t byte = (uint8_t)input_take(input, 1);
        const char *word = words[byte % (sizeof words / sizeof *words)];
        if (!grammar) text[n++] = (char)(byte ? byte : ' ');
        for (; grammar && *word; word++) text[n++] = *word;
    }
    return n;
}

static void check(const struct sections *s)
{
    struct partita_biquad *biquads = malloc((8 * s->n + 1) * sizeof *biquads);
    size_t n = 0;
    const struct partita_equalizer all = {.rate = s->rate, .sections = s->list, .n_sections = s->n};
    if (s->n && biquads && partita_equalizer_biquads(&all, biquads, &n)) abort();
    for (size_t i = 0; biquads && i < n; i++)
        for (int k = 0; k < 3; k++)
            if (!isfinite(biquads[i].b[k]) || !isfinite(biquads[i].a[k / 2])) abort();
    for (size_t i = 0; i < s->n_points; i++)
        if (isnan(s->points[i].frequency) || isnan(s->points[i].decibels)) abort();
    free(biquads);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct sections sections = {.rate = 48000};
    struct fault fault;
    char text[MAX_TEXT];
    const unsigned how = (unsigned)input_take(&input, 1);
    const size_t n = compose(&input, how & GRAMMAR, text);
    char *exact = malloc(n + 1); // so that a sanitizer sees reads beyond
    if (!exact) return 0;
    memcpy(exact, text, n);
    exact[n] = 0;
    if (how & LIST ? sections_add_list(&sections, "list.txt", exact, &fault)
                   : sections_add_words(&sections, exact, &fault))
        check(&sections);
    free(exact);
    sections_release(&sections);
    return 0;
}
