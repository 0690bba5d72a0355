// SPDX-License-Identifier: MIT
// The models are read from a wisdom file, as a measured model is.

#include "support/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "support/test.h"

enum { MAX_TEXT = 1 << 20, KERNELS = 14, FFT_COSTS = 32 };

// Writes the line of one precision in the order of the file: fma, call, pair, copy, copy_far,
// fetch, kernels of layers, cmac_cached, cmac_far, product by distance, transforms.
static size_t costs_line(char *text, size_t capacity, const double product[3])
{
    size_t n = (size_t)snprintf(text, capacity, "costs 2e-11 5e-8 2e-11 1e-10 4e-10 1e-10");
    for (int i = 0; i < KERNELS; i++) n += (size_t)snprintf(text + n, capacity - n, " 1e-9");
    n += (size_t)snprintf(text + n, capacity - n, " 2e-10 5e-10");
    for (int i = 0; i < 9; i++)
        n += (size_t)snprintf(text + n, capacity - n, " %.6e", product[i % 3] * 1e-9);
    for (int i = 0; i < FFT_COSTS; i++) n += (size_t)snprintf(text + n, capacity - n, " 1e-9");
    return n + (size_t)snprintf(text + n, capacity - n, "\n");
}

// FNV-1a, as in the file.
static uint64_t checksum(const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

// Inserts the costs after the two lines with the format and the machine, and computes the checksum.
static void write_model(const char *path, const double product[3])
{
    char *from = malloc(MAX_TEXT), *to = malloc(MAX_TEXT);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    from[fread(from, 1, MAX_TEXT - 1, file)] = 0;
    fclose(file);
    const char *rest = strchr(strchr(from, '\n') + 1, '\n') + 1,
               *closing = strstr(rest, "checksum ");
    assert_non_null(closing);
    size_t n = (size_t)(rest - from);
    memcpy(to, from, n);
    for (int i = 0; i < 2; i++) n += costs_line(to + n, MAX_TEXT - n, product);
    memcpy(to + n, rest, (size_t)(closing - rest));
    n += (size_t)(closing - rest);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(to, 1, n, file), n);
    assert_true(fprintf(file, "checksum %016" PRIx64 "\n", checksum(to, n)) > 0);
    assert_int_equal(fclose(file), 0);
    free(from);
    free(to);
}

struct partita_wisdom *model_wisdom(const double product[3])
{
    struct partita_wisdom *wisdom;
    char path[] = "/tmp/partita-model-XXXXXX";
    const int made = mkstemp(path);
    assert_true(made >= 0);
    close(made);
    assert_ok(partita_wisdom_create(&wisdom));
    assert_ok(partita_wisdom_save(wisdom, path));
    write_model(path, product);
    assert_ok(partita_wisdom_load(wisdom, path));
    remove(path);
    return wisdom;
}
