// SPDX-License-Identifier: MIT
// The filters of `partita live` while files are read: reloads that would replace each other or a
// file that is loaded, and directions of a SOFA file that change meanwhile; damaged SOFA files. The
// test plays the stream itself.

#ifdef HAVE_LIBMYSOFA
#include <mysofa.h> // before complex.h, which defines I
#endif

#include "support/test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/audio.h"
#include "live/filters/filter_set.h"

static const char SOFA[] = "/usr/share/libmysofa/MIT_KEMAR_normal_pinna.sofa";
enum { SOFA_RATE = 44100 };

static struct filter_set *open_filters(struct settings *settings, int n, const char **irs)
{
    static char *argv[1 + 2 * MAX_WORDS] = {"live"}; // which the settings point to
    int argc = 1;
    struct filter_set *set = NULL;
    struct fault fault = {""};
    for (int i = 0; i < n; i++) {
        argv[argc++] = (char *)"--ir";
        argv[argc++] = (char *)irs[i];
    }
    const struct filter_set_request request = {.max_in = 2, .max_out = 2, .rate = SOFA_RATE};
    if (!options_parse(settings, COMMAND_LIVE, argc, argv, &fault) ||
        !filter_set_open(&set, settings, &request, &fault))
        fail_msg("%s", fault.text);
    filter_set_fade(set, 0);
    return set;
}

static void await_news(struct filter_set *set, uint64_t request)
{
    struct filter_set_news news;
    for (;;) {
        filter_set_poll(set, &news);
        if (news.event != FILTER_SET_UNCHANGED) break;
        usleep(1000);
    }
    assert_int_equal(news.event, FILTER_SET_CHANGED);
    assert_int_equal(news.request, request);
}

static void write_impulse(const char *path)
{
    const struct audio_info info = {.container = CONTAINER_WAV,
                                    .encoding = {.kind = ENCODING_FLOAT, .bytes = 4},
                                    .channels = 1,
                                    .rate = SOFA_RATE,
                                    .frames = 1};
    struct audio_writer *writer;
    struct sample_counts counts;
    struct fault fault;
    assert_true(audio_create(&writer, path, &info, &fault));
    assert_true(audio_write(writer, PARTITA_F32, (float[]){1}, 1, &fault));
    assert_true(audio_finish(writer, &counts, &fault));
}

// Two of them in a new folder, whose name ends with XXXXXX.
static void write_impulses(char *folder, char paths[2][64])
{
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%d.wav", folder, i);
        write_impulse(paths[i]);
    }
}

static void remove_impulses(const char *folder, char paths[2][64])
{
    for (int i = 0; i < 2; i++) unlink(paths[i]);
    rmdir(folder);
}

// Each request that is accepted is carried out; only one that the same file waits for is joined.
static void reloads_of_other_filters_are_kept(void **state)
{
    (void)state;
    char folder[] = "/tmp/partita-test-filters-XXXXXX", paths[2][64];
    struct settings settings;
    struct fault fault;
    write_impulses(folder, paths);
    struct filter_set *set = open_filters(&settings, 2, (const char *[]){paths[0], paths[1]});
    assert_int_equal(filter_set_reload(set, &fault), 1);
    filter_set_select(set, 1);
    assert_int_equal(filter_set_reload(set, &fault), 2);
    assert_int_equal(filter_set_reload(set, &fault), 3);
    filter_set_select(set, 0);
    assert_int_equal(filter_set_reload(set, &fault), 0);
    assert_non_null(strstr(fault.text, paths[1]));
    await_news(set, 1);
    await_news(set, 3);
    assert_int_equal(filter_set_reload(set, &fault), 4);
    await_news(set, 4);
    filter_set_close(set);
    remove_impulses(folder, paths);
}

// A reload that waits for a load reads the loaded file again, not the one before.
static void a_reload_keeps_the_file_being_loaded(void **state)
{
    (void)state;
    char folder[] = "/tmp/partita-test-filters-XXXXXX", paths[2][64];
    struct settings settings;
    struct fault fault;
    write_impulses(folder, paths);
    struct filter_set *set = open_filters(&settings, 1, (const char *[]){paths[0]});
    assert_int_equal(filter_set_load(set, paths[1], &fault), 1);
    assert_int_equal(filter_set_reload(set, &fault), 2);
    await_news(set, 1);
    await_news(set, 2);
    assert_string_equal(filter_set_info(set, 0).path, paths[1]);
    filter_set_close(set);
    remove_impulses(folder, paths);
}

// Reading a pipe could take for ever.
static void a_filter_that_became_a_pipe_is_not_read_again(void **state)
{
    (void)state;
    char folder[] = "/tmp/partita-test-filters-XXXXXX", paths[2][64];
    struct settings settings;
    struct fault fault;
    struct filter_set_news news = {0};
    write_impulses(folder, paths);
    struct filter_set *set = open_filters(&settings, 1, (const char *[]){paths[0]});
    assert_int_equal(unlink(paths[0]), 0);
    assert_int_equal(mkfifo(paths[0], 0600), 0);
    assert_int_equal(filter_set_reload(set, &fault), 1);
    while (news.event == FILTER_SET_UNCHANGED) {
        filter_set_poll(set, &news);
        usleep(1000);
    }
    assert_int_equal(news.event, FILTER_SET_FAILED);
    assert_non_null(strstr(news.message.text, paths[0]));
    assert_non_null(strstr(news.message.text, "regular file"));
    filter_set_close(set);
    remove_impulses(folder, paths);
}

