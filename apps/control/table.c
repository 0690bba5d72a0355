// SPDX-License-Identifier: MIT
#include "table.h"

#include <math.h>
#include <string.h>

#include "base/nearest.h"

#define LEVEL                                                                                      \
    ARGUMENT_NUMBER, .has_steps = true, .quantity = QUANTITY_DECIBELS, .low = -300, .high = 300

const struct control_row control_rows[N_CONTROLS] = {
    [CONTROL_GAIN] = {"gain", "DB|up DB|down DB", LEVEL, .help = "gain of the output in decibels"},
    [CONTROL_WET] = {"wet", "DB|up DB|down DB|off", LEVEL, .has_off = true,
                     .help = "level of the filtered input within the output"},
    [CONTROL_DRY] = {"dry", "DB|up DB|down DB|off", LEVEL, .has_off = true,
                     .help = "level of the unfiltered input within the output"},
    [CONTROL_INPUT_GAIN] = {"input-gain", "DB|up DB|down DB", LEVEL,
                            .help = "gain of the input, before the filter"},
    [CONTROL_MUTE] = {"mute", "on|off|toggle", ARGUMENT_SWITCH, .help = "silences the output"},
    [CONTROL_BYPASS] = {"bypass", "on|off|toggle", ARGUMENT_SWITCH,
                        .help = "plays the input without the filter"},
    [CONTROL_FILTER] = {"filter", "N", ARGUMENT_NUMBER, .whole = true, .low = 1, .high = 64,
                        .help = "fades to the Nth filter, or the Nth scene if there are scenes"},
    [CONTROL_NEXT] = {"next", "", .help = "fades to the next filter or scene"},
    [CONTROL_PREVIOUS] = {"previous", "", .help = "fades to the previous filter or scene"},
    [CONTROL_SCENE] = {"scene", "NAME", ARGUMENT_TEXT,
                       .help = "fades to a scene and sets its levels"},
    [CONTROL_LOAD] = {"load", "IR", ARGUMENT_TEXT,
                      .help = "reads a file and fades to it; it replaces the current filter"},
    [CONTROL_RELOAD] = {"reload", "", .help = "reads the file of the current filter again"},
    [CONTROL_FADE] = {"fade", "MS", ARGUMENT_NUMBER, .quantity = QUANTITY_MILLISECONDS, .low = 0,
                      .high = 60000,
                      .help = "length of the crossfade between filters in milliseconds"},
    [CONTROL_AZIMUTH] = {"azimuth", "DEGREES|up DEGREES|down DEGREES", ARGUMENT_NUMBER,
                         .has_steps = true, .low = -360, .high = 360,
                         .help =
                             "direction of the sound of a SOFA file, from the front to the left"},
    [CONTROL_ELEVATION] = {"elevation", "DEGREES|up DEGREES|down DEGREES", ARGUMENT_NUMBER,
                           .has_steps = true, .low = -90, .high = 90,
                           .help = "direction of the sound of a SOFA file, upwards"},
    [CONTROL_STATUS] = {"status", "",
                        .help = "answers with levels, load, latency, losses, filters"},
    [CONTROL_RESPONSE] = {"response", "",
                          .help =
                              "answers with the magnitude of filter and result, from each input "
                              "to the output of its number"},
    [CONTROL_SUBSCRIBE] = {"subscribe", "MS|off", ARGUMENT_NUMBER, .has_off = true,
                           .quantity = QUANTITY_MILLISECONDS, .low = 20, .high = 3600000,
                           .help = "sends the status at this interval in milliseconds"},
    [CONTROL_HELP] = {"help", "", .help = "answers with this list"},
    [CONTROL_QUIT] = {"quit", "", .help = "fades out and ends"},
};

const struct control_key control_keys[] = {
    {'m', 0, "mute toggle", NULL, "mute"},
    {'b', 0, "bypass toggle", NULL, "bypass"},
    {'-', '+', "gain down 1", "gain up 1", "gain"},
    {'w', 'W', "wet down 1", "wet up 1", "filtered input"},
    {'d', 'D', "dry down 3", "dry up 3", "unfiltered input"},
    {'i', 'I', "input-gain down 1", "input-gain up 1", "gain of the input"},
    {'p', 'n', "previous", "next", "filter"},
    {'r', 0, "reload", NULL, "read the filter again"},
    {'q', 0, "quit", NULL, "quit"},
};
const size_t n_control_keys = sizeof control_keys / sizeof *control_keys;

