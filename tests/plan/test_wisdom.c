// SPDX-License-Identifier: MIT
// The wisdom file: round trip, and refusal of anything else than such a file of this machine, with
// the store unchanged. Files with wrong contents have the right checksum here, so that the contents
// are the reason.

#include "support/test.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// A folder for the files of this process.
static char folder[64], path[128];

struct content {
    char *text;
    size_t length;
};

static struct content read_all(const char *from)
{
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    struct content content = {malloc(1 << 24), 0};
    content.length = fread(content.text, 1, (1 << 24) - 1, file);
    content.text[content.length] = 0;
    fclose(file);
    return content;
}

static void write_all(const char *to, const char *text, size_t length)
{
    FILE *file = fopen(to, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

// A store with a cost model and one measured choice, saved to `path`. The first call measures,
// others load the file.
static struct partita_wisdom *filled_store(void)
{
    struct partita_wisdom *wisdom;
    struct partita_plan *plan;
    if (access(path, R_OK) == 0) {
        assert_ok(partita_wisdom_create(&wisdom));
        assert_ok(partita_wisdom_load(wisdom, path));
        return wisdom;
    }
    struct partita_problem problem = {LENGTH(20000), KERNEL(500)};
    assert_ok(partita_wisdom_create(&wisdom));
    assert_ok(partita_wisdom_calibrate(wisdom));
    assert_ok(partita_plan_create(
        &problem, &(struct partita_options){.effort = PARTITA_MEASURE, .wisdom = wisdom}, &plan));
    partita_plan_destroy(plan);
    assert_ok(partita_wisdom_save(wisdom, path));
    return wisdom;
}

static void round_trip(void **state)
{
    (void)state;
    struct partita_wisdom *first = filled_store(), *second;
    assert_ok(partita_wisdom_create(&second));
    assert_ok(partita_wisdom_load(second, path));
    char again[140];
    snprintf(again, sizeof again, "%s.again", path);
    assert_ok(partita_wisdom_save(second, again));
    struct content a = read_all(path), b = read_all(again);
    assert_int_equal(a.length, b.length);
    assert_memory_equal(a.text, b.text, a.length);
    assert_ok(partita_wisdom_load(second, path)); // loading again changes nothing
    assert_ok(partita_wisdom_save(second, again));
    free(b.text);
    b = read_all(again);
    assert_string_equal(a.text, b.text);
    free(a.text);
    free(b.text);
    partita_wisdom_destroy(first);
    partita_wisdom_destroy(second);
}

static void empty_store_round_trip(void **state)
{
    (void)state;
    struct partita_wisdom *wisdom;
    assert_ok(partita_wisdom_create(&wisdom));
    char empty[140];
    snprintf(empty, sizeof empty, "%s.empty", path);
    assert_ok(partita_wisdom_save(wisdom, empty));
    assert_ok(partita_wisdom_load(wisdom, empty));
    partita_wisdom_destroy(wisdom);
}

#ifdef HAVE_NATIVE_FFT
static void calibrates_within_a_second(void **state)
{
    (void)state;
    struct partita_wisdom *wisdom;
    assert_ok(partita_wisdom_create(&wisdom));
    double best = 1e9;
    for (int i = 0; i < 3; i++) { // the best of three, because the machine may be busy
        double start = process_seconds();
        assert_ok(partita_wisdom_calibrate(wisdom));
        double taken = process_seconds() - start;
        if (taken < best) best = taken;
    }
    assert_true(best < 1 ||
                TEST_SLOWER > 1); // a sanitizer may slow the measured kernels down by any factor
    partita_wisdom_destroy(wisdom);
}
#endif

// Fails unless loading `text` returns STATE and leaves the store unchanged.
static void refuse_into(struct partita_wisdom *wisdom, const char *text, size_t length,
                        const char *why)
{
    char wrong[140], before[140], after[140];
    snprintf(wrong, sizeof wrong, "%s.wrong", path);
    snprintf(before, sizeof before, "%s.before", path);
    snprintf(after, sizeof after, "%s.after", path);
    write_all(wrong, text, length);
    assert_ok(partita_wisdom_save(wisdom, before));
    enum partita_status status = partita_wisdom_load(wisdom, wrong);
    if (status != PARTITA_ERR_STATE) fail_msg("%s: status %d", why, (int)status);
    assert_ok(partita_wisdom_save(wisdom, after));
    struct content a = read_all(before), b = read_all(after);
    if (a.length != b.length || memcmp(a.text, b.text, a.length))
        fail_msg("%s: the store changed", why);
    free(a.text);
    free(b.text);
}

// For a store with the same contents and for an empty one, into which not even a part of the file
// may be loaded.
static void refuse(struct partita_wisdom *wisdom, const char *text, size_t length, const char *why)
{
    struct partita_wisdom *empty;
    assert_ok(partita_wisdom_create(&empty));
    refuse_into(wisdom, text, length, why);
    refuse_into(empty, text, length, why);
    partita_wisdom_destroy(empty);
}

static void damaged_is_refused(void **state)
{
    (void)state;
    struct partita_wisdom *wisdom = filled_store();
    struct content good = read_all(path);
    struct random random = random_start("damage");
    char why[64];
    for (int i = 0; i < 60; i++) {
        size_t at = i < 20   ? (size_t)i
                    : i < 40 ? good.length - 1 - (size_t)(i - 20)
                             : random_below(&random, good.length);
        char kept = good.text[at];
        good.text[at] = (char)(kept ^ (1 << random_below(&random, 8)));
        snprintf(why, sizeof why, "bit of byte %zu", at);
        refuse(wisdom, good.text, good.length, why);
        good.text[at] = kept;
    }
    for (int i = 0; i < 40; i++) {
        size_t length = i < 10   ? (size_t)i
                        : i < 20 ? good.length - 1 - (size_t)(i - 10)
                                 : random_below(&random, good.length);
        snprintf(why, sizeof why, "truncated to %zu bytes", length);
        refuse(wisdom, good.text, length, why);
    }
    refuse(wisdom, "\0\0\0\0", 4, "zeros");
    char *longer = malloc(good.length + 8);
    memcpy(longer, good.text, good.length);
    memcpy(longer + good.length, "\nextra\n", 8);
    refuse(wisdom, longer, good.length + 7, "text behind the checksum");
    free(longer);
    free(good.text);
    partita_wisdom_destroy(wisdom);
}

// The text with a new last line: FNV-1a of the text.
static struct content with_checksum(const char *body, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)body[i]) * 0x100000001b3u;
    struct content content = {malloc(length + 64), 0};
    memcpy(content.text, body, length);
    content.length =
        length + (size_t)snprintf(content.text + length, 64, "checksum %016" PRIx64 "\n", hash);
    return content;
}

