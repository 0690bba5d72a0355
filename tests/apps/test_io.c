// SPDX-License-Identifier: MIT
// Unit tests of apps/io: names of encodings, sample conversion, headers beyond 4 GiB, sources and
// sinks, resampling. The Python tests of this folder test whole files of all formats.
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/audio.h"
#include "io/formats/formats.h"
#include "io/frames.h"
#include "io/samples/tuner.h"
#include "support/test.h"

static void encoding_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *canonical;
        size_t size;
    } rows[] = {
        {"cf32_le", "cf32_le", 8},   {"rf64_be", "rf64_be", 8}, {"f32le", "rf32_le", 4},
        {"s16be", "ri16_be", 2},     {"u8", "ru8", 1},          {"CS16", "ci16_le", 4},
        {"cu8", "cu8", 2},           {"ri24", "ri24_le", 3},    {"i8_be", "ri8", 1},
        {"ci32_be", "ci32_be", 8},   {"cfile", "cf32_le", 8},   {"fc64be", "cf64_be", 16},
        {"complex64", "cf32_le", 8}, {"SC16", "ci16_le", 4},
    };
    struct encoding e;
    char name[ENCODING_NAME_SIZE];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(encoding_parse(rows[i].name, &e));
        assert_string_equal(encoding_name(e, name), rows[i].canonical);
        assert_int_equal(encoding_size(e), rows[i].size);
    }
    static const char *const wrong[] = {"",       "c",     "f",   "f16",   "i64",           "f32_",
                                        "f32_xe", "ccf32", "u8 ", "float", "12345678901234"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(encoding_parse(wrong[i], &e));
}

static void nearest_names(void **state)
{
    static const char *const rows[][2] = {
        {"cf23", "cf32"},
        {"CX32", "cf32"},
        {"complex46", "complex64"},
        {"int12", "int16"},
        {"f23", "f32"},
        {"comp", "complex64"},
        {"wet.wav", NULL},
        {"", NULL},
        {"x", NULL},
        {"f32f32f32f32f32f32f32f32f32f32f32f32", NULL},
    };
    (void)state;
    char text[NEAREST_HINT_SIZE], list[NAME_LIST_SIZE];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nearest nearest = nearest_to(rows[i][0]);
        encoding_try_names(&nearest);
        if (!rows[i][1]) assert_null(nearest.known);
        else assert_string_equal(nearest.known ? nearest.known : "none", rows[i][1]);
        assert_int_equal(*nearest_hint(&nearest, "--", text) != 0, rows[i][1] != NULL);
    }
    struct nearest swapped = nearest_to("naem");
    nearest_try(&swapped, "name"); // characters exchanged: one edit
    nearest_try(&swapped, "nae");  // an earlier word is kept if another is as near
    assert_string_equal(nearest_hint(&swapped, "--", text), " (did you mean --name?)");
    assert_string_equal(strrchr(encoding_list(list), ' '), " cu32"); // none was cut off
}

// The factors of samples from `first` on against phases in whole numbers, hz * n modulo the rate.
static void compare_factors(int64_t hz, uint32_t rate, uint64_t first)
{
    enum { N = 3000 };
    struct tuner tuner;
    double x[N][2];
    tuner_begin(&tuner, (double)hz, rate);
    for (size_t i = 0; i < N; i++) x[i][0] = 1, x[i][1] = 0;
    tuner_shift(&tuner, &(struct tuner_frames){PARTITA_CF64, x, N, 1}, first);
    for (size_t i = 0; i < N; i++) {
        const __int128 phase = (__int128)hz * (__int128)(first + i) % rate;
        const long double angle = -2 * acosl(-1) * (long double)phase / rate;
        const double error =
            hypot((double)(x[i][0] - cosl(angle)), (double)(x[i][1] - sinl(angle)));
        if (error > 0x1p-48) fail_msg("%g at sample %zu + %zu", error, (size_t)first, i);
    }
}

static void tuner_stays_exact(void **state)
{
    static const uint64_t firsts[] = {0, 1, 1000000007, (uint64_t)1 << 50};
    (void)state;
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        compare_factors(250000, 1000000, firsts[i]);
        compare_factors(-123457, 2400000, firsts[i]);
        compare_factors(1, 4294967295u, firsts[i]);
        compare_factors(2147483647, 4294967295u, firsts[i]);
    }
}

