// SPDX-License-Identifier: MIT
#include "option_words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { ANY = ~0, PLAN = 1 << COMMAND_PLAN, DESIGN = 1 << COMMAND_DESIGN };

static const struct {
    const char *field, *option;
    int commands;
} fields[] = {
    {"options.engine", "engine", ANY},
    {"options.device", "device", ANY},
    {"options.parts", "parts", ANY},
    {"options.threads", "threads", ANY},
    {"options.error_reach", "error-reach", ANY},
    {"problem.groups", "groups", ANY},
    {"problem.block", "block", ANY},
    {"problem.latency", "latency", ANY},
    {"problem.kernel", "taps", ANY},
    {"problem.size", "size", ANY},
    {"problem.up", "up", ANY},
    {"problem.stride", "stride", ANY},
    {"problem.dilation", "dilation", ANY},
    {"problem.pad_begin", "pad", ANY},
    {"problem.pad_end", "pad", ANY},
    {"problem.boundary", "boundary", ANY},
    {"design.cutoff", "cutoff", DESIGN},
    {"design.width", "width", DESIGN},
    {"design.ripple", "ripple", DESIGN},
    {"design.attenuation", "attenuation", DESIGN},
    {"design.taps", "taps", DESIGN},
    {"design.minimum_phase", "minimum-phase", DESIGN},
    {"design.method", "equiripple", DESIGN},
    {"in_channels", "channels", PLAN}, // in other commands --channels belongs to the files
    {"out_channels", "out-channels", PLAN},
};

// The option for the field at the start of the text; *ret_length: the length of its name, index and
// equals sign.
static const char *option_of_field(enum command command, const char *text, size_t *ret_length)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *at = text + strlen(fields[i].field);
        if (strncmp(text, fields[i].field, strlen(fields[i].field)) != 0 ||
            isalnum((unsigned char)*at) || *at == '_')
            continue;
        if (!(fields[i].commands & 1 << command) || !option_find(command, fields[i].option))
            return NULL;
        const char *index_end = *at == '[' ? strchr(at, ']') : NULL;
        if (index_end) at = index_end + 1;
        if (strncmp(at, " =", 2) == 0) at += 2;
        *ret_length = (size_t)(at - text);
        return fields[i].option;
    }
    return NULL;
}

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

// The length of the name of a struct at the start of the text, 0 if there is none.
static size_t struct_prefix(const char *text)
{
    static const char *const structs[] = {"problem.", "options.", "design."};
    for (size_t i = 0; i < sizeof structs / sizeof *structs; i++)
        if (begins(text, structs[i])) return strlen(structs[i]);
    return 0;
}

bool option_words(enum command command, struct fault *fault)
{
    const struct fault said = *fault;
    size_t made = 0, length;
    char before = ' ';
    for (const char *at = said.text; *at && made < sizeof fault->text - 1;) {
        const char *option =
            isalnum((unsigned char)before) ? NULL : option_of_field(command, at, &length);
        int n = 1;
        const size_t prefix = struct_prefix(at);
        if (option) {
            n = snprintf(fault->text + made, sizeof fault->text - made, "--%s", option);
            at += length;
        } else if (prefix) {
            at += prefix;
            n = 0;
        } else {
            fault->text[made] = *at++;
        }
        made = made + (size_t)n < sizeof fault->text ? made + (size_t)n : sizeof fault->text - 1;
        before = at[-1];
    }
    fault->text[made] = 0;
    return false;
}

bool option_words_of_status(struct fault *fault, enum command command, enum partita_status status,
                            const struct fault *log)
{
    // A line of the log says more than these.
    const bool general =
        status == PARTITA_ERR_ARG || status == PARTITA_ERR_DEVICE || command == COMMAND_DESIGN;
    if (status == PARTITA_ERR_NOMEM && !*log->text) return memory_fault(fault, "the computation");
    if (general && *log->text) fault_set(fault, "%s", log->text);
    else
        fault_set(fault, "%s%s%s", partita_status_string(status), *log->text ? ": " : "",
                  log->text);
    option_words(command, fault);
    fault->usage = status == PARTITA_ERR_ARG && begins(fault->text, "--");
    return false;
}

void option_words_log(void *user, const char *text)
{
    fault_set(user, "%s", text);
}

bool option_words_fit_templates(const struct settings *s, const bool given[MAX_OPTION_ROWS],
                                struct fault *fault)
{
    static const char fitting[] =
        "|templates|mad|threshold|min-distance|peaks|normalised|format|iq|rate|channels|max-"
        "channels|max-memory|threads|json|quiet|help|";
    char word[64];
    if (!s->templates && s->mad > 0) return fault_set(fault, "--mad needs --templates");
    for (size_t i = 0; s->templates && i < n_option_rows; i++) {
        snprintf(word, sizeof word, "|%s|", option_rows[i].name);
        if (given[i] && !strstr(fitting, word))
            return fault_set(fault, "--%s does not go with --templates; leave out one of them",
                             option_rows[i].name);
    }
    return !s->templates || ((s->threshold > 0 || s->mad > 0) && !(s->threshold > 1)) ||
           fault_set(fault, "--templates needs --threshold up to 1, or --mad, for example --mad 8");
}
