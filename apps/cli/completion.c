// SPDX-License-Identifier: MIT
// Completions for bash, zsh and fish: commands, options, the values of choices, engines and sample
// types, and else file names.
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "engine_name.h"
#include "io/samples/encoding.h"

// Prints the values of an option between spaces, after `before` and before `after`; nothing, and
// false, if any text may be one. They are as in a list or "full|same|valid".
static bool put_values(const struct option_row *row, const char *before, const char *after)
{
    char text[NAME_LIST_SIZE];
    const char *values = strcmp(row->name, "engine") == 0 ? engine_list(text) : NULL;
    if (row->kind == OPTION_CHOICE || row->kind == OPTION_FLAG_OR_WORD) values = row->argument;
    if (row->kind == OPTION_SAMPLE_TYPE) values = encoding_list(text);
    if (!values) return false;
    printf("%s", before);
    for (const char *c = values; *c; c++)
        if (strncmp(c, ", ", 2) != 0) putchar(*c == '|' ? ' ' : *c);
    printf("%s", after);
    return true;
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
static void bash_option(const struct option_row *row, const char *command)
{
    char before[64];
    (void)command;
    printf("        options+=' --%s'\n", row->name);
    snprintf(before, sizeof before, "        [[ $before == --%s ]] && words='", row->name);
    if (row->kind == OPTION_FLAG_OR_WORD)
        printf("        options+=' --%s=%s'\n", row->name, row->argument);
    else put_values(row, before, "'\n");
}

static void zsh_option(const struct option_row *row, const char *command)
{
    const bool with_word = row->kind == OPTION_FLAG_OR_WORD;
    char before[64];
    (void)command;
    printf("            '--%s%s[", row->name, with_word ? "=-" : "");
    put_quoted(row->help, "[]:\\");
    printf("]");
    snprintf(before, sizeof before, "%s:%s:(", with_word ? ":" : "", row->name);
    if (!put_values(row, before, ")") && row->argument && !option_value_is_optional(row))
        printf(":%s:", row->argument);
    printf("' \\\n");
}

static void fish_option(const struct option_row *row, const char *command)
{
    printf("complete -c partita -n '__fish_seen_subcommand_from %s' -l %s", command, row->name);
    if (row->letter) printf(" -s %c", row->letter);
    if (row->argument && !option_value_is_optional(row)) printf(" -r");
    put_values(row, " -f -a '", "'");
    printf(" -d '");
    put_quoted(row->help, "\\");
    printf("'\n");
}

// A script: between begin, middle and end there are all commands, as `command` with name and
// summary; then for each its options, between open, with its name, and close.
static const struct script {
    const char *begin, *command, *middle, *open, *close, *end;
    void (*option)(const struct option_row *row, const char *command);
} scripts[] = {
    [SHELL_BASH] = {"# bash completion for partita\n_partita() {\n"
                    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
                    "options= words=\n"
                    "    COMPREPLY=()\n    if ((COMP_CWORD == 1)); then\n        mapfile -t "
                    "COMPREPLY < <(compgen -W '",
                    "%s ",
                    "--version --help' -- \"$word\")\n        return\n    fi\n"
                    "    case ${COMP_WORDS[1]} in\n",
                    "    %s)\n", "        ;;\n",
                    "    esac\n    if [[ $words ]]; then\n        mapfile -t COMPREPLY < <(compgen "
                    "-W \"$words\" -- \"$word\")\n"
                    "    elif [[ $word == -* ]]; then\n        mapfile -t COMPREPLY < <(compgen -W "
                    "\"$options\" -- \"$word\")\n"
                    "    else\n        compopt -o filenames\n        mapfile -t COMPREPLY < "
                    "<(compgen -f -- \"$word\")\n    fi\n}\n"
                    "complete -F _partita partita\n",
                    bash_option},
    [SHELL_ZSH] = {"#compdef partita\n_partita() {\n    local -a commands\n    commands=(\n",
                   "        '%s:%s'\n",
                   "    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n"
                   "        return\n    fi\n    shift words\n    ((CURRENT--))\n"
                   "    case $words[1] in\n",
                   "    %s)\n        _arguments \\\n", "            '*:file:_files' ;;\n",
                   "    esac\n}\n_partita \"$@\"\n", zsh_option},
    [SHELL_FISH] = {"# fish completion for partita\n",
                    "complete -c partita -n __fish_use_subcommand -f -a %s -d '%s'\n", "", "", "",
                    "", fish_option},
};

void completion_print(enum shell shell)
{
    const struct script *s = &scripts[shell];
    printf("%s", s->begin);
    for (int c = 0; c < N_COMMANDS; c++)
        printf(s->command, command_rows[c].name, command_rows[c].summary);
    printf("%s", s->middle);
    for (int c = 0; c < N_COMMANDS; c++) {
        printf(s->open, command_rows[c].name);
        for (size_t i = 0; i < n_option_rows; i++)
            if (option_rows[i].commands & 1u << c) s->option(&option_rows[i], command_rows[c].name);
        printf("%s", s->close);
    }
    printf("%s", s->end);
}