// Two channels of either precision, shifted at once and in pieces, have the same bits.
static void tuner_does_not_depend_on_pieces(void **state)
{
    enum { N = 5000 };
    static double whole[N * 4], pieces[N * 4];
    static const enum partita_type types[] = {PARTITA_CF32, PARTITA_CF64};
    struct tuner tuner;
    (void)state;
    tuner_begin(&tuner, 1234.5, 48000);
    for (size_t t = 0; t < 2; t++) {
        const size_t bytes = 2 * partita_type_size(types[t]);
        for (size_t i = 0; i < N * 4; i++) {
            if (types[t] == PARTITA_CF64) whole[i] = sin((double)i);
            else ((float *)whole)[i] = (float)sin((double)i);
        }
        memcpy(pieces, whole, sizeof whole);
        tuner_shift(&tuner, &(struct tuner_frames){types[t], whole, N, 2}, 999);
        for (size_t at = 0, n = 1; at < N; at += n, n = n * 3 % 1777 + 1) {
            if (n > N - at) n = N - at;
            const struct tuner_frames part = {types[t], (char *)pieces + at * bytes, n, 2};
            tuner_shift(&tuner, &part, 999 + at);
        }
        assert_memory_equal(whole, pieces, N * bytes);
    }
}

// All integers of 8 and 16 bits, and the extremes of wider ones and their neighbours, converted to
// double and back.
static void integers_round_trip(void **state)
{
    (void)state;
    for (unsigned bytes = 1; bytes <= 4; bytes++)
        for (int variant = 0; variant < 4; variant++) {
            struct encoding e = {.kind = variant & 1 ? ENCODING_UNSIGNED : ENCODING_SIGNED,
                                 .bytes = bytes,
                                 .big_endian = bytes > 1 && variant & 2};
            for (int64_t i = 0; i < 65536; i++) {
                uint32_t bits = (uint32_t)(bytes <= 2 ? i : i * 65537 + (i & 1));
                unsigned char in[4] = {0}, copy[4], out[4] = {0};
                memcpy(in, &bits, bytes);
                memcpy(copy, in, 4);
                double value;
                struct sample_counts counts = {0};
                samples_decode_f64(&value, copy, 1, e);
                assert_true(value >= -1 && value < 1);
                samples_encode_f64(out, &value, 1, e, &counts);
                assert_memory_equal(in, out, bytes);
                assert_int_equal(counts.clipped + counts.nonfinite, 0);
            }
        }
}

// Lengths around the chunk size, so that every loop and its remainder run.
static void conversion_equals_single_samples(void **state)
{
    (void)state;
    enum { N = 2500, IN_RANGE = 1100 };
    struct random random = random_start("conversion");
    static float x[N];
    static unsigned char all[4 * N], one[4];
    random_samples(&random, PARTITA_F32, x, N);
    for (size_t i = 0; i < N; i += 97) x[i] *= 3;
    for (size_t i = 0; i < IN_RANGE; i++) x[i] *= 0.25f;
    x[1500] = NAN;
    x[2100] = -INFINITY;
    for (unsigned bytes = 1; bytes <= 4; bytes++) {
        struct encoding e = {.kind = ENCODING_SIGNED, .bytes = bytes};
        struct sample_counts all_counts = {0}, single = {0};
        samples_encode_f32(all, x, N, e, &all_counts);
        for (size_t i = 0; i < N; i++) {
            samples_encode_f32(one, x + i, 1, e, &single);
            assert_memory_equal(all + i * bytes, one, bytes);
        }
        for (size_t i = 0; bytes == 2 && i < IN_RANGE; i++)
            assert_int_equal((int16_t)(all[2 * i] | all[2 * i + 1] << 8), lrintf(x[i] * 32768));
        assert_int_equal(all_counts.clipped, single.clipped);
        assert_int_equal(all_counts.nonfinite, 2);
        assert_true(all_counts.clipped > 1);
    }
}

static void clipping_limits(void **state)
{
    (void)state;
    // Values in units of 1/32768, their 16-bit integers, and whether they are counted as clipped.
    static const struct {
        double in;
        int16_t out;
        uint64_t clipped;
    } rows[] = {{32767, 32767, 0},     {32767.4, 32767, 0},   {32767.6, 32767, 1},
                {32768, 32767, 1},     {1e30, 32767, 1},      {-32768, -32768, 0},
                {-32768.4, -32768, 0}, {-32768.6, -32768, 1}, {-1e30, -32768, 1},
                {0.5, 0, 0},           {1.5, 2, 0},           {-0.5, 0, 0},
                {-2.5, -2, 0}};
    struct encoding e = {.kind = ENCODING_SIGNED, .bytes = 2};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sample_counts counts = {0};
        double x = rows[i].in / 32768;
        int16_t y;
        samples_encode_f64((unsigned char *)&y, &x, 1, e, &counts);
        assert_int_equal(y, rows[i].out);
        assert_int_equal(counts.clipped, rows[i].clipped);
    }
}

