// SPDX-License-Identifier: MIT
// Fuzz target: the parser of the commands that steer `partita live`. The first byte chooses a
// command, or none, whose name precedes the bytes.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "control/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct control_command command;
    struct fault fault;
    if (size == 0) return 0;
    int id = data[0] % (N_CONTROLS + 1);
    const char *name = id < N_CONTROLS ? control_rows[id].name : "";
    size_t n = strlen(name) + (id < N_CONTROLS);
    char *line = malloc(n + size); // exactly as long, so that a sanitizer sees reads beyond
    if (!line) return 0;
    memcpy(line, name, strlen(name));
    if (n) line[n - 1] = ' ';
    memcpy(line + n, data + 1, size - 1);
    line[n + size - 1] = 0;
    if (control_parse(&command, line, &fault) && command.id >= N_CONTROLS) abort();
    free(line);
    return 0;
}
