// SPDX-License-Identifier: MIT
// The program `partita`: parses the arguments and calls the subcommand.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/json_values.h"
#include "base/memory.h"
#include "commands.h"
#include "interrupt.h"
#include "io/bytes/temp.h"
#include "report.h"

#define MAIN_OF(name, word) word##_main,
static command_fn *const mains[N_COMMANDS] = {EACH_COMMAND(MAIN_OF)};

// --plot, before work is done in vain.
static bool check_picture(const struct settings *s, struct fault *fault)
{
    const char *const end = s->plot ? strrchr(s->plot, '.') : NULL;
    if (!s->plot) return true;
#ifndef HAVE_CAIRO
    return fault_set(fault,
                     "--plot %s: this program was built without cairo; install "
                     "libcairo2-dev and build with -Dplot=enabled",
                     s->plot);
#endif
    if ((end && strcasecmp(end, ".png") == 0) || temp_is_special(s->plot))
        return temp_differs(s->plot, (const char *const *)s->files, s->n_operands, fault);
    return fault_set(fault, "--plot %s: the picture is a PNG; use a name that ends with .png",
                     s->plot);
}

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
    else if (!check_picture(&settings, &fault)) status = EXIT_FAILED;
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
