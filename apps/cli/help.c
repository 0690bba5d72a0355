// SPDX-License-Identifier: MIT
// --help and `partita help`, printed from the option table. The manual page is in manual.c, the
// completions are in completion.c.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "control/table.h"
#include "report.h"

enum {
    WIDTH = 79,
    HELP_COLUMN = 30,
    SUMMARY_COLUMN = 39
}; // columns of a command and its operands in the overview

// Prints text from column `at` on; further lines start at column `indent`.
static void print_wrapped(const char *text, int at, int indent)
{
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (at > indent && at + 1 + n > WIDTH) {
            printf("\n");
            at = 0;
        }
        if (at < indent) printf("%*s", indent - at, "");
        else if (at > indent) printf(" ");
        at = (at < indent ? indent : at + (at > indent)) + n;
        printf("%.*s", n, text);
        text += n;
        while (*text == ' ') text++;
    }
    printf("\n");
}

// An option or a command of `live`, and what it does. Long options are below each other.
static void print_item(const char *term, const char *text)
{
    int at = printf("  %s%s", strncmp(term, "--", 2) == 0 ? "    " : "", term);
    if (at >= HELP_COLUMN) at = printf("\n") - 1;
    print_wrapped(text, at, HELP_COLUMN);
}

void help_option(const struct option_row *row, enum command command, help_item_fn *item)
{
    char term[128], help[OPTION_HELP_SIZE], letter[5] = "";
    if (row->letter) snprintf(letter, sizeof letter, "-%c, ", row->letter);
    const bool optional = option_value_is_optional(row);
    snprintf(term, sizeof term, "%s--%s%s%s%s", letter, row->name,
             optional        ? "[="
             : row->argument ? " "
                             : "",
             row->argument ? row->argument : "", optional ? "]" : "");
    option_help(row, command, help);
    item(term, help);
}

void help_controls(help_item_fn *item)
{
    for (int i = 0; i < N_CONTROLS; i++) {
        char term[128];
        const struct control_row *row = &control_rows[i];
        snprintf(term, sizeof term, "%s%s%s", row->name, *row->argument ? " " : "", row->argument);
        item(term, row->help);
    }
}

const char matrix_drawing[] = "          --matrix        --matrix-order in,out, --true-stereo\n"
                              "          in 1  in 2      in 1  in 2\n"
                              "  out 1      1     2         1     3\n"
                              "  out 2      3     4         2     4\n";

// A command that is too long for a line continues after a backslash.
static void print_example(const struct example *example)
{
    static const char FIRST[] = "  ", NEXT[] = "      ";
    int at = printf("%s", FIRST);
    for (const char *word = example->command; *word;) {
        const int n = (int)strcspn(word, " "), more = word[n] != 0;
        if (at + n + 2 * more > WIDTH) at = printf("\\\n%s", NEXT) - 2;
        at += printf("%.*s%s", n, word, more ? " " : "\n");
        word += n + more;
    }
    print_wrapped(example->text, 0, 6);
}

void help_print(enum command command)
{
    const struct command_row *c = &command_rows[command];
    const char *group = NULL;
    bool headed = false;
    unsigned kinds = 0; // of its options
    printf("partita %s [options]%s%s\n", c->name, *c->operands ? " " : "", c->operands);
    printf("%s.\n", c->summary);
    if (*c->text) printf("\n");
    if (*c->text) print_wrapped(c->text, 0, 0);
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        if (row->group) {
            group = row->group;
            headed = false;
        }
        if (!(row->commands & 1u << command)) continue;
        if (!headed) printf("\n%s:\n", group);
        headed = true;
        kinds |= 1u << row->kind;
        help_option(row, command, print_item);
    }
    if (option_find(command, "matrix"))
        printf("\nChannels of %s from two inputs to two outputs:\n%s",
               command == COMMAND_CORRELATE ? "TEMPLATE" : "IR", matrix_drawing);
    if (kinds & 1u << OPTION_NUMBER)
        print_wrapped("\nNumbers may end in k, M or G, as in 48k or 2.4M.", 0, 0);
    if (kinds & 1u << OPTION_FRAMES)
        print_wrapped("FRAMES is a number, or a time such as 250ms, 10s or 2min.", 0, 0);
    if (kinds & 1u << OPTION_BYTES)
        print_wrapped("BYTES such as 512M and 4G are powers of 1024.", 0, 0);
    if (command == COMMAND_CONTROL) {
        printf("\nCommands:\n");
        help_controls(print_item);
    }
    printf("\nExamples:\n");
    for (int i = 0; i < MAX_EXAMPLES && command_examples[command][i].command; i++)
        print_example(&command_examples[command][i]);
    if (abs(c->n_operands) == 3) {
        print_wrapped("\nFormats: .wav, .rf64, .npy; in files, not pipes, .flac, .ogg, .opus, "
                      ".aiff, .caf, .au and .w64; raw samples: .raw, .iq, .cf32 and the like; "
                      "SigMF recordings, x.sigmf-data with x.sigmf-meta, and archives of them, "
                      "x.sigmf.",
                      0, 0);
        if (command != COMMAND_CHANNELIZE)
            print_wrapped("The first file may also be a .txt with one number per line.", 0, 0);
        if (command == COMMAND_CONVOLVE)
            print_wrapped("It may be a .sofa file: for a mono IN see --azimuth, else --layout.", 0,
                          0);
        print_wrapped("\nA file named - is standard input or output. The axes of an .npy array are "
                      "[frames] or [channels, frames]; its integers are numbers, of which full "
                      "scale is not 1. Exit status: 0 success, 1 failure, 2 wrong "
                      "usage, 3 success with a truncated or interrupted input.",
                      0, 0);
    }
}

void help_print_overview(void)
{
    printf("partita: linear filters for files, pipes and audio devices\n\n");
    for (int c = 0; c < N_COMMANDS; c++) {
        const int at =
            printf("  partita %-10s %-18s", command_rows[c].name, command_rows[c].operands);
        if (at > SUMMARY_COLUMN) printf("\n%*s", SUMMARY_COLUMN, "");
        printf(" %s\n", command_rows[c].summary);
    }
    printf("\n`partita COMMAND --help` lists the options of a command, `partita --version` prints "
           "the version.\n");
}

int help_main(const struct settings *s, struct fault *fault)
{
    enum command topic;
    if (s->man) manual_print();
    else if (s->completion != SHELL_NONE) completion_print((enum shell)s->completion);
    else if (s->n_operands == 0) help_print_overview();
    else if (command_find(s->operands[0], &topic, fault)) help_print(topic);
    else return EXIT_USAGE;
    return EXIT_DONE;
}
