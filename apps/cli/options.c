// SPDX-License-Identifier: MIT
// Parses the arguments with getopt_long and the option table (option_table.c).
#include "options.h"

#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "io/samples/encoding.h"
#include "option_words.h"

void option_help(const struct option_row *row, enum command command, char text[OPTION_HELP_SIZE])
{
    bool rename = command == COMMAND_CORRELATE;
    size_t n = 0;
    for (const char *c = row->help; *c && n + 1 < OPTION_HELP_SIZE;) {
        size_t length = strcspn(c, " ,;:");
        bool is_operand = rename && length == 2 && strncmp(c, "IR", 2) == 0;
        length += strspn(c + length, " ,;:");
        const char *word = is_operand ? "TEMPLATE" : "";
        int made = snprintf(text + n, OPTION_HELP_SIZE - n, "%s%.*s", word,
                            (int)length - 2 * is_operand, c + 2 * is_operand);
        n += (size_t)made;
        c += length;
    }
}

bool option_value_is_optional(const struct option_row *row)
{
    return row->kind == OPTION_LEVEL || row->kind == OPTION_FLAG_OR_WORD;
}

const struct option_row *option_find(enum command command, const char *name)
{
    for (size_t i = 0; i < n_option_rows; i++)
        if (option_rows[i].commands & 1u << command && strcmp(option_rows[i].name, name) == 0)
            return &option_rows[i];
    return NULL;
}

bool command_find(const char *name, enum command *ret_command, struct fault *fault)
{
    char hint[NEAREST_HINT_SIZE];
    const int found = nearest_find(name, command_rows, N_COMMANDS, sizeof *command_rows, hint);
    *ret_command = (enum command)found;
    return found >= 0 || fault_usage(fault, "%s: no such command%s", name, hint);
}

struct sofa_direction options_direction(const struct settings *settings)
{
    return (struct sofa_direction){isnan(settings->azimuth) ? 0 : settings->azimuth,
                                   isnan(settings->elevation) ? 0 : settings->elevation};
}

bool options_are_steered(const struct settings *settings)
{
    return settings->control || settings->osc || settings->scene || settings->web;
}

const char *operand_name(const struct settings *settings, int i)
{
    if (strcmp(settings->operands[i], "-") != 0) return settings->operands[i];
    return i == 2 ? "standard output" : "standard input";
}

const char *options_sharded_by(const struct settings *settings)
{
    if (settings->shared) return "mpirun";
    return settings->range ? "--range" : settings->resume ? "--resume" : NULL;
}

bool options_want_peaks(const struct settings *settings)
{
    return settings->peaks || !isnan(settings->threshold) || settings->mad > 0;
}

double options_gain(const struct settings *settings)
{
    return settings->gain == GAIN_AUTO ? 0 : settings->gain;
}

size_t options_max_channels(const struct settings *settings)
{
    return settings->max_channels == NOT_GIVEN ? 1024 : (size_t)settings->max_channels;
}

// Their operands are no files, or not all of them.
enum {
    WORD_COMMANDS =
        1 << COMMAND_LAYER | 1 << COMMAND_DESIGN | 1 << COMMAND_CONTROL | 1 << COMMAND_HELP
};

// Of the kinds of numbers: the suffixes, and what messages say.
static const struct number_kind {
    enum quantity quantity;
    const char *noun, *example;
} number_kinds[] = {
    [OPTION_NUMBER] = {QUANTITY_COUNT, "a whole number", "4"},
    [OPTION_THREADS] = {QUANTITY_COUNT, "auto or a whole number", "4"},
    [OPTION_BYTES] = {QUANTITY_BYTES, "a whole number of bytes", "512M or 4G"},
    [OPTION_RATE] = {QUANTITY_FREQUENCY, "a number of Hz above 0", "48k, 62.5 or 100M/3"},
    [OPTION_FRAMES] = {QUANTITY_FRAMES, "a whole number of frames or a time in ms, s or min",
                       "4096 or 250ms"},
    [OPTION_REAL] = {QUANTITY_COUNT, "a number", "0.5"},
    [OPTION_DECIBELS] = {QUANTITY_DECIBELS, "a number of decibels", "-6"},
    [OPTION_LEVEL] = {QUANTITY_DECIBELS, "a number of decibels", "-1"},
    [OPTION_GAIN] = {QUANTITY_DECIBELS, "auto or a number of decibels", "-6"},
    [OPTION_FREQUENCY] = {QUANTITY_FREQUENCY, "a frequency in Hz", "2.5k or 433.92M"},
    [OPTION_SECONDS] = {QUANTITY_SECONDS, "a time in seconds", "10 or 250ms"},
    [OPTION_MILLISECONDS] = {QUANTITY_MILLISECONDS, "a time in milliseconds", "50 or 0.5s"},
};

