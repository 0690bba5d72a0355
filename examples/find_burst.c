// SPDX-License-Identifier: MIT
// Finds a known burst in a noisy capture, both raw cf32: the lag at which the normalised
// correlation is largest. It does not depend on gain or phase, nor on noise of higher level
// elsewhere.
//
//     find_burst burst.cf32 capture.cf32
#include <complex.h>
#include <partita/partita.h>
#include <stdio.h>
#include <stdlib.h>

static float complex *load(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return NULL;
    }
    size_t n = 0, capacity = 1 << 16;
    float complex *x = malloc(capacity * sizeof *x);
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

// Prints the position of the burst. False: out of memory.
static bool find(const float complex *capture, size_t n, const float complex *burst, size_t m)
{
    const struct partita_slice whole_bursts = {.mode = PARTITA_VALID};
    float complex *match = malloc((n - m + 1) * sizeof *match);
    size_t best = 0;
    if (!match || partita_correlate_normalised(PARTITA_CF32, match, capture, n, burst, m,
                                               &whole_bursts, NULL)) {
        free(match);
        return false;
    }
    for (size_t i = 1; i < n - m + 1; i++)
        if (cabsf(match[i]) > cabsf(match[best])) best = i;
    printf("sample %zu, match %.3f, phase %.3f\n", best, (double)cabsf(match[best]),
           (double)cargf(match[best]));
    free(match);
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(
            stderr,
            "usage: find_burst BURST CAPTURE, raw cf32, the burst no longer than the capture\n");
        return 2;
    }
    size_t n = 0, m = 0;
    float complex *burst = load(argv[1], &m), *capture = burst ? load(argv[2], &n) : NULL;
    int status = 1;
    if (capture && (m < 1 || n < m))
        fprintf(stderr,
                "find_burst: %s has %zu samples, %s %zu; the burst must not be longer than the "
                "capture\n",
                argv[1], m, argv[2], n);
    else if (capture && find(capture, n, burst, m)) status = 0;
    free(capture);
    free(burst);
    return status;
}
