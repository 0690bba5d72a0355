// SPDX-License-Identifier: MIT
// See sigmf_carry.h. Positions are whole numbers up to 2^63; sums of them are formed in 128 bits.
#include "sigmf_carry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <partita/partita.h>

#include "base/json_values.h"

typedef __int128 wide;

static wide floor_div(wide a, wide b)
{
    return a / b - (a % b < 0);
}

static wide ceil_div(wide a, wide b)
{
    return -floor_div(-a, b);
}

static const json_t *global_of(const struct sigmf *sigmf)
{
    return json_object_get(sigmf->root, "global");
}

static bool check_list(const struct sigmf *sigmf, const char *list, const char *kind,
                       struct fault *fault)
{
    const json_t *array = json_object_get(sigmf->root, list);
    if (array && !json_is_array(array))
        return fault_set(fault, "%s: %s is no array", sigmf->meta, list);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *object = json_array_get(array, i),
                     *count = json_object_get(object, "core:sample_count");
        int64_t start;
        const bool placed = sigmf_position(object, global_of(sigmf), &start);
        if (!placed || (count && (!json_is_integer(count) || json_integer_value(count) < 0)))
            return fault_set(fault,
                             "%s: core:sample_%s of %s %zu is not a %s; correct it, or name an "
                             "output that is not SigMF",
                             sigmf->meta, placed ? "count" : "start", kind, i,
                             placed ? "number of samples" : "sample number");
    }
    return true;
}

bool sigmf_check_positions(const struct sigmf *sigmf, struct fault *fault)
{
    return check_list(sigmf, "captures", "capture", fault) &&
           check_list(sigmf, "annotations", "annotation", fault);
}

enum { DIGITS = 12 };
static const int64_t UNIT = 1000000000000; // 10^DIGITS

// The time of `frames` frames in units of 10^-DIGITS s; exact if the rate is a whole number.
static wide frames_time(int64_t frames, double rate, int64_t up)
{
    if (rate < 0x1p53 && rate == floor(rate)) return (wide)frames * UNIT / ((wide)rate * up);
    return (wide)((long double)frames * UNIT / ((long double)rate * (long double)up));
}

// 2026-01-31T23:59:59.25Z plus `moved` such units; NULL if it is no such time.
static json_t *later(const char *time, wide moved)
{
    struct tm tm = {0};
    int n = 0, digits = 0;
    if (sscanf(time, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &n) != 6)
        return NULL;
    wide fraction = 0;
    if (time[n] == '.')
        for (n++; time[n] >= '0' && time[n] <= '9'; n++)
            if (digits < DIGITS) {
                fraction = 10 * fraction + (time[n] - '0');
                digits++;
            }
    if (strcmp(time + n, "Z") != 0) return NULL;
    for (int i = digits; i < DIGITS; i++) fraction *= 10;
    fraction += moved;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    const time_t seconds = timegm(&tm) + (time_t)floor_div(fraction, UNIT);
    fraction -= floor_div(fraction, UNIT) * UNIT;
    if (!gmtime_r(&seconds, &tm) || tm.tm_year < -900 || tm.tm_year > 8099) return NULL;
    char text[64], decimals[32];
    snprintf(decimals, sizeof decimals, "%0*lld", DIGITS, (long long)fraction);
    int shown = DIGITS;
    while (shown > digits && decimals[shown - 1] == '0') shown--;
    const size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + length, sizeof text - length, "%s%.*sZ", shown ? "." : "", shown, decimals);
    return json_string(text);
}

// Samples by which a time is moved: more come from damaged metadata.
static const wide MAX_MOVE = (wide)1 << 53;

// Moves a capture to sample `at` of the result; its sample `start` was the first of the capture.
static void move_capture(json_t *capture, const struct sigmf_origin *o, int64_t start, wide at)
{
    const wide moved = at * o->stride - o->shift - (wide)start * o->up; // samples / up
    json_t *frequency = json_object_get(capture, "core:frequency");
    const json_t *index = json_object_get(capture, "core:global_index");
    const char *time = json_string_value(json_object_get(capture, "core:datetime"));
    json_object_del(capture, "core:header_bytes");
    json_object_set_new(capture, "core:sample_start", json_integer((json_int_t)at));
    if (json_is_integer(index)) {
        const wide moved_index =
            floor_div((wide)json_integer_value(index) * o->up + moved, o->stride);
        if (moved_index < 0 || moved_index > INT64_MAX)
            json_object_del(capture, "core:global_index");
        else
            json_object_set_new(capture, "core:global_index",
                                json_integer((json_int_t)moved_index));
    }
    if (json_is_number(frequency) && o->tune != 0)
        json_object_set_new(capture, "core:frequency",
                            json_real(json_number_value(frequency) + o->tune));
    if (!time || !moved) return;
    const bool known = o->sigmf->rate > 0 && moved < MAX_MOVE && moved > -MAX_MOVE;
    json_t *moved_time =
        known ? later(time, frames_time((int64_t)moved, o->sigmf->rate, o->up)) : NULL;
    if (moved_time) json_object_set_new(capture, "core:datetime", moved_time);
    else json_object_del(capture, "core:datetime");
}