// "--block 0: is not a whole number of frames or a time from 1 to 65536, for example 4096 or 250ms"
static bool refuse_number(const struct option_row *row, const char *value, struct fault *fault)
{
    const struct number_kind *kind = &number_kinds[row->kind];
    const bool bounded = row->low != row->high;
    // A bound beyond 2^60 says nothing to users.
    const int64_t beyond = (int64_t)1 << 60;
    char range[64] = "";
    if (bounded && row->high < beyond)
        snprintf(range, sizeof range, " from %lld to %lld", (long long)row->low,
                 (long long)row->high);
    else if (bounded && row->low > -beyond)
        snprintf(range, sizeof range, " from %lld on", (long long)row->low);
    struct number example;
    const bool shown = !bounded || !number_parse(kind->example, kind->quantity, &example) ||
                       (example.value >= (double)row->low && example.value <= (double)row->high);
    return fault_set(fault, "--%s %s: is not %s%s%s%s", row->name, value, kind->noun, range,
                     shown ? ", for example " : "", shown ? kind->example : "");
}

static bool store_number(const struct option_row *row, struct settings *settings, const char *value,
                         struct fault *fault)
{
    void *field = (char *)settings + row->field;
    const bool is_auto = strcmp(value, "auto") == 0, real = row->kind >= OPTION_REAL;
    struct number number = {0};
    cpu_set_t
        set; // the processors that this process may use, which a scheduler may have restricted
    settings->threads_given |= row->kind == OPTION_THREADS;
    if (is_auto && row->kind == OPTION_THREADS) {
        *(int64_t *)field = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
        return true;
    }
    if (is_auto && row->kind == OPTION_GAIN) {
        *(double *)field = GAIN_AUTO;
        return true;
    }
    bool good = row->kind == OPTION_RATE
                    ? number_parse_rate(value, &number.value)
                    : number_parse(value, number_kinds[row->kind].quantity, &number);
    if (number.is_time) good = good && (number.value >= 0 || row->low < 0);
    else if (real)
        good = good && isfinite(number.value) &&
               (row->low == row->high ||
                (number.value >= (double)row->low && number.value <= (double)row->high));
    else good = good && number.whole && number.integer >= row->low && number.integer <= row->high;
    if (!good) return refuse_number(row, value, fault);
    if (real) *(double *)field = number.value;
    else *(int64_t *)field = number.is_time ? GIVEN_AS_TIME : number.integer;
    if (number.is_time)
        settings->times[settings->n_times++] = (struct given_time){row, value, number.value};
    return true;
}

bool options_resolve_times(struct settings *settings, double rate, struct fault *fault)
{
    for (int i = 0; i < settings->n_times; i++) {
        const struct given_time *t = &settings->times[i];
        // Results of --up have its rate.
        const bool of_result = t->row->field == offsetof(struct settings, first) ||
                               t->row->field == offsetof(struct settings, last);
        const double frames = rint(t->seconds * rate * (of_result ? (double)settings->up : 1));
        if (!(rate > 0))
            return fault_usage(
                fault,
                "--%s %s: a time needs the sample rate, which is unknown; add --rate, "
                "for example --rate 48k, or give a number of frames",
                t->row->name, t->text);
        if (!(frames >= (double)t->row->low && frames <= (double)t->row->high)) {
            struct fault said;
            refuse_number(t->row, t->text, &said);
            return fault_usage(fault, "%s; at %.12g Hz it is %.0f frames", said.text, rate, frames);
        }
        *(int64_t *)(void *)((char *)settings + t->row->field) = (int64_t)frames;
    }
    return true;
}

