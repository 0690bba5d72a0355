// SPDX-License-Identifier: MIT
// How much later a second recording of one voice hears it, both raw f32 of one rate: the lag at
// which they correlate best, between samples by the parabola through the three values at the top.
// Only the lags asked for are computed, in memory of a few spectra, however long the recordings
// are.
//
//     find_delay first.f32 second.f32 MOST
#include <math.h>
#include <partita/partita.h>
#include <stdio.h>
#include <stdlib.h>

static float *load(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return NULL;
    }
    size_t n = 0, room = 1 << 16;
    float *x = malloc(room * sizeof *x);
    while (x) {
        n += fread(x + n, sizeof *x, room - n, file);
        if (n < room) break;
        room *= 2;
        x = realloc(x, room * sizeof *x);
    }
    fclose(file);
    *ret_n = n;
    return x;
}

// Prints the delay; false without memory.
static bool find(const float *second, size_t n, const float *first, size_t m, long most)
{
    const struct partita_slice lags = {.first = -most, .last = most + 1};
    float *match = malloc((2 * (size_t)most + 1) * sizeof *match);
    if (!match || partita_correlate(PARTITA_F32, match, second, n, first, m, &lags)) {
        free(match);
        return false;
    }
    long best = 0;
    for (long i = 1; i <= 2 * most; i++)
        if (match[i] > match[best]) best = i;
    double delay = (double)(best - most);
    if (best > 0 && best < 2 * most) {
        const double before = match[best - 1], top = match[best], behind = match[best + 1];
        delay += 0.5 * (before - behind) / (before - 2 * top + behind);
    }
    printf("delay %.2f samples\n", delay);
    free(match);
    return true;
}

int main(int argc, char **argv)
{
    const long most = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    if (most <= 0) {
        fprintf(stderr, "usage: find_delay FIRST SECOND MOST, raw f32; MOST: samples either way\n");
        return 2;
    }
    size_t n = 0, m = 0;
    float *first = load(argv[1], &m), *second = first ? load(argv[2], &n) : NULL;
    int status = 1;
    if (second && (!m || !n)) fprintf(stderr, "find_delay: %s holds no samples\n", argv[m ? 2 : 1]);
    else if (second && find(second, n, first, m, most)) status = 0;
    free(first);
    free(second);
    return status;
}
