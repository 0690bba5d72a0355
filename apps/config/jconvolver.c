// SPDX-License-Identifier: MIT
// Configurations of jconvolver and fconvolver: a command on each line. Partition size and density
// are left to the planner.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "words.h"

enum {
    MAX_ARGUMENTS = 8,
    MIN_HILBERT = 64,
    MAX_HILBERT = 65536,
    MAX_PORT_NAME = 63,
};

static const double MAX_GAIN = 1e6;

// What is known of a path from an input to an output.
struct path_state {
    int line;       // of the last response or of the copy; 0: there is none
    bool is_copy;   // of the following path
    size_t out, in; // counted from 0
};

struct jconvolver {
    struct network *network;
    char *folder;             // of the files, from /cd; NULL: that of the configuration
    struct path_state *paths; // [out][in]; NULL before /convolver/new
    int line;
    const char *command;
    char *words[MAX_ARGUMENTS]; // the arguments of the command
    size_t n_words;
    struct fault *fault;
};

#define line_fault(j, ...) network_fault((j)->network, (j)->line, (j)->fault, __VA_ARGS__)

static struct path_state *path_at(const struct jconvolver *j, size_t out, size_t in)
{
    return &j->paths[out * j->network->in_channels + in];
}

static bool parse_whole(const struct jconvolver *j, size_t word, const char *what, double low,
                        double high, size_t *ret)
{
    const struct network_number number = {what, j->line, low, high};
    return network_parse_number(j->network, &number, j->words[word], NULL, ret, j->fault);
}

// Input and output, counted from 1, as words `word` and `word` + 1.
static bool parse_path(const struct jconvolver *j, size_t word, size_t *ret_in, size_t *ret_out)
{
    const struct network *n = j->network;
    const bool good = parse_whole(j, word, "input", 1, (double)n->in_channels, ret_in) &&
                      parse_whole(j, word + 1, "output", 1, (double)n->out_channels, ret_out);
    *ret_in -= 1;
    *ret_out -= 1;
    return good;
}

// The words that all responses begin with: input, output, gain and delay.
static bool parse_term(const struct jconvolver *j, struct network_term *ret)
{
    const struct network_number gain = {"gain", j->line, -MAX_GAIN, MAX_GAIN};
    size_t delay = 0;
    const bool good =
        parse_path(j, 0, &ret->in, &ret->out) &&
        network_parse_number(j->network, &gain, j->words[2], &ret->gain, NULL, j->fault) &&
        parse_whole(j, 3, "delay", 0, NETWORK_MAX_DELAY, &delay);
    ret->delay = (double)delay;
    return good;
}

// Relative to the working directory, as in jconvolver; without /cd files are beside the
// configuration.
static bool command_cd(struct jconvolver *j)
{
    char *folder = strdup(j->words[0]);
    if (!folder) return line_fault(j, "out of memory");
    free(j->folder);
    j->folder = folder;
    return true;
}

static bool command_new(struct jconvolver *j)
{
    struct network *n = j->network;
    size_t partition;
    double density;
    const struct network_number fraction = {"density", j->line, 0, 1};
    if (j->paths) return line_fault(j, "/convolver/new is given twice; keep one");
    if (!parse_whole(j, 0, "number of inputs", 1, NETWORK_MAX_CHANNELS, &n->in_channels) ||
        !parse_whole(j, 1, "number of outputs", 1, NETWORK_MAX_CHANNELS, &n->out_channels) ||
        !parse_whole(j, 2, "partition size", 1, NETWORK_MAX_DELAY, &partition) ||
        !parse_whole(j, 3, "maximum length", 1, NETWORK_MAX_DELAY, &n->max_length) ||
        (j->n_words > 4 &&
         !network_parse_number(n, &fraction, j->words[4], &density, NULL, j->fault)))
        return false;
    j->paths = calloc(n->in_channels * n->out_channels, sizeof *j->paths);
    n->ports[NETWORK_INPUTS] = calloc(n->in_channels, sizeof **n->ports);
    n->ports[NETWORK_OUTPUTS] = calloc(n->out_channels, sizeof **n->ports);
    if (!j->paths || !n->ports[NETWORK_INPUTS] || !n->ports[NETWORK_OUTPUTS])
        return line_fault(j, "out of memory");
    return network_add_stage(n, n->out_channels, n->in_channels, j->fault);
}

