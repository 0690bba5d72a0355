// SPDX-License-Identifier: MIT
// Fuzz target: what the program makes of a SOFA file that libmysofa has read. libmysofa is replaced
// by functions here, which return dimensions and arrays of any sizes, since it does not compare
// these.
#include <math.h>
#include <mysofa.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fuzz/input.h"
#include "io/formats/sofa.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *bytes; // of the input
static size_t n_bytes;
static int nearest;

static struct MYSOFA_ARRAY take_array(struct input *input, unsigned usual)
{
    struct MYSOFA_ARRAY array = {.elements = usual};
    const unsigned other = (unsigned)input_take(input, 1);
    if (other > 200) array.elements = other - 200;
    array.values = malloc((array.elements + 1) * sizeof *array.values); // one that is not read
    if (!array.values) abort();
    for (unsigned i = 0; i < array.elements; i++) {
        static const float odd[] = {NAN, INFINITY, -INFINITY, -3, 1e30f, 0.5f};
        const unsigned value = (unsigned)input_take(input, 1);
        array.values[i] = value < 6 ? odd[value] : (float)value;
    }
    float *exact = realloc(array.values, array.elements * sizeof *array.values);
    if (array.elements) array.values = exact;
    return array;
}

static unsigned take_dimension(struct input *input, unsigned usual)
{
    const unsigned value = (unsigned)input_take(input, 1);
    return value > 250 ? (unsigned)input_take(input, 4) : value > 200 ? value - 200 : usual;
}

static struct MYSOFA_HRTF *read_file(int *error)
{
    struct input input = {bytes, n_bytes};
    struct MYSOFA_HRTF *hrtf = calloc(1, sizeof *hrtf);
    if (!hrtf) abort();
    const unsigned pairs = 1 + (unsigned)input_take(&input, 1) % 8,
                   taps = 1 + (unsigned)input_take(&input, 1) % 16;
    hrtf->M = take_dimension(&input, pairs);
    hrtf->N = take_dimension(&input, taps);
    hrtf->R = take_dimension(&input, 2);
    hrtf->C = take_dimension(&input, 3);
    hrtf->SourcePosition = take_array(&input, 3 * pairs);
    hrtf->DataIR = take_array(&input, 2 * pairs * taps);
    hrtf->DataSamplingRate = take_array(&input, 1);
    hrtf->DataDelay = take_array(&input, 2);
    nearest = hrtf->M ? (int)(input_take(&input, 1) % hrtf->M) : -1;
    *error = MYSOFA_OK;
    return hrtf;
}

struct MYSOFA_HRTF *mysofa_load(const char *path, int *error)
{
    (void)path;
    return read_file(error);
}

void mysofa_free(struct MYSOFA_HRTF *hrtf)
{
    free(hrtf->SourcePosition.values);
    free(hrtf->DataIR.values);
    free(hrtf->DataSamplingRate.values);
    free(hrtf->DataDelay.values);
    free(hrtf);
}

struct MYSOFA_EASY *mysofa_open_no_norm(const char *path, float rate, int *n, int *error)
{
    struct MYSOFA_EASY *file = calloc(1, sizeof *file);
    (void)path;
    (void)rate;
    if (!file) abort();
    file->hrtf = read_file(error);
    *n = (int)file->hrtf->N;
    return file;
}

void mysofa_close(struct MYSOFA_EASY *file)
{
    mysofa_free(file->hrtf);
    free(file);
}

int mysofa_lookup(struct MYSOFA_LOOKUP *lookup, float *at)
{
    (void)lookup;
    return at[0] < 0 ? -1 : nearest; // -1: no memory
}

void mysofa_s2c(float values[3])
{
    (void)values;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sofa *sofa;
    struct fault fault;
    bytes = data;
    n_bytes = size;
    sofa_rate("fuzz.sofa", &fault);
    if (!sofa_open(&sofa, "fuzz.sofa", 48000, &fault)) return 0;
    for (int k = 0, pair; k < 4; k++) {
        const struct sofa_direction direction = {.azimuth = 30 * k - 30, .elevation = 0};
        memory_free(sofa_pair(sofa, "fuzz.sofa", &direction, &pair, &fault));
    }
    sofa_close(sofa);
    return 0;
}
