// SPDX-License-Identifier: MIT
// Finds the delay of a second recording of the same voice, both raw f32 of one rate: the lag of the
// largest correlation, interpolated by a parabola through the three values around the maximum. Only
// the requested lags are computed, with memory for a few spectra, for recordings of any length.
//
//     find_delay first.f32 second.f32 MAX_LAG
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
    size_t n = 0, capacity = 1 << 16;
    float *x = malloc(capacity * sizeof *x);
    while (x) {
        n += fread(x + n, sizeof *x, capacity - n, file);
        if (n < capacity) break;
        capacity *= 2;
        x = realloc(x, capacity * sizeof *x);
    }
    fclose(file);
    *ret_n = n;
    return x;
}

// Prints the delay. False: out of memory.
static bool find(const float *second, size_t n, const float *first, size_t m, long max_lag)
{
    const struct partita_slice lags = {
        .mode = PARTITA_RANGE, .first = -max_lag, .last = max_lag + 1};
    float *match = malloc((2 * (size_t)max_lag + 1) * sizeof *match);
    if (!match || partita_correlate(PARTITA_F32, match, second, n, first, m, &lags, NULL)) {
        free(match);
        return false;
    }
    long best = 0;
    for (long i = 1; i <= 2 * max_lag; i++)
        if (match[i] > match[best]) best = i;
    double delay = (double)(best - max_lag);
    if (best > 0 && best < 2 * max_lag) {
        const double before = match[best - 1], top = match[best], after = match[best + 1];
        delay += 0.5 * (before - after) / (before - 2 * top + after);
    }
    printf("delay %.2f samples\n", delay);
    free(match);
    return true;
}

int main(int argc, char **argv)
{
    const long max_lag = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    if (max_lag <= 0) {
        fprintf(stderr, "usage: find_delay FIRST SECOND MAX_LAG, raw f32; MAX_LAG: in samples, in "
                        "both directions\n");
        return 2;
    }
    size_t n = 0, m = 0;
    float *first = load(argv[1], &m), *second = first ? load(argv[2], &n) : NULL;
    int status = 1;
    if (second && (!m || !n)) fprintf(stderr, "find_delay: %s has no samples\n", argv[m ? 2 : 1]);
    else if (second && find(second, n, first, m, max_lag)) status = 0;
    free(first);
    free(second);
    return status;
}