const char *control_key_line(int key)
{
    static char filter[] = "filter 1";
    filter[sizeof filter - 2] = (char)key;
    if (key >= '1' && key <= '9') return filter;
    if (key == '=') key = '+'; // the same key without shift
    for (size_t i = 0; key && i < n_control_keys; i++) {
        if (key == control_keys[i].key) return control_keys[i].line;
        if (key == control_keys[i].other) return control_keys[i].other_line;
    }
    return NULL;
}

// Ends the first word with a zero and returns what follows it, without spaces at both ends.
static char *split_word(char *text)
{
    char *rest = text + strcspn(text, " \t");
    if (*rest) *rest++ = 0;
    rest += strspn(rest, " \t");
    for (size_t n = strlen(rest); n && strchr(" \t\r", rest[n - 1]); n--) rest[n - 1] = 0;
    return rest;
}

// Two words for each of the verbs from CONTROL_ON on, of which the last has one.
static bool parse_switch(struct control_command *c, const char *argument)
{
    static const char *const words[] = {"on", "1", "off", "0", "toggle"};
    size_t i = 0;
    while (i < sizeof words / sizeof *words && strcmp(argument, words[i]) != 0) i++;
    c->verb = (enum control_verb)(CONTROL_ON + i / 2);
    return i < sizeof words / sizeof *words;
}

// The number of a step is a distance, and at least 0.
static bool parse_number(struct control_command *c, const char *number, struct fault *fault)
{
    const struct control_row *row = &control_rows[c->id];
    double low = c->verb == CONTROL_SET ? row->low : 0;
    struct number n;
    if (!number_parse(number, row->quantity, &n))
        return fault_set(fault, "%s %s: needs %s", row->name, number, row->argument);
    c->number = n.value;
    if (row->whole && c->number != floor(c->number))
        return fault_set(fault, "%s %s: is not a whole number", row->name, number);
    if (c->number < low || c->number > row->high)
        return fault_set(fault, "%s %s: is not between %g and %g", row->name, number, low,
                         row->high);
    return true;
}

static bool parse_level(struct control_command *c, char *argument, struct fault *fault)
{
    const struct control_row *row = &control_rows[c->id];
    if (row->has_off && strcmp(argument, "off") == 0) {
        c->verb = CONTROL_OFF;
        return true;
    }
    if (!row->has_steps || (*argument != 'u' && *argument != 'd'))
        return parse_number(c, argument, fault);
    char *number = split_word(argument);
    c->verb = strcmp(argument, "up") == 0 ? CONTROL_UP : CONTROL_DOWN;
    bool is_step = c->verb == CONTROL_UP || strcmp(argument, "down") == 0;
    if (is_step && *number) return parse_number(c, number, fault);
    return fault_set(fault, "%s %s: needs %s", row->name, argument, row->argument);
}

static bool parse_argument(struct control_command *c, char *argument, struct fault *fault)
{
    const struct control_row *row = &control_rows[c->id];
    c->text = argument;
    if (row->kind == ARGUMENT_NONE && *argument)
        return fault_set(fault, "%s %s: %s takes no argument", row->name, argument, row->name);
    if (row->kind != ARGUMENT_NONE && !*argument)
        return fault_set(fault, "%s: needs %s", row->name, row->argument);
    if (row->kind == ARGUMENT_NUMBER) return parse_level(c, argument, fault);
    if (row->kind != ARGUMENT_SWITCH || parse_switch(c, argument)) return true;
    return fault_set(fault, "%s %s: needs %s", row->name, argument, row->argument);
}

bool control_parse(struct control_command *ret, char *line, struct fault *fault)
{
    line += strspn(line, " \t\r");
    char *argument = split_word(line);
    line[strcspn(line, "\r")] = 0;
    char hint[NEAREST_HINT_SIZE];
    const int id = nearest_find(line, control_rows, N_CONTROLS, sizeof *control_rows, hint);
    if (!*line) return fault_set(fault, "the line is empty; `help` lists the commands");
    if (id < 0)
        return fault_set(fault, "%.100s: no such command%s; `help` lists the commands", line, hint);
    *ret = (struct control_command){.id = (enum control_id)id};
    return parse_argument(ret, argument, fault);
}
