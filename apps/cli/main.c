// SPDX-License-Identifier: MIT
// The program `partita`: parses the arguments and calls the subcommand.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_values.h"
#include "base/memory.h"
#include "commands.h"
#include "interrupt.h"
#include "report.h"

#define MAIN_OF(name, word) word##_main,
static command_fn *const mains[N_COMMANDS] = {EACH_COMMAND(MAIN_OF)};

static int run_command(enum command command, int argc, char **argv)
{
    struct settings settings;
    struct fault fault = {.text = ""};
    int status = EXIT_DONE;
    if (!options_parse(&settings, command, argc, argv, &fault))
        return report_end(command, &fault, EXIT_USAGE);
    memory_limit((size_t)settings.max_memory); // 0: half of what there is
    if (command != COMMAND_LIVE) { // live goes on without its status line, and fades out
        json_end_without_memory();
        interrupt_install();
    }
    if (settings.help) help_print(command);
    else status = mains[command](&settings, &fault);
    return report_end(command, &fault, status);
}

// A file that is opened while a standard descriptor is closed would become that one, and messages
// or samples would go there. What stands in its place fails as a closed one does.
static bool occupy_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    enum command command;
    if (!occupy_standard_descriptors()) return EXIT_FAILED;
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("partita %s\n", partita_version());
        return report_end(COMMAND_HELP, NULL, EXIT_DONE);
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        help_print_overview();
        return report_end(COMMAND_HELP, NULL, EXIT_DONE);
    }
    struct fault fault;
    if (command_find(word, &command, &fault)) return run_command(command, argc - 1, argv + 1);
    fprintf(stderr, "partita: %s\n", *word ? fault.text : "no command given");
    for (int c = 0; c < N_COMMANDS; c++)
        fprintf(stderr, "%s%s", c ? "|" : "usage: partita ", command_rows[c].name);
    fprintf(stderr, " ...   (partita help)\n");
    return EXIT_USAGE;
}