static size_t body_length(const struct content *good)
{
    const char *closing = strstr(good->text, "\nchecksum ");
    assert_non_null(closing);
    return (size_t)(closing + 1 - good->text);
}

// Replaces the first `from` by `to` in a good file, computes its checksum, and fails unless it is
// refused.
static void refuse_edited(struct partita_wisdom *wisdom, const struct content *good,
                          const char *from, const char *to)
{
    const char *at = strstr(good->text, from);
    assert_non_null(at);
    size_t body = body_length(good), before = (size_t)(at - good->text), skip = strlen(from),
           add = strlen(to);
    char *edited = malloc(body + add + 1);
    memcpy(edited, good->text, before);
    memcpy(edited + before, to, add);
    memcpy(edited + before + add, at + skip, body - before - skip);
    struct content wrong = with_checksum(edited, body + add - skip);
    refuse(wisdom, wrong.text, wrong.length, to);
    free(wrong.text);
    free(edited);
}

static void other_contents_are_refused(void **state)
{
    (void)state;
    struct partita_wisdom *wisdom = filled_store();
    struct content good = read_all(path), same = with_checksum(good.text, body_length(&good));
    assert_string_equal(good.text, same.text); // the checksum is the library's
    refuse_edited(wisdom, &good, "partita wisdom 4\n", "partita wisdom 3\n");
    refuse_edited(wisdom, &good, "partita wisdom 4\n", "partita wisdom 40\n");
    refuse_edited(wisdom, &good, "partita wisdom 4\n", "");
    refuse_edited(wisdom, &good, "\nhost ", "\nhost another ");
    refuse_edited(wisdom, &good, "\nhost ", "\nguest ");
    refuse_edited(wisdom, &good, "\ncosts ", "\ncosts nan ");
    refuse_edited(wisdom, &good, "\ncosts ", "\ncosts -1e-9 ");
    refuse_edited(wisdom, &good, "\ncosts ", "\ncosts 1e-9 ");
    refuse_edited(wisdom, &good, "\ncosts ", "\ncosts 1e999 ");
    refuse_edited(wisdom, &good, "\ncosts ", "\nprices ");
    refuse_edited(wisdom, &good, "\nchoice ", "\nchoice\n");
    refuse_edited(wisdom, &good, "\nchoice cpu/",
                  "\nchoice an/engine/with/a/name/of/far/too/many/letters cpu/");
    if (strstr(good.text, "\nfftw ")) {
        refuse_edited(wisdom, &good, "\nfftw ", "\nfftw 9");
        refuse_edited(wisdom, &good, "\nfftw ", "\nfftw -");
        refuse_edited(wisdom, &good, "\nfftw ", "\nfftw 18446744073709551615 ");
    }
    // Only the last line is wrong.
    size_t body = body_length(&good);
    static const char extra[] = "unknown line\n";
    char *longer = malloc(body + sizeof extra);
    memcpy(longer, good.text, body);
    memcpy(longer + body, extra, sizeof extra);
    struct content wrong = with_checksum(longer, body + sizeof extra - 1);
    refuse(wisdom, wrong.text, wrong.length, "an unknown line at the end");
    free(wrong.text);
    free(longer);
    free(same.text);
    free(good.text);
    partita_wisdom_destroy(wisdom);
}