static bool add_response(struct jconvolver *j, struct network_term term)
{
    struct path_state *path = path_at(j, term.out, term.in);
    if (path->is_copy)
        return line_fault(j,
                          "input %zu, output %zu is a copy since line %d; add this response to "
                          "its original",
                          term.in + 1, term.out + 1, path->line);
    path->line = term.line = j->line;
    return network_add_term(j->network, &term, j->fault);
}

static bool command_read(struct jconvolver *j)
{
    struct network_term term = {0};
    struct impulse impulse = {.source = IMPULSE_FILE, .line = j->line};
    if (!parse_term(j, &term) ||
        !parse_whole(j, 4, "offset", 0, NETWORK_MAX_DELAY, &impulse.offset) ||
        !parse_whole(j, 5, "length", 0, NETWORK_MAX_DELAY, &impulse.length) ||
        !parse_whole(j, 6, "channel", 1, NETWORK_MAX_TERMS, &impulse.channel))
        return false;
    impulse.channel--;
    impulse.path = network_file(j->network, j->folder, j->words[7]);
    return network_add_impulse(j->network, &impulse, &term.impulse, j->fault) &&
           add_response(j, term);
}

static bool command_dirac(struct jconvolver *j)
{
    struct network_term term = {.impulse = IMPULSE_UNIT};
    return parse_term(j, &term) && add_response(j, term);
}

// A Hilbert transformer of `length` taps with a raised cosine as window: 0.43 + 0.57 cos. Every
// second tap is zero, as it is already.
static void fill_hilbert(double *values, size_t length)
{
    const size_t half = length / 2;
    for (size_t i = 1; i < half; i += 2) {
        const double window = 0.43 + 0.57 * cos(M_PI * (double)i / (double)half);
        values[half - i] = 2 / (M_PI * (double)i) * window;
        values[half + i] = -values[half - i];
    }
}

static bool command_hilbert(struct jconvolver *j)
{
    struct network_term term = {0};
    struct impulse impulse = {.line = j->line};
    size_t length;
    if (!parse_term(j, &term) || !parse_whole(j, 4, "length", MIN_HILBERT, MAX_HILBERT, &length))
        return false;
    const double half = (double)(length / 2);
    if (term.delay < half)
        return line_fault(j, "delay: %.0f is less than half of the length, %.0f", term.delay, half);
    term.delay -= half;
    if (!network_allocate_values(j->network, &impulse, length, j->fault)) return false;
    fill_hilbert(impulse.values, length);
    return network_add_impulse(j->network, &impulse, &term.impulse, j->fault) &&
           add_response(j, term);
}

// The terms of the original are copied at the end: those that follow belong to the copy too.
static bool command_copy(struct jconvolver *j)
{
    size_t in = 0, out = 0;
    struct path_state copy = {.line = j->line, .is_copy = true};
    if (!parse_path(j, 0, &in, &out) || !parse_path(j, 2, &copy.in, &copy.out)) return false;
    struct path_state *path = path_at(j, out, in);
    const struct path_state *original = path_at(j, copy.out, copy.in);
    if (path == original)
        return line_fault(j, "input %zu, output %zu is copied to itself", in + 1, out + 1);
    if (path->line)
        return line_fault(j, "input %zu, output %zu has a response since line %d", in + 1, out + 1,
                          path->line);
    if (!original->line || original->is_copy)
        return line_fault(j,
                          original->is_copy
                              ? "input %zu, output %zu is a copy itself; name its original"
                              : "input %zu, output %zu has no response yet; copy it later",
                          copy.in + 1, copy.out + 1);
    *path = copy;
    return true;
}

static bool command_name(struct jconvolver *j)
{
    struct network *n = j->network;
    const bool is_input = strncmp(j->command, "/input", 6) == 0;
    const enum network_direction direction = is_input ? NETWORK_INPUTS : NETWORK_OUTPUTS;
    const size_t channels = is_input ? n->in_channels : n->out_channels;
    const char *name = j->words[1];
    size_t channel;
    if (!parse_whole(j, 0, is_input ? "input" : "output", 1, (double)channels, &channel))
        return false;
    if (!*name || strlen(name) > MAX_PORT_NAME || strchr(name, ':'))
        return line_fault(j, "'%.80s' is not the name of a port: 1 to %d characters, no colon",
                          name, (int)MAX_PORT_NAME);
    struct network_port *ports = n->ports[direction], *port = &ports[channel - 1];
    for (size_t i = 0; i < channels; i++)
        if (ports[i].name && strcmp(ports[i].name, name) == 0)
            return line_fault(j, "%s: another port has this name", name);
    free(port->name);
    free(port->connect_to);
    *port = (struct network_port){.name = strdup(name)};
    if (j->n_words > 2) port->connect_to = strdup(j->words[2]);
    if (port->name && (j->n_words <= 2 || port->connect_to)) return true;
    return line_fault(j, "out of memory");
}