static void nonfinite_values(void **state)
{
    (void)state;
    float x[5] = {NAN, INFINITY, -INFINITY, FLT_MAX, -1};
    int16_t y[5];
    struct sample_counts counts = {0};
    samples_encode_f32((unsigned char *)y, x, 5,
                       (struct encoding){.kind = ENCODING_SIGNED, .bytes = 2}, &counts);
    assert_int_equal(y[0], 0);
    assert_int_equal(y[1], 32767);
    assert_int_equal(y[2], -32768);
    assert_int_equal(counts.nonfinite, 3);
    double wide[2] = {1e300, 1};
    float narrow[2];
    counts = (struct sample_counts){0};
    samples_encode_f64((unsigned char *)narrow, wide, 2, (struct encoding){.bytes = 4}, &counts);
    assert_int_equal(counts.nonfinite, 1);
    assert_int_equal(samples_zero_nonfinite_f32(x, 5), 3);
    assert_true(x[0] == 0 && x[1] == 0 && x[2] == 0 && x[3] == FLT_MAX && x[4] == -1);
}

static int scratch_file(char path[64])
{
    strcpy(path, "/tmp/partita-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

static uint64_t number_at(int fd, off_t at, size_t bytes)
{
    uint64_t value = 0;
    assert_int_equal(pread(fd, &value, bytes, at), bytes);
    return value;
}

// Writes the header of a file of `frames` frames and parses it.
static void finish_wav(uint64_t frames, const char *magic)
{
    char path[64];
    int fd = scratch_file(path);
    struct fault fault;
    struct audio_writer w = {
        .info = {.encoding = {.kind = ENCODING_SIGNED, .bytes = 2}, .channels = 2, .rate = 48000}};
    sink_from_fd(&w.sink, fd, "test.wav");
    assert_true(wav_begin(&w, &fault));
    uint64_t header = w.sink.position;
    assert_true(sink_seek(&w.sink, header + 4 * frames - 4) && sink_write(&w.sink, "last", 4));
    w.frames = frames;
    assert_true(wav_end(&w, &fault));

    char found[5] = {0};
    assert_int_equal(pread(fd, found, 4, 0), 4);
    assert_string_equal(found, magic);
    struct source source = {
        .name = "test.wav", .fd = fd, .wake_fd = -1, .seekable = true, .size = header + 4 * frames};
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    struct audio_info info;
    struct tags tags = {0};
    assert_true(wav_parse(&source, 2, &info, &tags, &fault));
    assert_int_equal(info.frames, frames);
    assert_int_equal(info.offset, header);
    uint64_t riff = strcmp(magic, "RIFF") == 0 ? number_at(fd, 4, 4) : number_at(fd, 20, 8);
    assert_int_equal(riff, header - 8 + 4 * frames);
    close(fd);
}

static void wav_grows_into_rf64(void **state)
{
    (void)state;
    finish_wav(10, "RIFF");
    finish_wav((UINT32_MAX - 100) / 4, "RIFF");
    finish_wav((uint64_t)UINT32_MAX / 4 + 1, "RF64");
    finish_wav((uint64_t)3 << 30, "RF64");
}

static void npy_header_fits_any_shape(void **state)
{
    (void)state;
    char path[64];
    struct fault fault;
    int fd = scratch_file(path);
    struct audio_writer w = {.info = {.encoding = {.bytes = 8, .is_complex = true},
                                      .channels = 1024,
                                      .frames = SIZE_UNKNOWN,
                                      .rank = 2}};
    sink_from_fd(&w.sink, fd, "test.npy");
    assert_true(npy_begin(&w, &fault));
    assert_int_equal(w.sink.position, 128);
    w.frames = UINT64_C(1) << 47;
    assert_true(npy_end(&w, &fault));
    struct source source = {
        .name = "test.npy", .fd = fd, .wake_fd = -1, .seekable = true, .size = 128};
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    struct audio_info info;
    assert_true(npy_parse(&source, 1024, &info, &fault));
    assert_int_equal(info.frames, w.frames);
    assert_int_equal(info.channels, 1024);
    assert_false(info.planar);
    close(fd);
}

static void peeking_does_not_consume(void **state)
{
    (void)state;
    static const char text[] = "one two three four";
    struct source s;
    const unsigned char *x;
    char got[8] = "";
    source_from_memory(&s, text, sizeof text - 1);
    assert_int_equal(source_peek(&s, 3, &x), 3);
    assert_memory_equal(x, "one", 3);
    assert_int_equal(source_peek(&s, 7, &x), 7);
    assert_memory_equal(x, "one two", 7);
    assert_int_equal(source_read(&s, got, 5), 5);
    assert_memory_equal(got, "one t", 5);
    assert_int_equal(s.position, 5);
    assert_int_equal(source_peek(&s, 4, &x), 4);
    assert_memory_equal(x, "wo t", 4);
    assert_true(source_seek(&s, 14));
    assert_int_equal(source_read(&s, got, 8), 4);
    assert_memory_equal(got, "four", 4);
    assert_int_equal(source_peek(&s, 4, &x), 0);
    assert_false(source_seek(&s, 19));
    s.seekable = false;
    assert_true(source_seek(&s, 18));
}

static void containers_by_name(void **state)
{
    (void)state;
    bool known;
    assert_int_equal(container_of_name("a/b.c/x.WAV", &known), CONTAINER_WAV);
    assert_int_equal(container_of_name("x.npy", &known), CONTAINER_NPY);
    assert_int_equal(container_of_name("x.cf32_le", &known), CONTAINER_RAW);
    assert_true(known);
    assert_int_equal(container_of_name("x.ogg", &known), CONTAINER_SNDFILE);
    container_of_name("dir.wav/x", &known);
    assert_false(known);
    container_of_name("wav", &known);
    assert_false(known);
}

// A resampled response of one tap has the same gain at every frequency; its lead is included.
static void resampling_keeps_gain(void **state)
{
    (void)state;
    static const double rates[][2] = {
        {44100, 48000}, {48000, 44100}, {96000, 44100},          {8000, 8001},
        {62.5, 125},    {0.5, 0.75},    {100e6 / 3, 25e6},       {2338285.71, 2400000},
        {5e9, 4.9e9},   {10, 10 / 3.},  {4000000007, 4000000009}};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct frames y = {memory_allocate(sizeof(double)), 1, 1, PARTITA_F64};
        struct fault fault;
        size_t lead;
        *(double *)y.data = 1;
        assert_true(frames_resample(&y, rates[r][0], rates[r][1], &lead, "x", &fault));
        assert_true(lead > 0 && y.n > 2 * lead);
        double slower = rates[r][0] < rates[r][1] ? rates[r][0] : rates[r][1];
        for (double f = 0; f < 0.45; f += 0.05) {
            double re = 0, im = 0, w = 2 * M_PI * f * slower / rates[r][1];
            for (size_t i = 0; i < y.n; i++) {
                double t = (double)i - (double)lead;
                re += ((double *)y.data)[i] * cos(w * t);
                im -= ((double *)y.data)[i] * sin(w * t);
            }
            // within 0.01 dB and without delay
            assert_true(fabs(re - 1) < 1.2e-3 && fabs(im) < 1.2e-3);
        }
        frames_release(&y);
    }
}

static void absurd_rates_are_refused(void **state)
{
    (void)state;
    double one = 1;
    struct frames y = {&one, 1, 1, PARTITA_F64};
    struct fault fault;
    size_t lead;
    assert_false(frames_resample(&y, 1, UINT32_MAX, &lead, "x", &fault));
    assert_non_null(strstr(fault.text, "4294967295"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_names),
        cmocka_unit_test(nearest_names),
        cmocka_unit_test(tuner_stays_exact),
        cmocka_unit_test(tuner_does_not_depend_on_pieces),
        cmocka_unit_test(integers_round_trip),
        cmocka_unit_test(conversion_equals_single_samples),
        cmocka_unit_test(clipping_limits),
        cmocka_unit_test(nonfinite_values),
        cmocka_unit_test(wav_grows_into_rf64),
        cmocka_unit_test(npy_header_fits_any_shape),
        cmocka_unit_test(peeking_does_not_consume),
        cmocka_unit_test(containers_by_name),
        cmocka_unit_test(resampling_keeps_gain),
        cmocka_unit_test(absurd_rates_are_refused),
    };
    return run_all(tests);
}