static void unreadable_and_unwritable(void **state)
{
    (void)state;
    struct partita_wisdom *wisdom = filled_store(), *none = (struct partita_wisdom *)1;
    char absent[140];
    snprintf(absent, sizeof absent, "%s/no/such", folder);
    assert_int_equal(partita_wisdom_load(wisdom, absent), PARTITA_ERR_IO);
    assert_int_equal(partita_wisdom_load(wisdom, folder), PARTITA_ERR_IO);
    assert_int_equal(partita_wisdom_save(wisdom, absent), PARTITA_ERR_IO);
    assert_int_equal(partita_wisdom_load(NULL, path), PARTITA_ERR_ARG);
    assert_int_equal(partita_wisdom_load(wisdom, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_wisdom_save(NULL, path), PARTITA_ERR_ARG);
    assert_int_equal(partita_wisdom_save(wisdom, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_wisdom_create(NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_wisdom_calibrate(NULL), PARTITA_ERR_ARG);
    assert_ptr_equal(none, (struct partita_wisdom *)1);
    partita_wisdom_destroy(NULL);
    partita_wisdom_destroy(wisdom);
}

// If the disk is full in the middle of the file, the old file stays and no other file is left.
static void full_disk_keeps_the_old_file(void **state)
{
    (void)state;
    struct partita_wisdom *wisdom = filled_store();
    struct content before = read_all(path);
    struct rlimit kept, small;
    getrlimit(RLIMIT_FSIZE, &kept);
    signal(SIGXFSZ, SIG_IGN);
    small = kept;
    for (rlim_t limit = 0; limit < before.length; limit += before.length / 3 + 1) {
        small.rlim_cur = limit;
        setrlimit(RLIMIT_FSIZE, &small);
        enum partita_status status = partita_wisdom_save(wisdom, path);
        setrlimit(RLIMIT_FSIZE, &kept);
        assert_int_equal(status, PARTITA_ERR_IO);
        struct content after = read_all(path);
        assert_string_equal(before.text, after.text);
        free(after.text);
        char list[128];
        snprintf(list, sizeof list, "ls %s | grep -c tmp >/dev/null", folder);
        assert_int_not_equal(system(list), 0); // grep finds none
    }
    free(before.text);
    partita_wisdom_destroy(wisdom);
}

static void filled_store_still_plans(void **state)
{
    (void)state;
    struct partita_wisdom *wisdom = filled_store();
    for (size_t taps = 1; taps < 70000; taps *= 4) {
        struct partita_problem problem = {LENGTH(200000), KERNEL(taps)};
        struct partita_plan *plan;
        assert_ok(
            partita_plan_create(&problem, &(struct partita_options){.wisdom = wisdom}, &plan));
        partita_plan_destroy(plan);
    }
    partita_wisdom_destroy(wisdom);
}

int main(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/partita-XXXXXX", base && strlen(base) < 40 ? base : "/tmp");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/wisdom", folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(empty_store_round_trip),
#ifdef HAVE_NATIVE_FFT // FFTW takes longer to plan and execute long transforms
        cmocka_unit_test(calibrates_within_a_second),
#endif
        cmocka_unit_test(damaged_is_refused),
        cmocka_unit_test(other_contents_are_refused),
        cmocka_unit_test(unreadable_and_unwritable),
        cmocka_unit_test(full_disk_keeps_the_old_file),
        cmocka_unit_test(filled_store_still_plans),
    };
    int n_failed = run_all(tests);
    char clean[96];
    snprintf(clean, sizeof clean, "rm -r %s", folder);
    return system(clean) ? 1 : n_failed;
}