// Of captures that begin at one sample the last one counts. The first one also covers samples
// before it, which only the filter's delay made.
static json_t *carry_captures(const struct sigmf_origin *o, uint64_t total)
{
    const json_t *captures = json_object_get(o->sigmf->root, "captures");
    json_t *ret = json_array();
    wide last = -1;
    for (size_t i = 0; i < json_array_size(captures); i++) {
        json_t *capture = json_deep_copy(json_array_get(captures, i));
        int64_t start = 0;
        sigmf_position(capture, global_of(o->sigmf), &start);
        wide at = ceil_div((wide)start * o->up + o->shift, o->stride);
        if (at < 0 || last < 0) at = 0;
        if (at == last) json_array_remove(ret, json_array_size(ret) - 1);
        if (last < 0 || (at >= last && at < (wide)total)) {
            move_capture(capture, o, start, at);
            json_array_append(ret, capture);
            last = at;
        }
        json_decref(capture);
    }
    return ret;
}

static json_t *carry_annotations(const struct sigmf_origin *o, uint64_t total)
{
    const json_t *annotations = json_object_get(o->sigmf->root, "annotations");
    json_t *ret = json_array();
    for (size_t i = 0; i < json_array_size(annotations); i++) {
        json_t *annotation = json_deep_copy(json_array_get(annotations, i));
        const json_t *count = json_object_get(annotation, "core:sample_count");
        int64_t start = 0;
        sigmf_position(annotation, global_of(o->sigmf), &start);
        const wide from = (wide)start * o->up + o->shift,
                   until = from + (wide)json_integer_value(count) * o->up;
        wide at = floor_div(from, o->stride), end = ceil_div(until, o->stride);
        if (end > (wide)total) end = total;
        const bool inside = at < (wide)total && (count && until > from ? end > 0 : at >= 0);
        if (at < 0) at = 0;
        json_object_set_new(annotation, "core:sample_start", json_integer((json_int_t)at));
        if (count && until > from)
            json_object_set_new(annotation, "core:sample_count",
                                json_integer((json_int_t)(end - at)));
        if (inside || (!count && at < (wide)total)) json_array_append(ret, annotation);
        json_decref(annotation);
    }
    return ret;
}

json_t *sigmf_carry(const struct sigmf_origin *origin, const struct audio_info *info,
                    uint64_t frames)
{
    // What is only true of the samples of the input.
    static const char *const lost[] = {"core:sha512",   "core:dataset",        "core:data_doi",
                                       "core:meta_doi", "core:trailing_bytes", "core:collection",
                                       "core:offset",   "core:metadata_only",  "core:sample_rate"};
    const uint64_t total = origin->total ? origin->total : frames;
    char type[ENCODING_NAME_SIZE], recorder[64];
    json_t *root = json_deep_copy(origin->sigmf->root), *global = json_object_get(root, "global");
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) json_object_del(global, lost[i]);
    snprintf(recorder, sizeof recorder, "partita %s", partita_version());
    json_object_set_new(global, "core:datatype", json_string(encoding_name(info->encoding, type)));
    json_object_set_new(global, "core:recorder", json_string(recorder));
    json_object_set_new(global, "core:num_channels", json_integer((json_int_t)info->channels));
    if (info->rate > 0) json_object_set_new(global, "core:sample_rate", json_rate(info->rate));
    if (total != frames || origin->first)
        json_object_set_new(global, "core:offset", json_integer((json_int_t)origin->first));
    json_object_set_new(root, "captures", carry_captures(origin, total));
    json_t *annotations = carry_annotations(origin, total);
    json_object_set_new(root, "annotations", annotations);
    if (sigmf_sort_annotations(annotations)) return root;
    json_decref(root);
    return NULL;
}

struct ordered {
    json_t *annotation;
    json_int_t start;
    size_t index;
};

static int compare_starts(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

bool sigmf_sort_annotations(json_t *annotations)
{
    const size_t n = json_array_size(annotations);
    struct ordered *list = malloc((n + 1) * sizeof *list);
    if (!list) return false;
    for (size_t i = 0; i < n; i++) {
        json_t *annotation = json_incref(json_array_get(annotations, i));
        list[i] = (struct ordered){
            annotation, json_integer_value(json_object_get(annotation, "core:sample_start")), i};
    }
    qsort(list, n, sizeof *list, compare_starts);
    json_array_clear(annotations);
    for (size_t i = 0; i < n; i++) json_array_append_new(annotations, list[i].annotation);
    free(list);
    return true;
}
