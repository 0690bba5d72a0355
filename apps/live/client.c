// SPDX-License-Identifier: MIT
// `partita control`: sends a command to the socket of a running `partita live` and prints the
// answer. It needs no audio library and exists in every build.
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/ir_name.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "control/socket.h"
#include "control/table.h"

static void explain_connection(const char *path, int error, struct fault *fault)
{
    struct stat st;
    const bool exists = stat(path, &st) == 0;
    if (exists && !S_ISSOCK(st.st_mode))
        fault_set(
            fault,
            "%s: is not a socket; the socket of `partita live --control PATH` is named before "
            "the command",
            path);
    else if (exists && error == ECONNREFUSED)
        fault_set(fault,
                  "%s: cannot connect: the program that created this socket has ended; start it "
                  "again with --control %s",
                  path, path);
    else
        fault_set(fault, "%s: cannot connect: %s; partita live --control %s creates this socket",
                  path, strerror(error), path);
}

// Connects and sends the line. Returns the connection for reading, or NULL.
static FILE *send_to(const char *path, const char *line, struct fault *fault)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof address.sun_path) {
        fault_set(fault, "%s: must have 1 to %zu characters", path, sizeof address.sun_path - 1);
        return NULL;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FILE *file = NULL;
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        file = fdopen(fd, "r");
    // If the other side refuses the connection, its reason is there to be read.
    if (file) (void)!send(fd, line, strlen(line), MSG_NOSIGNAL);
    if (file) return file;
    explain_connection(path, errno, fault);
    if (fd >= 0) close(fd);
    return NULL;
}

// Each file of a chain. Its name is relative to the folder of this process, not to that of the
// other one.
static void put_files(FILE *line, const char *ir, const char *folder)
{
    enum ir_layout layout;
    for (size_t n; *ir; ir += n + (ir[n] == '+')) {
        n = ir_name_first(ir);
        const char *path = ir_name_path(ir, &layout);
        fprintf(line, "%s%s%s%.*s%s", ir_prefixes[layout], *path == '/' ? "" : folder,
                *path == '/' ? "" : "/", (int)(ir + n - path), path, ir[n] == '+' ? "+" : "");
    }
}

// The words with spaces between them, as the line in `text`, which is empty.
static bool compose_line(char text[CONTROL_LINE_BYTES], char *const *words, int n,
                         struct fault *fault)
{
    const bool loads = strcmp(words[0], control_rows[CONTROL_LOAD].name) == 0;
    char folder[PATH_MAX] = "";
    if (loads && !getcwd(folder, sizeof folder))
        return fault_set(fault, "the folder of this process: %s", strerror(errno));
    FILE *line = fmemopen(text, CONTROL_LINE_BYTES - 1, "w");
    if (!line) return fault_set(fault, "out of memory");
    for (int i = 0; i < n; i++) {
        if (loads && i == 1) put_files(line, words[i], folder);
        else fputs(words[i], line);
        fputc(i < n - 1 ? ' ' : '\n', line);
    }
    const bool fits = fflush(line) == 0 && !ferror(line);
    fclose(line);
    if (!fits)
        return fault_usage(fault, "the command is longer than %d bytes", CONTROL_LINE_BYTES - 2);
    return !strchr(text, '\n')[1] || fault_usage(fault, "the command must be one line");
}

// Prints lines up to the answer, which says whether it is "ok"; after `subscribe` up to the end.
// Lines before the answer are the status that an earlier `subscribe` asked for.
static int print_answer(FILE *file, const char *path, bool follow, struct fault *fault)
{
    char *line = NULL;
    size_t size = 0;
    bool ok = false, more = true;
    fault_set(fault, "%s: the connection was closed without an answer", path);
    while (more && getline(&line, &size, file) > 0) {
        json_error_t error;
        json_t *j = *fault->text ? json_loads(line, 0, &error) : NULL,
               *answer = json_object_get(j, "ok");
        if (*fault->text && !j) {
            fault_set(fault, "an answer cannot be read: %s", error.text);
            break;
        }
        more = fputs(line, stdout) >= 0 && fflush(stdout) == 0;
        if (answer || !more) *fault->text = 0; // report_end says what could not be printed
        ok = answer ? json_is_true(answer) : ok;
        more = more && (*fault->text || (ok && follow));
        json_decref(j);
    }
    free(line);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

int control_main(const struct settings *settings, struct fault *fault)
{
    const char *path = settings->files[0];
    char **words = settings->files + 1;
    char line[CONTROL_LINE_BYTES] = "";
    const bool good = compose_line(line, words, settings->n_operands - 1, fault);
    FILE *file = good ? send_to(path, line, fault) : NULL;
    if (!file) return EXIT_FAILED;
    bool follow = strcmp(words[0], control_rows[CONTROL_SUBSCRIBE].name) == 0 &&
                  settings->n_operands > 2 && strcmp(words[1], "off") != 0;
    int status = print_answer(file, path, follow, fault);
    fclose(file);
    return status;
}