static bool store_choice(const struct option_row *row, int *field, const char *value,
                         struct fault *fault)
{
    size_t n = strlen(value);
    const char *word = row->argument;
    for (int i = 0; word; i++) {
        size_t length = strcspn(word, "|");
        if (length == n && strncmp(word, value, n) == 0) {
            *field = i;
            return true;
        }
        word = word[length] ? word + length + 1 : NULL;
    }
    return fault_set(fault, "--%s %s: must be one of %s", row->name, value, row->argument);
}

// Users who expect -o to mean "output" pass a file name, which is answered by the operands.
static bool store_sample_type(const struct option_row *row, enum command command,
                              const char **field, const char *value, struct fault *fault)
{
    struct encoding ignored;
    char list[NAME_LIST_SIZE], hint[NEAREST_HINT_SIZE];
    const char *operands = command_rows[command].operands;
    struct nearest nearest = nearest_to(value);
    *field = value;
    if (encoding_parse(value, &ignored)) return true;
    if (*operands && strpbrk(value, "./"))
        return fault_set(fault,
                         "--%s %s: unknown sample type; file names are given without options: %s",
                         row->name, value, operands);
    encoding_try_names(&nearest);
    return fault_set(fault,
                     "--%s %s: unknown sample type%s; there are %s, and with be at the end big "
                     "endian ones",
                     row->name, value, nearest_hint(&nearest, "", hint), encoding_list(list));
}

static bool store_option(const struct option_row *row, struct settings *settings, const char *value,
                         struct fault *fault)
{
    void *field = (char *)settings + row->field;
    struct word_list *list = field;
    // Of the numbers, levels alone may have no value.
    if (row->kind >= OPTION_NUMBER) return store_number(row, settings, value ? value : "0", fault);
    switch (row->kind) {
    case OPTION_FLAG:
        *(int *)field = 1;
        return true;
    case OPTION_FLAG_OR_WORD:
        if (value && !store_choice(row, field, value, fault)) return false;
        *(int *)field = value ? 2 : 1;
        return true;
    case OPTION_LIST:
        if (list->n == MAX_WORDS)
            return fault_set(fault, "--%s: given more than %d times", row->name, MAX_WORDS);
        list->words[list->n++] = value;
        return true;
    case OPTION_CHOICE:
        return store_choice(row, field, value, fault);
    case OPTION_SAMPLE_TYPE:
        return store_sample_type(row, settings->command, field, value, fault);
    default: // OPTION_TEXT
        *(const char **)field = value;
        return true;
    }
}

// getopt's two tables for one command. The value of a long option is its row + 256. Behind the
// first operand of `control` no options follow, since levels have signs.
static void list_options(enum command command, struct option longs[MAX_OPTION_ROWS + 1],
                         char shorts[2 * MAX_OPTION_ROWS + 3])
{
    size_t n = 0, m = 0;
    if (command == COMMAND_CONTROL) shorts[m++] = '+';
    shorts[m++] = ':';
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        if (!(row->commands & 1u << command)) continue;
        const int argument = row->kind == OPTION_FLAG        ? no_argument
                             : option_value_is_optional(row) ? optional_argument
                                                             : required_argument;
        longs[n++] = (struct option){row->name, argument, NULL, (int)i + 256};
        if (!row->letter) continue;
        shorts[m++] = row->letter;
        if (argument) shorts[m++] = ':';
    }
    longs[n] = (struct option){0};
    shorts[m] = 0;
}

static const struct option_row *row_of(enum command command, int found)
{
    if (found >= 256) return &option_rows[found - 256];
    for (size_t i = 0; i < n_option_rows; i++)
        if (option_rows[i].letter == found && option_rows[i].commands & 1u << command)
            return &option_rows[i];
    return NULL;
}

static bool take_option(struct settings *s, int found, const char *written,
                        bool given[MAX_OPTION_ROWS], struct fault *fault)
{
    if (found == ':') return fault_set(fault, "%s: needs a value", written);
    const struct option_row *row = found == '?' ? NULL : row_of(s->command, found);
    if (!row) return option_words_unknown(s->command, written, fault);
    bool *before = &given[row - option_rows];
    if (*before && row->kind != OPTION_FLAG && row->kind != OPTION_LIST)
        return fault_set(fault, "--%s: given twice", row->name);
    *before = true;
    return store_option(row, s, optarg, fault);
}

