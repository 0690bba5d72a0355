// SPDX-License-Identifier: MIT
#include "option_words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

// Fields whose option has another name.
static const struct {
    const char *field, *option;
} fields[] = {
    {"problem.kernel", "taps"},      {"problem.pad_begin", "pad"}, {"problem.pad_end", "pad"},
    {"design.method", "equiripple"}, {"in_channels", "channels"},  {"out_channels", "out-channels"},
};

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

// The length of the name of a struct at the start of the text, 0 if there is none.
static size_t struct_prefix(const char *text)
{
    static const char *const structs[] = {"problem.",    "options.",   "design.",
                                          "correction.", "equalizer.", "crossover."};
    for (size_t i = 0; i < sizeof structs / sizeof *structs; i++)
        if (begins(text, structs[i])) return strlen(structs[i]);
    return 0;
}

// The option for the field at the start of the text; *ret_length: the length of its name, index and
// equals sign.
static const char *option_of_field(enum command command, const char *text, size_t *ret_length)
{
    const size_t prefix = struct_prefix(text);
    const char *at = text + prefix;
    char name[32] = "";
    while (isalnum((unsigned char)*at) || *at == '_') at++;
    const size_t length = (size_t)(at - text);
    for (size_t i = prefix; prefix && i < length && i - prefix + 1 < sizeof name; i++)
        name[i - prefix] = text[i] == '_' ? '-' : text[i];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strlen(fields[i].field) == length && begins(text, fields[i].field))
            snprintf(name, sizeof name, "%s", fields[i].option);
    // In other commands than plan, --channels belongs to the files.
    const bool channels = !prefix && command != COMMAND_PLAN;
    const struct option_row *row = *name && !channels ? option_find(command, name) : NULL;
    const char *index_end = *at == '[' ? strchr(at, ']') : NULL;
    if (!row) return NULL;
    if (index_end) at = index_end + 1;
    if (begins(at, " =")) at += 2;
    *ret_length = (size_t)(at - text);
    return row->name;
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
    if (status == PARTITA_OK) return true;
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

// Refuses an option that is in the list, or if these are the fitting ones, one that is not.
static bool check_given(const bool given[MAX_OPTION_ROWS], const char *list, bool fitting,
                        const char *with, struct fault *fault)
{
    char word[64];
    for (size_t i = 0; i < n_option_rows; i++) {
        snprintf(word, sizeof word, "|%s|", option_rows[i].name);
        if (given[i] && !strstr(list, word) == fitting)
            return fault_set(fault, "--%s does not go with %s; leave out one of them",
                             option_rows[i].name, with);
    }
    return true;
}

bool option_words_fit(const struct settings *s, const bool given[MAX_OPTION_ROWS],
                      struct fault *fault)
{
    const char *kind = s->operands[0];
    const char *unfit = "|section|exact-gains|linear-phase|tail|gain|delay|invert|";
    if (s->command == COMMAND_DESIGN && strcmp(kind, "eq") == 0)
        unfit = "|cutoff|ripple|equiripple|minimum-phase|delay|invert|";
    if (s->command == COMMAND_DESIGN && strcmp(kind, "crossover") == 0) {
        unfit = "|cutoff|ripple|equiripple|minimum-phase|width|attenuation|section|exact-gains|";
        kind = "crossover, whose frequencies stand before OUT";
    }
    if (s->command == COMMAND_DESIGN) return check_given(given, unfit, false, kind, fault);
    if (!s->templates && s->mad > 0) return fault_set(fault, "--mad needs --templates");
    return !s->templates ||
           (check_given(given,
                        "|templates|mad|threshold|min-distance|peaks|normalised|format|iq|rate|"
                        "range|channels|max-channels|max-memory|threads|json|quiet|help|",
                        true, "--templates", fault) &&
            (((s->threshold > 0 || s->mad > 0) && !(s->threshold > 1)) ||
             fault_set(fault,
                       "--templates needs --threshold up to 1, or --mad, for example --mad 8")));
}

// The commands that have an option of this name, or the nearest option of this command; or the
// option whose negative level, which may be left out, stands apart from it.
static bool refuse_unknown(enum command command, const char *written, struct fault *fault)
{
    char name[64] = "", commands[128] = "", hint[NEAREST_HINT_SIZE];
    for (size_t i = 0; i < n_option_rows && written[1] >= '0' && written[1] <= '9'; i++) {
        const struct option_row *row = &option_rows[i];
        if (row->kind == OPTION_LEVEL && row->commands & 1u << command)
            return fault_set(fault,
                             "%s: no such option; the value of --%s follows an equals sign: "
                             "--%s=%s",
                             written, row->name, row->name, written);
    }
    if (strncmp(written, "--", 2) == 0)
        snprintf(name, sizeof name, "%.*s", (int)strcspn(written + 2, "="), written + 2);
    struct nearest nearest = nearest_to(name);
    unsigned others = 0;
    for (size_t i = 0; i < n_option_rows && *name; i++) {
        const struct option_row *row = &option_rows[i];
        if (row->commands & 1u << command) nearest_try(&nearest, row->name);
        else if (strcmp(row->name, name) == 0) others |= row->commands;
    }
    for (int c = 0; c < N_COMMANDS; c++) {
        const size_t at = strlen(commands);
        if (others & 1u << c)
            snprintf(commands + at, sizeof commands - at, "%s%s", at ? ", " : "; it belongs to ",
                     command_rows[c].name);
    }
    return fault_set(fault, "%s: no such option%s%s", written, commands,
                     *commands ? "" : nearest_hint(&nearest, "--", hint));
}

bool option_words_unknown(enum command command, const char *written, struct fault *fault)
{
    char names[256] = "";
    const size_t length = strcspn(written, "=");
    int n = 0;
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        if (!(row->commands & 1u << command) || strncmp(written, "--", 2) != 0 || length <= 2 ||
            strncmp(row->name, written + 2, length - 2) != 0)
            continue;
        if (strlen(row->name) == length - 2)
            return fault_set(fault, "%s: --%s takes no value", written, row->name);
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s--%s", n++ ? ", " : "", row->name);
    }
    if (n == 0) return refuse_unknown(command, written, fault);
    return n > 1 ? fault_set(fault, "%s: ambiguous: %s", written, names)
                 : fault_set(fault, "%s: %s takes no value", written, names);
}
