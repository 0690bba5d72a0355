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

// irs: also options without a value, or with one behind an equals sign.
static bool try_to_open(struct filter_set **ret, struct settings *settings, int n, const char **irs,
                        struct fault *fault)
{
    static char *argv[1 + 2 * MAX_WORDS] = {"live"}; // which the settings point to
    int argc = 1;
    for (int i = 0; i < n; i++) {
        if (*irs[i] != '-') argv[argc++] = (char *)"--ir";
        argv[argc++] = (char *)irs[i];
    }
    const char *ir;
    const struct filter_set_request request = {
        .max_in = 2, .max_out = 2, .rate = SOFA_RATE, .ret_ir = &ir};
    if (!options_parse(settings, COMMAND_LIVE, argc, argv, fault)) return false;
    settings->operands[1] = "the audio device";
    return filter_set_open(ret, settings, &request, fault);
}

static struct filter_set *open_filters(struct settings *settings, int n, const char **irs)
{
    struct filter_set *set = NULL;
    struct fault fault = {.text = ""};
    if (!try_to_open(&set, settings, n, irs, &fault)) fail_msg("%s", fault.text);
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

// A file of one frame.
static void write_frame(const char *path, size_t channels, const float *frame)
{
    const struct audio_info info = {.container = CONTAINER_WAV,
                                    .encoding = {.kind = ENCODING_FLOAT, .bytes = 4},
                                    .channels = channels,
                                    .rate = SOFA_RATE,
                                    .frames = 1,
                                    .rank = 2};
    struct audio_writer *writer;
    struct sample_counts counts;
    struct fault fault;
    assert_true(audio_create(&writer, path, &info, &fault));
    assert_true(audio_write(writer, PARTITA_F32, frame, 1, &fault));
    assert_true(audio_finish(writer, false, &counts, &fault));
}

// Two of them in a new folder, whose name ends with XXXXXX.
static void write_impulses(char *folder, char paths[2][64])
{
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%d.wav", folder, i);
        write_frame(paths[i], 1, (float[]){1});
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
    assert_int_equal(filter_set_load(set, paths[1], false, &fault), 1);
    assert_int_equal(filter_set_reload(set, &fault), 2);
    await_news(set, 1);
    await_news(set, 2);
    assert_string_equal(filter_set_path(set, 0), paths[1]);
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

// Plays silence, on up to two channels, until the last fade has ended.
static void play(struct filter_set *set)
{
    float x[256] = {0}, left[256], right[256];
    struct partita_stream *stream = filter_set_view(set).stream;
    for (int i = 0; i < 1000 && partita_stream_swapping(stream); i++)
        partita_stream_process(stream, (float *[]){left, right}, (const float *[]){x, x}, 256);
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

// The gains from input to output of a filter with one tap.
struct gains {
    float left_to_left, left_to_right, right_to_left, right_to_right;
};

static void plays_with(struct filter_set *set, struct gains gains)
{
    float left[256], right[256], silence[256] = {0}, ones[256];
    const float wanted[2][2] = {{gains.left_to_left, gains.left_to_right},
                                {gains.right_to_left, gains.right_to_right}};
    play(set);
    for (int i = 0; i < 256; i++) ones[i] = 1;
    for (int in = 0; in < 2; in++) {
        partita_stream_process(filter_set_view(set).stream, (float *[]){left, right},
                               (const float *[]){in ? silence : ones, in ? ones : silence}, 256);
        // Gains are multiples of 1/8 and sums have two terms, so that float sums are exact; engines
        // with transforms are not chosen for one tap.
        assert_true(left[255] == wanted[in][0]);
        assert_true(right[255] == wanted[in][1]);
    }
}

static void loads(struct filter_set *set, const char *ir)
{
    struct fault fault;
    const uint64_t request = filter_set_load(set, ir, false, &fault);
    if (!request) fail_msg("%s", fault.text);
    await_news(set, request);
}

static const struct gains HALL = {0.5f, 0, 0, 0.25f},
                          CHURCH = {0.125f, 0.25f, 0.375f, 0.625f}, // in the usual order
    EXCHANGED = {0.125f, 0.375f, 0.25f, 0.625f};

// What the names "hall", "church", "true" (true-stereo:church) and "matrix" (matrix:church) stand
// for.
struct halls {
    char folder[48], hall[64], church[64], true_stereo[80], matrix[80], mono[64], six[64];
};

static void write_halls(struct halls *h)
{
    *h = (struct halls){.folder = "/tmp/partita-test-filters-XXXXXX"};
    assert_non_null(mkdtemp(h->folder));
    snprintf(h->hall, sizeof h->hall, "%s/hall.wav", h->folder);
    snprintf(h->church, sizeof h->church, "%s/church.wav", h->folder);
    snprintf(h->mono, sizeof h->mono, "%s/mono.wav", h->folder);
    snprintf(h->six, sizeof h->six, "%s/six.wav", h->folder);
    snprintf(h->true_stereo, sizeof h->true_stereo, "true-stereo:%s", h->church);
    snprintf(h->matrix, sizeof h->matrix, "matrix:%s", h->church);
    write_frame(h->hall, 2, (float[]){0.5f, 0.25f});
    write_frame(h->church, 4, (float[]){0.125f, 0.25f, 0.375f, 0.625f});
    write_frame(h->mono, 1, (float[]){0.5f});
    write_frame(h->six, 6, (float[]){1, 1, 1, 1, 1, 1});
}

static void remove_halls(struct halls *h)
{
    unlink(h->hall);
    unlink(h->church);
    unlink(h->mono);
    unlink(h->six);
    rmdir(h->folder);
}

// In one run, in any order, also with the options that are meant for all files.
static void stereo_and_true_stereo_in_one_run(void **state)
{
    (void)state;
    struct halls h;
    struct settings settings;
    write_halls(&h);
    const struct {
        const char *words[4];
        int n;
        struct gains first, second;
    } cases[] = {
        {{h.hall, h.true_stereo}, 2, HALL, CHURCH},
        {{h.true_stereo, h.hall}, 2, CHURCH, HALL},
        {{h.hall, h.matrix}, 2, HALL, EXCHANGED},
        {{h.true_stereo, h.matrix}, 2, CHURCH, EXCHANGED},
        {{h.hall, h.church, "--true-stereo"}, 3, HALL, CHURCH},
        {{h.church, h.hall, "--true-stereo"}, 3, CHURCH, HALL},
        {{h.church, h.hall, "--matrix"}, 3, EXCHANGED, HALL},
        {{h.church, h.hall, "--matrix-order=in,out"}, 3, CHURCH, HALL},
        {{h.matrix, h.hall, "--matrix-order=in,out"}, 3, CHURCH, HALL},
        {{h.true_stereo, h.church, "--matrix"}, 3, CHURCH, EXCHANGED},
        {{h.mono, h.true_stereo}, 2, {0.5f, 0, 0, 0.5f}, CHURCH},
        {{h.true_stereo, h.mono}, 2, CHURCH, {0.5f, 0, 0, 0.5f}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct filter_set *set = open_filters(&settings, cases[i].n, (const char **)cases[i].words);
        plays_with(set, cases[i].first);
        filter_set_select(set, 1);
        plays_with(set, cases[i].second);
        filter_set_select(set, 0);
        plays_with(set, cases[i].first);
        filter_set_close(set);
    }
    remove_halls(&h);
}

// Whatever the run began with; `load` exists where there is a socket or OSC.
static void stereo_and_true_stereo_by_load(void **state)
{
    (void)state;
    struct halls h;
    struct settings settings;
    write_halls(&h);
    const char *const starts[] = {h.hall, h.true_stereo, h.matrix, h.mono};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        struct filter_set *set =
            open_filters(&settings, 2, (const char *[]){starts[i], "--control=/unused"});
        loads(set, h.true_stereo);
        plays_with(set, CHURCH);
        loads(set, h.hall);
        plays_with(set, HALL);
        loads(set, h.matrix);
        plays_with(set, EXCHANGED);
        loads(set, h.mono);
        plays_with(set, (struct gains){0.5f, 0, 0, 0.5f});
        filter_set_close(set);
    }
    remove_halls(&h);
}

static void is_refused(struct filter_set *set, const char *ir, const char *says)
{
    struct fault fault;
    struct filter_set_news news = {0};
    assert_int_not_equal(filter_set_load(set, ir, false, &fault), 0);
    while (news.event == FILTER_SET_UNCHANGED) {
        filter_set_poll(set, &news);
        usleep(1000);
    }
    assert_int_equal(news.event, FILTER_SET_FAILED);
    if (!strstr(news.message.text, says)) fail_msg("%s", news.message.text);
}

static void channels_that_do_not_fit_are_named(void **state)
{
    (void)state;
    struct halls h;
    struct settings settings;
    struct fault fault;
    char name[96], remedy[96];
    struct filter_set *none = NULL;
    write_halls(&h);
    struct filter_set *set =
        open_filters(&settings, 2, (const char *[]){h.hall, "--control=/unused"});
    snprintf(remedy, sizeof remedy, "name it %s", h.true_stereo);
    is_refused(set, h.church, remedy);
    snprintf(name, sizeof name, "true-stereo:%s", h.hall);
    is_refused(set, name, "this run has 2 channels: true-stereo needs a response of 4 channels");
    is_refused(set, h.six, "6 channels");
    snprintf(name, sizeof name, "matrix:%s", h.six);
    is_refused(set, name, "gives 3 output channels for 2 inputs");
    plays_with(set, HALL);
    filter_set_close(set);
    assert_false(
        try_to_open(&none, &settings, 2, (const char *[]){h.true_stereo, "--channels=1"}, &fault));
    assert_non_null(strstr(
        fault.text,
        "this run has 1 channel: true-stereo needs a response of 4 channels and an input of 2"));
    remove_halls(&h);
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
    assert_false(partita_stream_swapping(filter_set_view(set).stream));
    const char *ir;
    const struct filter_set_request request = {
        .max_in = 2, .max_out = 2, .rate = SOFA_RATE, .ret_ir = &ir};
    assert_false(filter_set_open(&none, &settings, &request, &fault));
    assert_non_null(strstr(fault.text, "finds no pair"));
    lookup_fails = false;
    filter_set_turn(set, &(struct sofa_direction){.azimuth = 90});
    assert_true(partita_stream_swapping(filter_set_view(set).stream));
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
        cmocka_unit_test(stereo_and_true_stereo_in_one_run),
        cmocka_unit_test(stereo_and_true_stereo_by_load),
        cmocka_unit_test(channels_that_do_not_fit_are_named),
#ifdef HAVE_LIBMYSOFA
        cmocka_unit_test(a_direction_without_a_pair_changes_nothing),
        cmocka_unit_test(damaged_sofa_files_are_refused),
#endif
    };
    return run_all(tests);
}
