// SPDX-License-Identifier: MIT
#include "sigmf_carry.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <partita/partita.h>

#include "base/number.h"

static const char DATA[] = ".sigmf-data", META[] = ".sigmf-meta", ARCHIVE[] = ".sigmf";

// Replaces the suffix of SigMF that `path` has, if any: one in capitals by another in capitals.
static bool with_suffix(char ret[PATH_MAX], const char *path, const char *suffix)
{
    size_t n = strlen(path);
    if (path_ends_with(path, DATA) || path_ends_with(path, META)) n -= strlen(DATA);
    else if (path_ends_with(path, ARCHIVE)) n -= strlen(ARCHIVE);
    if (snprintf(ret, PATH_MAX, "%.*s%s", (int)n, path, suffix) >= PATH_MAX) return false;
    for (char *c = ret + n; path[n] && path[n + 1] == 'S' && *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return true;
}

static bool is_archive(const char *path)
{
    struct stat st;
    return path_ends_with(path, ARCHIVE) && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool sigmf_is_recording(const char *path)
{
    char meta[PATH_MAX];
    if (path_ends_with(path, META) || is_archive(path)) return true;
    if (strcmp(path, "-") == 0 || (!path_ends_with(path, DATA) && access(path, F_OK) == 0))
        return false;
    return with_suffix(meta, path, META) && access(meta, F_OK) == 0;
}

const char *sigmf_samples(const char *path, char buffer[PATH_MAX])
{
    struct sigmf sigmf;
    struct fault ignored;
    if (!sigmf_is_recording(path) || is_archive(path)) return path;
    if (!sigmf_read(path, &sigmf, &ignored)) return with_suffix(buffer, path, DATA) ? buffer : path;
    strcpy(buffer, sigmf.data);
    sigmf_release(&sigmf);
    return buffer;
}

bool sigmf_differs(const char *path, const char *const *inputs, int n_inputs, struct fault *fault)
{
    char buffer[PATH_MAX];
    for (int i = 0; i < n_inputs; i++)
        if (!temp_differs(path, (const char *[]){inputs[i], sigmf_samples(inputs[i], buffer)}, 2,
                          fault))
            return false;
    return true;
}

const char *sigmf_metadata(const char *path, char buffer[PATH_MAX])
{
    const bool beside = sigmf_is_recording(path) && !is_archive(path);
    return beside && with_suffix(buffer, path, META) ? buffer : path;
}

bool sigmf_may_replace(const char *meta, const char *data)
{
    char expected[PATH_MAX];
    struct stat st;
    if (lstat(meta, &st) != 0) return true;
    struct fault ignored;
    FILE *file = S_ISREG(st.st_mode) ? regular_open(meta, &ignored) : NULL;
    json_t *root = file ? json_loadf(file, 0, NULL) : NULL;
    const json_t *global = json_object_get(root, "global");
    const char *dataset = json_string_value(json_object_get(global, "core:dataset"));
    const bool fits = with_suffix(expected, meta, DATA);
    const bool good = json_is_object(global) && fits &&
                      strcmp(dataset ? dataset : path_base(expected), path_base(data)) == 0 &&
                      !json_is_true(json_object_get(global, "core:metadata_only"));
    if (file) fclose(file);
    json_decref(root);
    return good;
}

bool sigmf_describes(const char *path)
{
    return path_ends_with(path, DATA);
}

bool sigmf_check_output(const char *path, struct fault *fault)
{
    char name[PATH_MAX];
    if (path_ends_with(path, META) || path_ends_with(path, ARCHIVE)) {
        const bool fits = with_suffix(name, path, DATA);
        return fault_set(fault, "%s: %s; name %s", path,
                         path_ends_with(path, META) ? "is written beside the samples"
                                                    : "archives are only read",
                         fits ? name : DATA);
    }
    if (!path_ends_with(path, DATA) || !with_suffix(name, path, META)) return true;
    return sigmf_may_replace(name, path) ||
           fault_set(fault,
                     "%s: is no description of %s, which would replace it; name another output",
                     name, path);
}

// A number of bytes; 0 if the field is missing.
static bool parse_bytes(const json_t *object, const char *field, const char *meta, uint64_t *ret,
                        struct fault *fault)
{
    const json_t *n = json_object_get(object, field);
    *ret = n ? (uint64_t)json_integer_value(n) : 0;
    return !n || (json_is_integer(n) && json_integer_value(n) >= 0) ||
           fault_set(fault, "%s: %s is not a number of bytes", meta, field);
}

static bool parse_sha512(const json_t *global, struct sigmf *ret, struct fault *fault)
{
    enum { DIGITS = SHA512_DIGEST_STRING_LENGTH - 1 };
    const json_t *field = json_object_get(global, "core:sha512");
    const char *text = ret->sha512 = json_string_value(field);
    return !field ||
           (text && strlen(text) == DIGITS && strspn(text, "0123456789abcdefABCDEF") == DIGITS) ||
           fault_set(fault, "%s: core:sha512 is not a sum of %d hexadecimal digits", ret->meta,
                     DIGITS);
}

static bool sigmf_parse_global(const json_t *global, const char *meta, struct sigmf *ret,
                               struct fault *fault)
{
    const char *type = json_string_value(json_object_get(global, "core:datatype"));
    const json_t *rate = json_object_get(global, "core:sample_rate");
    const json_t *channels = json_object_get(global, "core:num_channels");
    if (!type) return fault_set(fault, "%s: has no core:datatype", meta);
    if (!encoding_parse(type, &ret->encoding))
        return fault_set(fault, "%s: core:datatype %s is not supported", meta, type);
    ret->rate = json_number_value(rate);
    if ((rate && !json_is_number(rate)) || (ret->rate != 0 && !rate_is_usable(ret->rate)))
        return fault_set(fault, "%s: core:sample_rate is not a number of Hz above 0", meta);
    ret->channels = channels ? (size_t)json_integer_value(channels) : 1;
    if (ret->channels < 1)
        return fault_set(fault, "%s: core:num_channels is not a number above 0", meta);
    if (json_is_true(json_object_get(global, "core:metadata_only")))
        return fault_set(fault, "%s: is a recording of metadata only, without samples", meta);
    return parse_bytes(global, "core:trailing_bytes", meta, &ret->part.trailing, fault) &&
           parse_sha512(global, ret, fault);
}

bool sigmf_position(const json_t *object, const json_t *global, int64_t *ret)
{
    const json_t *start = json_object_get(object, "core:sample_start"),
                 *offset = json_object_get(global, "core:offset");
    const int64_t first = json_integer_value(offset), at = json_integer_value(start);
    const bool good =
        json_is_integer(start) && (!offset || json_is_integer(offset)) && first >= 0 && at >= 0;
    *ret = good ? at - first : 0;
    return good;
}

// The bytes before the samples of each capture that are no samples.
static bool parse_headers(struct sigmf *sigmf, const json_t *captures, struct fault *fault)
{
    const json_t *global = json_object_get(sigmf->root, "global");
    const uint64_t frame_bytes = encoding_size(sigmf->encoding) * sigmf->channels;
    struct source_gap *gaps = calloc(json_array_size(captures) + 1, sizeof *gaps);
    if (!gaps) return fault_set(fault, "out of memory");
    sigmf->part.gaps = gaps;
    for (size_t i = 0; i < json_array_size(captures); i++) {
        const json_t *capture = json_array_get(captures, i);
        struct source_gap *gap = &gaps[sigmf->part.n_gaps];
        int64_t start;
        if (!parse_bytes(capture, "core:header_bytes", sigmf->meta, &gap->bytes, fault))
            return false;
        if (!gap->bytes) continue;
        if (!sigmf_position(capture, global, &start) || start < 0 ||
            __builtin_mul_overflow((uint64_t)start, frame_bytes, &gap->at) ||
            (sigmf->part.n_gaps && gap[-1].at > gap->at))
            return fault_set(fault,
                             "%s: capture %zu has core:header_bytes, but its core:sample_start is "
                             "not a sample number after that of the capture before it",
                             sigmf->meta, i);
        sigmf->part.n_gaps++;
    }
    return true;
}

// archive: the file that holds metadata and samples, or NULL.
static bool sigmf_parse(struct sigmf *ret, const char *archive, struct fault *fault)
{
    const json_t *global = json_object_get(ret->root, "global"),
                 *captures = json_object_get(ret->root, "captures");
    if (!json_is_object(global) || !json_is_array(captures))
        return fault_set(fault, "%s: has no global object or no captures", ret->meta);
    const char *dataset = json_string_value(json_object_get(global, "core:dataset"));
    // The name of standard input is no file's.
    if (dataset && (!*dataset || strcmp(dataset, "-") == 0 || strchr(dataset, '/')))
        return fault_set(fault, "%s: core:dataset %s is not a file name", ret->meta, dataset);
    const int n_folder = (int)(path_base(ret->meta) - ret->meta);
    if (!sigmf_parse_global(global, ret->meta, ret, fault) || !parse_headers(ret, captures, fault))
        return false;
    if (!(dataset ? snprintf(ret->data, PATH_MAX, "%.*s%s", n_folder, ret->meta, dataset) < PATH_MAX
                  : with_suffix(ret->data, ret->meta, DATA)))
        return fault_set(fault, "%s: name too long", ret->meta);
    if (!archive) return true;
    const bool found = sigmf_archive_samples(archive, ret->data, &ret->part, fault);
    snprintf(ret->data, PATH_MAX, "%s", archive);
    return found;
}

static json_t *load_file(const char *path, struct sigmf *ret, struct fault *fault)
{
    json_error_t error;
    const bool fits =
        with_suffix(ret->meta, path, META) || fault_set(fault, "%s: name too long", path);
    FILE *file = fits ? regular_open(ret->meta, fault) : NULL;
    if (!file) return NULL;
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (!root) fault_set(fault, "%s: is not JSON: %s", ret->meta, error.text);
    return root;
}

static json_t *load_archive(const char *path, struct sigmf *ret, struct fault *fault)
{
    json_error_t error;
    char *text;
    size_t length;
    if (!sigmf_archive_metadata(path, &text, &length, ret->meta, fault)) return NULL;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!root) fault_set(fault, "%s: %s is not JSON: %s", path, ret->meta, error.text);
    return root;
}

bool sigmf_read(const char *path, struct sigmf *ret, struct fault *fault)
{
    const bool archive = is_archive(path);
    *ret = (struct sigmf){.part.size = SIZE_UNKNOWN};
    ret->root = archive ? load_archive(path, ret, fault) : load_file(path, ret, fault);
    if (ret->root && sigmf_parse(ret, archive ? path : NULL, fault)) return true;
    sigmf_release(ret);
    return false;
}

void sigmf_release(struct sigmf *sigmf)
{
    json_decref(sigmf->root);
    free((void *)sigmf->part.gaps);
    sigmf->root = NULL;
    sigmf->part.gaps = NULL;
}

// The samples first .. end-1 of capture i; up to `frames` if it is the last one.
struct capture {
    size_t i;
    uint64_t first, end;
    double frequency;
};

// Whether the capture states its frequency.
static bool capture_read(struct capture *ret, const struct sigmf *sigmf, size_t i, uint64_t frames)
{
    const json_t *global = json_object_get(sigmf->root, "global"),
                 *captures = json_object_get(sigmf->root, "captures"),
                 *capture = json_array_get(captures, i), *next = json_array_get(captures, i + 1),
                 *frequency = json_object_get(capture, "core:frequency");
    int64_t first, end;
    *ret = (struct capture){.i = i, .end = frames, .frequency = json_number_value(frequency)};
    if (sigmf_position(capture, global, &first) && first > 0) ret->first = (uint64_t)first;
    if (next && sigmf_position(next, global, &end) && end < 0) ret->end = 0;
    else if (next && sigmf_position(next, global, &end) && (uint64_t)end < frames)
        ret->end = (uint64_t)end;
    return json_is_number(frequency);
}

// Captures that differ: what to do.
static bool refuse_captures(const struct sigmf *sigmf, const struct sigmf_use *use,
                            const struct capture *one, const struct capture *other,
                            struct fault *fault)
{
    char remedy[160] = "";
    const int64_t before = one->first ? use->reach - use->zero : 0;
    const __int128 begin = (__int128)one->first * use->up + before,
                   end = (__int128)one->end * use->up - use->zero;
    if (begin < end && end <= INT64_MAX)
        snprintf(remedy, sizeof remedy,
                 "convolve and correlate select capture %zu with --first %lld --last %lld", one->i,
                 (long long)begin, (long long)end);
    else snprintf(remedy, sizeof remedy, "capture %zu is shorter than the taps", one->i);
    return fault_set(
        fault, "%s: captures %zu and %zu are at different frequencies, %.12g and %.12g Hz; %s",
        sigmf->meta, one->i, other->i, one->frequency, other->frequency, remedy);
}

bool sigmf_check_captures(const struct sigmf *sigmf, const struct sigmf_use *use, uint64_t frames,
                          struct fault *fault)
{
    const int64_t begin = use->begin > use->reach ? (use->begin - use->reach) / use->up : 0,
                  end = use->end > 0 ? (use->end - 1) / use->up : -1; // of the last sample
    struct capture known = {0}, capture;
    bool any = false;
    const json_t *captures = sigmf ? json_object_get(sigmf->root, "captures") : NULL;
    for (size_t i = 0; i < json_array_size(captures); i++) {
        if (!capture_read(&capture, sigmf, i, frames) || capture.first >= capture.end ||
            capture.end <= (uint64_t)begin || end < 0 || capture.first > (uint64_t)end)
            continue;
        if (any && known.frequency != capture.frequency)
            return refuse_captures(sigmf, use, &known, &capture, fault);
        if (!any) known = capture;
        any = true;
    }
    return true;
}

// NULL: out of memory. Written without jansson, which without memory returns damaged text.
static char *sigmf_compose(const struct audio_info *info)
{
    static const char RATE[] = ",\n    \"core:sample_rate\": ";
    char type[ENCODING_NAME_SIZE], rate[64] = "", *text;
    bool same = info->rate == 0;
    for (int digits = 15; digits <= 17 && !same; digits++) { // until it is read back unchanged
        snprintf(rate, sizeof rate, "%s%.*g", RATE, digits, info->rate);
        same = strtod(rate + strlen(RATE), NULL) == info->rate;
    }
    const int n =
        asprintf(&text,
                 "{\n  \"global\": {\n    \"core:datatype\": \"%s\",\n"
                 "    \"core:version\": \"1.0.0\",\n"
                 "    \"core:recorder\": \"partita %s\",\n"
                 "    \"core:num_channels\": %zu%s\n  },\n"
                 "  \"captures\": [\n    {\n      \"core:sample_start\": 0\n    }\n  ],\n"
                 "  \"annotations\": []\n}\n",
                 encoding_name(info->encoding, type), partita_version(), info->channels, rate);
    return n >= 0 ? text : NULL;
}

char *sigmf_text(const json_t *root)
{
    char *line = root ? json_dumps(root, JSON_INDENT(2)) : NULL, *text = NULL;
    if (!line || asprintf(&text, "%s\n", line) < 0) text = NULL;
    free(line);
    return text;
}

bool sigmf_write(struct temp *meta, const char *path, const struct audio_info *info,
                 uint64_t frames, struct fault *fault)
{
    char name[PATH_MAX];
    *meta = (struct temp){0};
    if (!path_ends_with(path, DATA)) return true;
    if (!with_suffix(name, path, META)) return fault_set(fault, "%s: name too long", path);
    json_t *carried = info->origin ? sigmf_carry(info->origin, info, frames) : NULL;
    char *text = info->origin ? sigmf_text(carried) : sigmf_compose(info);
    json_decref(carried);
    return temp_write_beside(meta, name, text, false, fault);
}
