// SPDX-License-Identifier: MIT
#include "network.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/ir_name.h"
#include "base/memory.h"
#include "base/number.h"
#include "io/bytes/bytes.h"
#include "io/bytes/temp.h"

typedef bool parse_fn(struct network *network, char *text, struct fault *fault);

static const struct {
    const char *suffix;
    parse_fn *parse;
} formats[] = {
    {".conf", jconvolver_parse},
    {".cfg", convolver_parse},
    {".yml", camilladsp_parse},
    {".yaml", camilladsp_parse},
};

// NULL: the name is not that of a configuration.
static parse_fn *parser_of_name(const char *path)
{
    const char *dot = strrchr(path_base(path), '.');
    for (size_t i = 0; dot && i < sizeof formats / sizeof *formats; i++)
        if (strcasecmp(dot, formats[i].suffix) == 0) return formats[i].parse;
    return NULL;
}

bool network_is_named(const char *path)
{
    return parser_of_name(path);
}

bool network_fault(const struct network *network, int line, struct fault *fault, const char *format,
                   ...)
{
    char text[sizeof fault->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *path = ir_name_path(network->path, NULL);
    if (!line && strncmp(text, path, strlen(path)) == 0) return fault_set(fault, "%s", text);
    return line ? fault_set(fault, "%s:%d: %s", network->path, line, text)
                : fault_set(fault, "%s: %s", network->path, text);
}

static bool no_memory(const struct network *network, struct fault *fault)
{
    return fault_set(fault, "%s: out of memory", network->path);
}

bool network_add_stage(struct network *n, size_t out_channels, size_t in_channels,
                       struct fault *fault)
{
    if (n->n_stages == NETWORK_MAX_TERMS)
        return fault_set(fault, "%s: more than %d filters and mixers in the pipeline", n->path,
                         (int)NETWORK_MAX_TERMS);
    void *const grown =
        memory_append(n->stages, n->n_stages, &n->stage_capacity, sizeof *n->stages);
    if (!grown) return no_memory(n, fault);
    n->stages = grown;
    n->stages[n->n_stages++] =
        (struct network_stage){.out_channels = out_channels, .in_channels = in_channels};
    return true;
}

bool network_add_term(struct network *network, const struct network_term *term, struct fault *fault)
{
    struct network_stage *stage = &network->stages[network->n_stages - 1];
    if (network->n_terms == NETWORK_MAX_TERMS)
        return network_fault(network, term->line, fault, "more than %d impulse responses",
                             (int)NETWORK_MAX_TERMS);
    if (term->delay > NETWORK_MAX_DELAY)
        return network_fault(network, term->line, fault, "a delay of %.0f frames is too long",
                             term->delay);
    void *const grown =
        memory_append(stage->terms, stage->n_terms, &stage->capacity, sizeof *stage->terms);
    if (!grown) return no_memory(network, fault);
    stage->terms = grown;
    stage->terms[stage->n_terms++] = *term;
    network->n_terms++;
    return true;
}

static void release_impulse(struct impulse *impulse)
{
    free((void *)impulse->path);
    free(impulse->values);
    free(impulse->sections);
}

bool network_add_impulse(struct network *n, const struct impulse *impulse, size_t *ret_index,
                         struct fault *fault)
{
    struct impulse added = *impulse;
    bool good = added.path || added.values || added.sections || no_memory(n, fault);
    if (good && n->n_impulses == NETWORK_MAX_TERMS)
        good = network_fault(n, added.line, fault, "more than %d impulse responses",
                             (int)NETWORK_MAX_TERMS);
    void *const grown =
        good ? memory_append(n->impulses, n->n_impulses, &n->impulse_capacity, sizeof added) : NULL;
    if (!grown) {
        release_impulse(&added);
        return good ? no_memory(n, fault) : false;
    }
    n->impulses = grown;
    *ret_index = n->n_impulses;
    n->impulses[n->n_impulses++] = added;
    return true;
}

bool network_allocate_values(struct network *network, struct impulse *impulse, size_t n,
                             struct fault *fault)
{
    if (n > NETWORK_MAX_VALUES - network->n_values)
        return network_fault(network, impulse->line, fault,
                             "more than %d taps in the configuration itself; put them into files",
                             (int)NETWORK_MAX_VALUES);
    impulse->values = calloc(n, sizeof *impulse->values);
    if (!impulse->values) return no_memory(network, fault);
    impulse->source = IMPULSE_VALUES;
    impulse->n_values = n;
    network->n_values += n;
    return true;
}

static void release_one(struct network *n)
{
    for (size_t i = 0; i < n->n_impulses; i++) release_impulse(&n->impulses[i]);
    for (size_t i = 0; i < n->n_stages; i++) free(n->stages[i].terms);
    for (int d = 0; d < 2; d++) {
        const size_t channels = d == NETWORK_INPUTS ? n->in_channels : n->out_channels;
        for (size_t c = 0; n->ports[d] && c < channels; c++) {
            free(n->ports[d][c].name);
            free(n->ports[d][c].connect_to);
        }
        free(n->ports[d]);
    }
    free(n->impulses);
    free(n->stages);
    free(n->owned_path);
}

void network_release(struct network *network)
{
    struct network *next = network->next;
    release_one(network);
    *network = (struct network){0};
    while (next) {
        struct network *n = next;
        next = n->next;
        release_one(n);
        free(n);
    }
}

int network_list_files(const struct network *network, const char **ret_paths)
{
    int n = 0;
    for (const struct network *one = network; one; one = one->next) {
        if (ret_paths) ret_paths[n] = one->path;
        n++;
        for (size_t i = 0; i < one->n_impulses; i++)
            if (one->impulses[i].path) {
                if (ret_paths) ret_paths[n] = one->impulses[i].path;
                n++;
            }
    }
    if (network->list && ret_paths) ret_paths[n] = network->list;
    return n + (network->list != NULL);
}

bool network_parse_number(const struct network *network, const struct network_number *number,
                          const char *word, double *real, size_t *whole, struct fault *fault)
{
    struct number parsed = {0};
    if (!number_parse(word, QUANTITY_COUNT, &parsed) || (whole && !parsed.whole) ||
        !(parsed.value >= number->low && parsed.value <= number->high))
        return network_fault(network, number->line, fault,
                             whole ? "%s: '%.40s' is not a whole number from %.0f to %.0f"
                                   : "%s: '%.40s' is not a number from %.10g to %.10g",
                             number->what, word, number->low, number->high);
    if (whole) *whole = (size_t)parsed.integer;
    else *real = parsed.value;
    return true;
}

char *network_file(const struct network *network, const char *folder, const char *name)
{
    const char *config = network->path, *slash = folder && *folder ? "/" : "";
    char *path;
    int n = 0;
    if (*name == '/') folder = slash = "";
    if (folder) n = asprintf(&path, "%s%s%s", folder, slash, name);
    else n = asprintf(&path, "%.*s%s", (int)(path_base(config) - config), config, name);
    return n < 0 ? NULL : path;
}

char *network_file_of_windows(const struct network *network, char *name)
{
    for (char *c = name; *c; c++)
        if (*c == '\\') *c = '/';
    return network_file(network, NULL, name);
}

bool network_parse(struct network *ret, const char *path, char *text, struct fault *fault)
{
    struct network network = {.path = path};
    const bool good = parser_of_name(path)(&network, text, fault);
    if (good) *ret = network;
    else network_release(&network);
    return good;
}

bool network_read(struct network *ret, const char *path, bool may_be_list, struct fault *fault)
{
    if (!network_is_named(path))
        return fault_set(fault,
                         "%s: the name of a configuration ends with .conf (jconvolver), .cfg "
                         "(Convolver), .yml or .yaml (CamillaDSP)",
                         path);
    char *text = regular_read_text(path, fault);
    bool good = text != NULL;
    if (good && (parser_of_name(path) != convolver_parse || !network_is_list(text)))
        good = network_parse(ret, path, text, fault);
    else if (good && may_be_list) good = network_read_list(ret, path, text, fault);
    else if (good) good = fault_set(fault, "%s: is a list, which a list cannot name", path);
    free(text);
    return good;
}