static const struct jconvolver_command {
    const char *name, *arguments;
    size_t min, max; // arguments
    bool (*run)(struct jconvolver *);
} commands[] = {
    {"/cd", "FOLDER", 1, 1, command_cd},
    {"/convolver/new", "INPUTS OUTPUTS PARTITION LENGTH [DENSITY]", 4, 5, command_new},
    {"/impulse/read", "INPUT OUTPUT GAIN DELAY OFFSET LENGTH CHANNEL FILE", 8, 8, command_read},
    {"/impulse/dirac", "INPUT OUTPUT GAIN DELAY", 4, 4, command_dirac},
    {"/impulse/hilbert", "INPUT OUTPUT GAIN DELAY LENGTH", 5, 5, command_hilbert},
    {"/impulse/copy", "INPUT OUTPUT FROM-INPUT FROM-OUTPUT", 4, 4, command_copy},
    {"/input/name", "INPUT NAME [PORT]", 2, 3, command_name},
    {"/output/name", "OUTPUT NAME [PORT]", 2, 3, command_name},
};

// /cd is the only command that may come before /convolver/new.
static bool run_command(struct jconvolver *j, const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const struct jconvolver_command *c = &commands[i];
        if (strcmp(name, c->name) != 0) continue;
        if (j->n_words < c->min || j->n_words > c->max)
            return line_fault(j, "%s needs %s", name, c->arguments);
        if (!j->paths && c->run != command_cd && c->run != command_new)
            return line_fault(j, "%s comes before /convolver/new", name);
        j->command = name;
        return c->run(j);
    }
    return line_fault(j,
                      "'%.40s' is no command of jconvolver; commands begin with /, comments "
                      "with #",
                      name);
}

static bool run_line(struct jconvolver *j, char *line)
{
    bool good;
    const char *name = words_next(&line, &good);
    j->n_words = 0;
    if (!name) return true;
    char *word = good ? words_next(&line, &good) : NULL;
    for (; word && good; word = words_next(&line, &good)) {
        if (j->n_words == MAX_ARGUMENTS)
            return line_fault(j, "more than %d arguments", (int)MAX_ARGUMENTS);
        j->words[j->n_words++] = word;
    }
    if (!good) return line_fault(j, "the closing quotation mark is missing");
    return run_command(j, name);
}

// The terms of each copy are those of its original.
static bool add_copies(struct jconvolver *j)
{
    struct network *n = j->network;
    struct network_stage *stage = &n->stages[0];
    const size_t n_own = stage->n_terms;
    for (size_t p = 0; p < n->out_channels * n->in_channels; p++) {
        const struct path_state *copy = &j->paths[p];
        if (!copy->is_copy) continue;
        for (size_t t = 0; t < n_own; t++) {
            struct network_term term = stage->terms[t];
            if (term.out != copy->out || term.in != copy->in) continue;
            term.out = p / n->in_channels;
            term.in = p % n->in_channels;
            term.line = copy->line;
            if (!network_add_term(n, &term, j->fault)) return false;
        }
    }
    return true;
}

bool jconvolver_parse(struct network *network, char *text, struct fault *fault)
{
    struct jconvolver j = {.network = network, .fault = fault};
    struct lines lines = {.rest = text};
    bool good = true;
    char *line;
    network->first_channel = 1;
    while (good && (line = lines_next(&lines))) {
        j.line = lines.number;
        good = run_line(&j, line);
    }
    if (good && !j.paths)
        good = fault_set(fault, "%s: has no /convolver/new; it is no configuration of jconvolver",
                         network->path);
    good = good && add_copies(&j);
    if (good && !network->stages[0].n_terms)
        good = fault_set(fault, "%s: has no impulse response; add /impulse/read", network->path);
    free(j.paths);
    free(j.folder);
    return good;
}
