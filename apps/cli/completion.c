// SPDX-License-Identifier: MIT
// Completions for bash, zsh and fish: commands, options, the values of choices, engines and sample
// types, and else file names.
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "engine_name.h"
#include "io/samples/encoding.h"

enum { WORDS_SIZE = 256 };
_Static_assert((int)WORDS_SIZE >= (int)ENGINE_LIST_SIZE &&
                   (int)WORDS_SIZE >= (int)ENCODING_LIST_SIZE,
               "");

// The values of an option, as in a list or "full|same|valid"; NULL if any text may be one.
static const char *values_of(const struct option_row *row, char text[WORDS_SIZE])
{
    if (row->kind == OPTION_CHOICE || row->kind == OPTION_FLAG_OR_WORD) return row->argument;
    if (row->kind == OPTION_SAMPLE_TYPE) return encoding_list(text);
    return strcmp(row->name, "engine") == 0 ? engine_list(text) : NULL;
}

// Prints such values between spaces.
static void put_words(const char *values)
{
    for (const char *c = values; *c; c++)
        if (*c != ',') putchar(*c == '|' ? ' ' : *c);
}

// Whether an earlier row has the same option, of other commands.
static bool is_repeated(size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (strcmp(option_rows[i].name, option_rows[row].name) == 0) return true;
    return false;
}

// Prints text for single quotes; the characters in `special` get a backslash.
static void put_quoted(const char *text, const char *special)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\'') printf("'\\''");
        else if (strchr(special, *c)) printf("\\%c", *c);
        else putchar(*c);
    }
}

// A word that may be left out belongs to the option: --normalised=zero-mean.
static void bash_options(int command)
{
    printf("    %s) options='", command_rows[command].name);
    for (size_t i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_rows[i];
        if (!(row->commands & 1u << command)) continue;
        printf("--%s ", row->name);
        if (row->kind == OPTION_FLAG_OR_WORD) printf("--%s=%s ", row->name, row->argument);
    }
    printf("' ;;\n");
}

static void print_bash(void)
{
    printf("# bash completion for partita\n_partita() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= "
           "words=\n"
           "    COMPREPLY=()\n    if ((COMP_CWORD == 1)); then\n        mapfile -t COMPREPLY < "
           "<(compgen -W '");
    for (int c = 0; c < N_COMMANDS; c++) printf("%s ", command_rows[c].name);
    printf("--version --help' -- \"$word\")\n        return\n    fi\n    case $before in\n");
    for (size_t i = 0; i < n_option_rows; i++) {
        char text[WORDS_SIZE];
        const char *values = values_of(&option_rows[i], text);
        if (!values || option_value_is_optional(&option_rows[i]) || is_repeated(i)) continue;
        printf("    --%s) words='", option_rows[i].name);
        put_words(values);
        printf("' ;;\n");
    }
    printf("    esac\n    case ${COMP_WORDS[1]} in\n");
    for (int c = 0; c < N_COMMANDS; c++) bash_options(c);
    printf("    esac\n    if [[ $words ]]; then\n        mapfile -t COMPREPLY < <(compgen -W "
           "\"$words\" -- \"$word\")\n"
           "    elif [[ $word == -* ]]; then\n        mapfile -t COMPREPLY < <(compgen -W "
           "\"$options\" -- \"$word\")\n"
           "    else\n        compopt -o filenames\n        mapfile -t COMPREPLY < <(compgen -f -- "
           "\"$word\")\n    fi\n}\n"
           "complete -F _partita partita\n");
}

static void zsh_option(const struct option_row *row)
{
    const bool with_word = row->kind == OPTION_FLAG_OR_WORD;
    printf("            '--%s%s[", row->name, with_word ? "=-" : "");
    put_quoted(row->help, "[]:\\");
    printf("]");
    char text[WORDS_SIZE];
    const char *values = values_of(row, text);
    if (values) {
        printf("%s:%s:(", with_word ? ":" : "", row->name);
        put_words(values);
        printf(")");
    } else if (row->argument && !option_value_is_optional(row)) {
        printf(":%s:", row->argument);
    }
    printf("' \\\n");
}

static void print_zsh(void)
{
    printf("#compdef partita\n_partita() {\n    local -a commands\n    commands=(\n");
    for (int c = 0; c < N_COMMANDS; c++)
        printf("        '%s:%s'\n", command_rows[c].name, command_rows[c].summary);
    printf("    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n        "
           "return\n    fi\n"
           "    shift words\n    ((CURRENT--))\n    case $words[1] in\n");
    for (int c = 0; c < N_COMMANDS; c++) {
        printf("    %s)\n        _arguments \\\n", command_rows[c].name);
        for (size_t i = 0; i < n_option_rows; i++)
            if (option_rows[i].commands & 1u << c) zsh_option(&option_rows[i]);
        printf("            '*:file:_files' ;;\n");
    }
    printf("    esac\n}\n_partita \"$@\"\n");
}

static void fish_option(const struct option_row *row, int command)
{
    printf("complete -c partita -n '__fish_seen_subcommand_from %s' -l %s",
           command_rows[command].name, row->name);
    if (row->letter) printf(" -s %c", row->letter);
    if (row->argument && !option_value_is_optional(row)) printf(" -r");
    char text[WORDS_SIZE];
    const char *values = values_of(row, text);
    if (values) {
        printf(" -f -a '");
        put_words(values);
        printf("'");
    }
    printf(" -d '");
    put_quoted(row->help, "\\");
    printf("'\n");
}

static void print_fish(void)
{
    printf("# fish completion for partita\n");
    for (int c = 0; c < N_COMMANDS; c++)
        printf("complete -c partita -n __fish_use_subcommand -f -a %s -d '%s'\n",
               command_rows[c].name, command_rows[c].summary);
    for (int c = 0; c < N_COMMANDS; c++)
        for (size_t i = 0; i < n_option_rows; i++)
            if (option_rows[i].commands & 1u << c) fish_option(&option_rows[i], c);
}

void completion_print(enum shell shell)
{
    static void (*const prints[])(void) = {
        [SHELL_BASH] = print_bash, [SHELL_ZSH] = print_zsh, [SHELL_FISH] = print_fish};
    if (shell != SHELL_NONE) prints[shell]();
}
