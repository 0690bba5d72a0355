// SPDX-License-Identifier: MIT
// For fuzz targets: numbers taken from bytes, and files for what is read by name.
#ifndef PARTITA_FUZZ_INPUT_H
#define PARTITA_FUZZ_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct input {
    const uint8_t *data;
    size_t left;
};

// A number of some bytes; those that are missing are left out.
static inline uint64_t input_take(struct input *input, size_t bytes)
{
    uint64_t value = 0;
    for (; bytes && input->left; bytes--, input->left--) value = value << 8 | *input->data++;
    return value;
}

enum { FUZZ_PATH_BYTES = 100 };

// A folder of this process, which is removed at its end if it is empty then.
static inline const char *fuzz_folder(void);
static char fuzz_folder_name[FUZZ_PATH_BYTES / 2];

static inline void fuzz_folder_remove(void)
{
    rmdir(fuzz_folder_name);
}

static inline const char *fuzz_folder(void)
{
    if (*fuzz_folder_name) return fuzz_folder_name;
    snprintf(fuzz_folder_name, sizeof fuzz_folder_name, "/tmp/partita-fuzz-XXXXXX");
    if (!mkdtemp(fuzz_folder_name)) abort();
    atexit(fuzz_folder_remove);
    return fuzz_folder_name;
}

// Writes a file into the folder; `ret_path` is its name. The caller removes it.
static inline void fuzz_write(const char *name, const void *bytes, size_t size,
                              char ret_path[FUZZ_PATH_BYTES])
{
    snprintf(ret_path, FUZZ_PATH_BYTES, "%s/%s", fuzz_folder(), name);
    FILE *file = fopen(ret_path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file)) abort();
}

#endif