// Plays until the last fade has ended.
static void play(struct filter_set *set)
{
    float x[256] = {0}, left[256], right[256];
    struct partita_stream *stream = filter_set_stream(set);
    for (int i = 0; i < 1000 && partita_stream_swapping(stream); i++)
        partita_stream_process(stream, (float *[]){left, right}, (const float *[]){x}, 256);
    assert_false(partita_stream_swapping(stream));
}

// As many turns between two polls as there may be replaced filters, and one filter from a file.
static void turns_leave_a_place_for_a_file(void **state)
{
    (void)state;
    struct settings settings;
    struct fault fault;
    if (access(SOFA, R_OK) || sofa_rate(SOFA, &fault) != SOFA_RATE) skip();
    struct filter_set *set = open_filters(&settings, 1, (const char *[]){SOFA});
    assert_int_equal(filter_set_reload(set, &fault), 1);
    for (int i = 0; i < 20; i++) {
        filter_set_turn(set, &(struct sofa_direction){.azimuth = i % 2 ? 0 : 90});
        play(set);
    }
    // Without a poll that releases them first.
    filter_set_select(set, 0);
    await_news(set, 1);
    play(set);
    for (struct filter_set_news news; filter_set_is_turning(set); play(set))
        filter_set_poll(set, &news);
    filter_set_close(set);
}

#ifdef HAVE_LIBMYSOFA

struct MYSOFA_HRTF *__real_mysofa_load(const char *path, int *error);
struct MYSOFA_HRTF *__wrap_mysofa_load(const char *path, int *error);
struct MYSOFA_EASY *__real_mysofa_open_no_norm(const char *path, float rate, int *n, int *error);
struct MYSOFA_EASY *__wrap_mysofa_open_no_norm(const char *path, float rate, int *n, int *error);

int __real_mysofa_lookup(struct MYSOFA_LOOKUP *lookup, float *at);
int __wrap_mysofa_lookup(struct MYSOFA_LOOKUP *lookup, float *at);

static bool lookup_fails;

int __wrap_mysofa_lookup(struct MYSOFA_LOOKUP *lookup, float *at)
{
    return lookup_fails ? -1 : __real_mysofa_lookup(lookup, at);
}

// As it fails without memory: a run keeps its pair, and none begins.
static void a_direction_without_a_pair_changes_nothing(void **state)
{
    (void)state;
    struct settings settings;
    struct fault fault;
    if (access(SOFA, R_OK)) skip();
    struct filter_set *set = open_filters(&settings, 1, (const char *[]){SOFA}), *none = NULL;
    lookup_fails = true;
    filter_set_turn(set, &(struct sofa_direction){.azimuth = 90});
    assert_false(filter_set_is_turning(set));
    assert_false(partita_stream_swapping(filter_set_stream(set)));
    const struct filter_set_request request = {.max_in = 2, .max_out = 2, .rate = SOFA_RATE};
    assert_false(filter_set_open(&none, &settings, &request, &fault));
    assert_non_null(strstr(fault.text, "finds no pair"));
    lookup_fails = false;
    filter_set_turn(set, &(struct sofa_direction){.azimuth = 90});
    assert_true(partita_stream_swapping(filter_set_stream(set)));
    filter_set_close(set);
}

// Values that arrays of a loaded file lack.
static unsigned missing_taps, missing_positions;

static struct MYSOFA_HRTF *damage(struct MYSOFA_HRTF *hrtf)
{
    hrtf->DataIR.elements -= missing_taps;
    hrtf->SourcePosition.elements -= missing_positions;
    return hrtf;
}

struct MYSOFA_HRTF *__wrap_mysofa_load(const char *path, int *error)
{
    return damage(__real_mysofa_load(path, error));
}

struct MYSOFA_EASY *__wrap_mysofa_open_no_norm(const char *path, float rate, int *n, int *error)
{
    struct MYSOFA_EASY *file = __real_mysofa_open_no_norm(path, rate, n, error);
    damage(file->hrtf);
    return file;
}

static void damaged_sofa_files_are_refused(void **state)
{
    (void)state;
    struct sofa *sofa;
    struct fault fault;
    if (access(SOFA, R_OK)) skip();
    assert_true(sofa_rate(SOFA, &fault) == SOFA_RATE);
    assert_true(sofa_open(&sofa, SOFA, SOFA_RATE / 2, &fault)); // resampled
    sofa_close(sofa);
    for (int i = 0; i < 2; i++) {
        missing_taps = i == 0;
        missing_positions = i == 1;
        assert_true(sofa_rate(SOFA, &fault) == 0);
        assert_non_null(strstr(fault.text, "damaged"));
        assert_false(sofa_open(&sofa, SOFA, SOFA_RATE, &fault));
        assert_non_null(strstr(fault.text, "damaged"));
    }
    missing_positions = 0;
}

#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(reloads_of_other_filters_are_kept),
        cmocka_unit_test(a_reload_keeps_the_file_being_loaded),
        cmocka_unit_test(a_filter_that_became_a_pipe_is_not_read_again),
        cmocka_unit_test(turns_leave_a_place_for_a_file),
#ifdef HAVE_LIBMYSOFA
        cmocka_unit_test(a_direction_without_a_pair_changes_nothing),
        cmocka_unit_test(damaged_sofa_files_are_refused),
#endif
    };
    return run_all(tests);
}
