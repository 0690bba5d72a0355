// SPDX-License-Identifier: MIT
// The commands that steer a running `partita live`. Keys, the control socket and OSC give lines of
// text to the same parser, so that each command exists once.
#ifndef PARTITA_APPS_CONTROL_TABLE_H
#define PARTITA_APPS_CONTROL_TABLE_H

#include <stddef.h>

#include "base/fault.h"
#include "base/number.h"

enum control_id {
    CONTROL_GAIN = 0,
    CONTROL_WET,
    CONTROL_DRY,
    CONTROL_INPUT_GAIN,
    CONTROL_MUTE,
    CONTROL_BYPASS,
    CONTROL_FILTER,
    CONTROL_NEXT,
    CONTROL_PREVIOUS,
    CONTROL_SCENE,
    CONTROL_LOAD,
    CONTROL_RELOAD,
    CONTROL_FADE,
    CONTROL_AZIMUTH,
    CONTROL_ELEVATION,
    CONTROL_STATUS,
    CONTROL_RESPONSE,
    CONTROL_SUBSCRIBE,
    CONTROL_HELP,
    CONTROL_QUIT,
    N_CONTROLS,
};

enum control_argument { ARGUMENT_NONE, ARGUMENT_NUMBER, ARGUMENT_SWITCH, ARGUMENT_TEXT };

struct control_row {
    const char *name, *argument; // argument: as the help shows it; empty: none
    enum control_argument kind;
    bool whole, has_off, has_steps; // of a number
    enum quantity quantity;
    double low, high;
    const char *help;
};

extern const struct control_row control_rows[N_CONTROLS];

// What to do with the argument: SET for a number or a text, OFF also for a number that has it.
enum control_verb {
    CONTROL_SET = 0,
    CONTROL_UP,
    CONTROL_DOWN,
    CONTROL_ON,
    CONTROL_OFF,
    CONTROL_TOGGLE,
};

// A parsed line. text: the argument of ARGUMENT_TEXT, a part of the line.
struct control_command {
    enum control_id id;
    enum control_verb verb;
    double number;
    const char *text;
};

// Parses a line without its end of line, in place. False, with a fault that names word and value,
// if it is no command.
bool control_parse(struct control_command *ret, char *line, struct fault *fault);

// A key of the terminal, or a lower and an upper case pair, and the lines that it stands for.
struct control_key {
    char key, other;               // other: 0 if there is none
    const char *line, *other_line; // other_line: NULL if it is the same
    const char *help;
};

extern const struct control_key control_keys[];
extern const size_t n_control_keys;

// The line of a key; NULL: the key has no command. The digits 1 to 9 select a filter.
const char *control_key_line(int key);

#endif