// IR IN OUT; of convolve, IR may be several names, the configuration of --config, or none with
// --rate-out; of correlate, the templates of --templates.
static void assign_operands(struct settings *s, int n, char **words)
{
    if (s->rate_out > 0 && n == 2 && !s->config) {
        s->config = "";
        s->is_route = true;
    }
    if (s->config || s->templates) {
        s->operands[0] = s->is_route ? "--rate-out" : s->config ? s->config : s->templates;
        for (int i = 0; i < n && i + 1 < MAX_OPERANDS; i++) s->operands[i + 1] = words[i];
        s->n_operands = n;
        return;
    }
    const bool several = s->command == COMMAND_CONVOLVE && n > MAX_OPERANDS;
    for (int i = 0; i < n && i < MAX_OPERANDS; i++)
        s->operands[i] = words[i == 0 || !several ? i : n - MAX_OPERANDS + i];
    s->n_irs = several ? n - 2 : 1;
    s->files = words;
    s->n_operands = n;
}

static bool take_operands(struct settings *s, int argc, char **argv, struct fault *fault)
{
    const struct command_row *command = &command_rows[s->command];
    const int n = argc - optind;
    assign_operands(s, n, argv + optind);
    const int wanted = s->config ? 2 : s->templates ? 1 : command->n_operands;
    if (n == wanted || (wanted < 0 && n >= -wanted) || s->help ||
        (n == 0 && s->command == COMMAND_HELP))
        return true;
    if (wanted == 0)
        return fault_set(fault, "takes no file names, but %d %s given%s", n, n == 1 ? "is" : "are",
                         s->command == COMMAND_LIVE   ? "; name filters with --ir"
                         : s->command == COMMAND_PLAN ? "; describe a filter with --taps"
                                                      : "");
    if (s->command == COMMAND_CORRELATE && n == 2 && !s->templates) {
        if (options_want_peaks(s)) return true;
        return fault_set(fault, "needs OUT, unless it prints peaks: add --peaks or --threshold");
    }
    const bool files = !(1u << s->command & WORD_COMMANDS);
    return fault_set(fault, "needs %s, but %d %s%s %s given%s",
                     s->config      ? "IN and OUT besides --config"
                     : s->templates ? "IN besides --templates, and no OUT"
                                    : command->operands,
                     n, files ? "file " : "", n == 1 ? "name" : "names", n == 1 ? "is" : "are",
                     s->command == COMMAND_LAYER && n > 1
                         ? "; arrays are named by options such as --input"
                         : "");
}

bool options_parse(struct settings *ret_settings, enum command command, int argc, char **argv,
                   struct fault *fault)
{
    struct settings s = {.command = command, .argc = argc, .argv = argv, .up = 1, .stride = 1};
    struct option longs[MAX_OPTION_ROWS + 1];
    char shorts[2 * MAX_OPTION_ROWS + 3];
    bool given[MAX_OPTION_ROWS] = {false};
    int found;
    s.first = s.last = s.max_lag = s.align = NOT_GIVEN;
    s.max_channels = NOT_GIVEN;
    s.threads = 1;
    s.layer_groups = 1;
    s.taps = 4096;
    s.latency = NOT_GIVEN;
    s.dry = -INFINITY;
    s.normalize = s.azimuth = s.elevation = s.trim = NAN;
    s.fade = 50;
    s.duration = INFINITY;
    s.threshold = s.width = s.ripple = NAN;
    s.tune = s.frequency = INFINITY;
    s.correction.taps = 65536;
    s.correction.boost = 6;
    s.correction.pre_time = -1;
    list_options(command, longs, shorts);
    opterr = 0;
    optind = 1;
    for (;;) {
        int before = optind;
        found = getopt_long(argc, argv, shorts, longs, NULL);
        if (found < 0) break;
        if (!take_option(&s, found, argv[optind > before ? optind - 1 : before], given, fault))
            return false;
    }
    if (!take_operands(&s, argc, argv, fault) || (!s.help && !option_words_fit(&s, given, fault)))
        return false;
    if (s.true_stereo) s.matrix_order = MATRIX_IN_OUT;
    if (s.matrix_order == MATRIX_IN_OUT) s.matrix = 1;
    *ret_settings = s;
    return true;
}
