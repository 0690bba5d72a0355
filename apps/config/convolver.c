// SPDX-License-Identifier: MIT
// Configurations of Convolver, the plug-in for Windows players. Lines: rate, numbers of inputs and
// outputs, mask of loudspeakers; delays of the inputs; delays of the outputs, in milliseconds; then
// for each path a file, its channel, inputs and outputs. These are numbers CHANNEL.WEIGHT, such as
// 1.5 for half of channel 1; 1.0 stands for all of it, and -1.5 also inverts it.
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "words.h"

static const double MAX_DELAY_MS = 60000, MAX_RATE = 1 << 24;

// Channels and what is written after each of them.
struct weights {
    size_t n;
    size_t channels[NETWORK_MAX_CHANNELS];
    double values[NETWORK_MAX_CHANNELS];
};

struct convolver {
    struct network *network;
    struct lines lines;
    double delays[2][NETWORK_MAX_CHANNELS]; // ms, by direction
    struct weights in, out;
    struct fault *fault;
};

#define line_fault(c, ...) network_fault((c)->network, (c)->lines.number, (c)->fault, __VA_ARGS__)

// The next line that is not empty; NULL at the end.
static char *next_line(struct convolver *c)
{
    for (char *line; (line = lines_next(&c->lines));) {
        line = words_trim(line);
        if (*line) return line;
    }
    return NULL;
}

// NULL, with a fault: there is none.
static char *required_line(struct convolver *c, const char *what)
{
    char *line = next_line(c);
    if (!line)
        network_fault(c->network, c->lines.number ? c->lines.number : 1, c->fault,
                      "the file ends where it should have %s", what);
    return line;
}

// RATE INPUTS OUTPUTS [MASK]; the mask is hexadecimal and not used.
static bool parse_header(struct convolver *c)
{
    static const char *const what[] = {"sample rate", "number of inputs", "number of outputs"};
    struct network *n = c->network;
    size_t values[3];
    char *line = required_line(c, "sample rate, inputs, outputs and mask");
    if (!line) return false;
    for (int i = 0; i < 3; i++) {
        const struct network_number number = {what[i], c->lines.number, 1,
                                              i ? NETWORK_MAX_CHANNELS : MAX_RATE};
        const char *word = words_next(&line, NULL);
        if (!word) return line_fault(c, "needs sample rate, inputs, outputs and mask");
        if (!network_parse_number(n, &number, word, NULL, &values[i], c->fault)) return false;
    }
    const char *mask = words_next(&line, NULL);
    if (mask && strspn(mask, "0123456789abcdefABCDEFxX") != strlen(mask))
        return line_fault(c, "'%.40s' is not a mask in hexadecimal digits", mask);
    n->rate = (double)values[0];
    n->in_channels = values[1];
    n->out_channels = values[2];
    return network_add_stage(n, n->out_channels, n->in_channels, c->fault);
}

static bool parse_delays(struct convolver *c, enum network_direction direction)
{
    const bool is_input = direction == NETWORK_INPUTS;
    const size_t n = is_input ? c->network->in_channels : c->network->out_channels;
    char *line =
        required_line(c, is_input ? "the delays of the inputs" : "the delays of the outputs");
    if (!line) return false;
    const struct network_number number = {"delay in ms", c->lines.number, 0, MAX_DELAY_MS};
    for (size_t i = 0; i < n; i++) {
        const char *word = words_next(&line, NULL);
        if (!word)
            return line_fault(c, "has %zu delays; %s need %zu", i, is_input ? "inputs" : "outputs",
                              n);
        if (!network_parse_number(c->network, &number, word, &c->delays[direction][i], NULL,
                                  c->fault))
            return false;
    }
    return !words_next(&line, NULL) || line_fault(c, "has more than %zu delays", n);
}

// CHANNEL.WEIGHT is split as text, since no floating point number has the digits of both parts.
static bool parse_weight(struct convolver *c, const char *word, size_t n_channels, size_t *ret,
                         double *ret_weight)
{
    static const char digits[] = "0123456789";
    const bool negative = *word == '-';
    const char *whole = word + (*word == '-' || *word == '+');
    const size_t n = strspn(whole, digits);
    const char *fraction = whole + n;
    const bool has_fraction = *fraction == '.';
    if (n == 0 || n > 6 || fraction[has_fraction + strspn(fraction + has_fraction, digits)])
        return line_fault(c, "'%.40s' is not a channel and its weight, such as 1.5 or -0.25", word);
    *ret = (size_t)strtoul(whole, NULL, 10);
    if (*ret >= n_channels)
        return line_fault(c, "'%.40s': there is no channel %zu; they are counted from 0 to %zu",
                          word, *ret, n_channels - 1);
    const double weight = has_fraction ? strtod(fraction, NULL) : 0;
    *ret_weight = (weight == 0 ? 1 : weight) * (negative ? -1 : 1);
    return true;
}

static bool parse_weights(struct convolver *c, struct weights *ret, size_t n_channels,
                          const char *what)
{
    char *line = required_line(c, what);
    ret->n = 0;
    for (const char *word; line && (word = words_next(&line, NULL));) {
        if (ret->n == NETWORK_MAX_CHANNELS) return line_fault(c, "has too many channels");
        if (!parse_weight(c, word, n_channels, &ret->channels[ret->n], &ret->values[ret->n]))
            return false;
        ret->n++;
    }
    return line;
}

static bool add_terms(struct convolver *c, size_t impulse, int line)
{
    for (size_t o = 0; o < c->out.n; o++) {
        for (size_t i = 0; i < c->in.n; i++) {
            const double ms = c->delays[NETWORK_INPUTS][c->in.channels[i]] +
                              c->delays[NETWORK_OUTPUTS][c->out.channels[o]];
            const struct network_term term = {.out = c->out.channels[o],
                                              .in = c->in.channels[i],
                                              .impulse = impulse,
                                              .gain = c->in.values[i] * c->out.values[o],
                                              .delay = ms * c->network->rate / 1000,
                                              .line = line};
            if (!network_add_term(c->network, &term, c->fault)) return false;
        }
    }
    return true;
}

static bool parse_path(struct convolver *c, char *name)
{
    struct network *n = c->network;
    struct impulse impulse = {.source = IMPULSE_FILE, .line = c->lines.number};
    size_t index = 0;
    const char *line = required_line(c, "the channel of the file");
    const struct network_number number = {"channel of the file", c->lines.number, 0,
                                          NETWORK_MAX_TERMS};
    if (!line || !network_parse_number(n, &number, line, NULL, &impulse.channel, c->fault) ||
        !parse_weights(c, &c->in, n->in_channels, "the inputs of a path") ||
        !parse_weights(c, &c->out, n->out_channels, "the outputs of a path"))
        return false;
    impulse.path = network_file_of_windows(n, name);
    return network_add_impulse(n, &impulse, &index, c->fault) && add_terms(c, index, impulse.line);
}

bool convolver_parse(struct network *network, char *text, struct fault *fault)
{
    struct convolver c = {.network = network, .lines = {.rest = text}, .fault = fault};
    bool good =
        parse_header(&c) && parse_delays(&c, NETWORK_INPUTS) && parse_delays(&c, NETWORK_OUTPUTS);
    for (char *name; good && (name = next_line(&c));) good = parse_path(&c, name);
    return good && (network->n_terms ||
                    fault_set(fault, "%s: has no path; add a file, its channel, inputs and outputs",
                              network->path));
}
