// SPDX-License-Identifier: MIT
// See sections.h. python/partita/_equalizer.py reads the same lists, which a test compares.
#include "sections.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/number.h"
#include "cli/option_words.h"
#include "config/words.h"

#define DIGITS "0123456789"
#define AT(field) offsetof(struct partita_section, field)

enum { WORD_SIZE = 64, MAX_BIQUADS = 8, GAIN = 1, SLOPE = 4, ORDERS = 7 };

static const struct {
    const char *name, *listed; // in --section, and any of several words in lists
} kinds[] = {
    [PARTITA_SECTION_PEAK] = {"peak", "|PK|PEQ|MODAL|"},
    [PARTITA_SECTION_LOW_SHELF] = {"lowshelf", "|LS|LSC|LSQ|"},
    [PARTITA_SECTION_HIGH_SHELF] = {"highshelf", "|HS|HSC|HSQ|"},
    [PARTITA_SECTION_LOW_PASS] = {"lowpass", "|LP|LPQ|"},
    [PARTITA_SECTION_HIGH_PASS] = {"highpass", "|HP|HPQ|"},
    [PARTITA_SECTION_BAND_PASS] = {"bandpass", "|BP|"},
    [PARTITA_SECTION_NOTCH] = {"notch", "|NO|"},
    [PARTITA_SECTION_ALL_PASS] = {"allpass", "|AP|"},
    [PARTITA_SECTION_GENERAL_NOTCH] = {"general-notch", ""},
    [PARTITA_SECTION_LINKWITZ_TRANSFORM] = {"linkwitz-transform", ""},
    [PARTITA_SECTION_TILT] = {"tilt", ""},
    [PARTITA_SECTION_GAIN] = {"gain", ""},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

// Numbers, and the words before them. In --section the frequency and then the gain need none.
static const struct {
    const char *name, *listed;
    enum quantity quantity;
    size_t offset;
} numbers[] = {
    {"hz", "Fc", QUANTITY_FREQUENCY, AT(frequency)},
    {"db", "Gain", QUANTITY_DECIBELS, AT(gain)},
    {"q", "Q", QUANTITY_COUNT, AT(q)},
    {"oct", "BW Oct", QUANTITY_COUNT, AT(bandwidth)},
    {"slope", "", QUANTITY_DECIBELS, AT(slope)}, // in lists the first number, with a unit
    {"fp", NULL, QUANTITY_FREQUENCY, AT(target_frequency)},
    {"qp", NULL, QUANTITY_COUNT, AT(target_q)},
    // From here on the order, which follows the name of its family.
    [ORDERS + PARTITA_FAMILY_DEFAULT] = {"order", NULL, QUANTITY_COUNT, 0},
    [ORDERS + PARTITA_FAMILY_BUTTERWORTH] = {"bw", NULL, QUANTITY_COUNT, 0},
    [ORDERS + PARTITA_FAMILY_LINKWITZ_RILEY] = {"lr", NULL, QUANTITY_COUNT, 0},
    [ORDERS + PARTITA_FAMILY_BESSEL] = {"bessel", NULL, QUANTITY_COUNT, 0},
};
enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

static double *number_of(struct partita_section *section, int i)
{
    return (double *)(void *)((char *)section + numbers[i].offset);
}

// For the library a width or an order of 0 is the default one.
static bool is_given(int i, double value, struct fault *fault)
{
    const bool narrows = i > GAIN && numbers[i].quantity != QUANTITY_FREQUENCY;
    return !narrows || value != 0 || fault_usage(fault, "%s 0: must be above 0", numbers[i].name);
}

// The library's message loses the name "sections[0]".
bool sections_add(struct sections *s, const struct partita_section *section, struct fault *fault)
{
    struct fault log = {.text = ""};
    struct partita_biquad biquads[MAX_BIQUADS];
    size_t n;
    const struct partita_equalizer one = {
        .rate = s->rate, .sections = section, .n_sections = 1, .log = {option_words_log, &log}};
    if (partita_equalizer_biquads(&one, biquads, &n)) {
        const char *text = strchr(log.text, ']');
        if (text) return fault_usage(fault, "%s", text + 1 + strspn(text + 1, ".: "));
        return fault_set(fault, "out of memory");
    }
    struct partita_section *list = memory_append(s->list, s->n, &s->capacity, sizeof *list);
    if (!list) return fault_set(fault, "out of memory");
    s->list = list;
    s->list[s->n++] = *section;
    return true;
}

bool sections_add_words(struct sections *sections, const char *text, struct fault *fault)
{
    struct partita_section section = {.q = 0};
    char copy[256], hint[NEAREST_HINT_SIZE], *rest = copy;
    bool good;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return fault_usage(fault, "is longer than %zu characters", sizeof copy - 1);
    const char *word = words_next(&rest, &good);
    const int kind = nearest_find(word ? word : "", kinds, N_KINDS, sizeof *kinds, hint);
    if (kind < 0)
        return fault_usage(fault, "begins with no kind of section%s, such as peak or lowshelf",
                           hint);
    section.kind = (enum partita_section_kind)kind;
    for (int next = kind < PARTITA_SECTION_TILT ? 0 : GAIN; (word = words_next(&rest, &good));) {
        const size_t n = strcspn(word, "+-." DIGITS);
        const char *value = word[n] ? word + n : words_next(&rest, &good);
        struct number number;
        int i = n ? 0 : next++;
        while (n && i < N_NUMBERS &&
               (strlen(numbers[i].name) != n || strncasecmp(word, numbers[i].name, n) != 0))
            i++;
        if (i == N_NUMBERS || (!n && i > GAIN) || !value ||
            !number_parse(value, numbers[i].quantity, &number) || (i >= ORDERS && !number.whole))
            return fault_usage(
                fault, "'%s' is neither a number nor q, oct, lr or the like with one", word);
        if (!is_given(i, number.value, fault)) return false;
        if (i < ORDERS) *number_of(&section, i) = number.value;
        else section.order = (int)fmin(fabs(number.value), INT_MAX);
        if (i >= ORDERS) section.family = (enum partita_section_family)(i - ORDERS);
    }
    return sections_add(sections, &section, fault);
}

// The marks in the numbers of a line. Commas are decimal marks, or separate thousands, as all of
// them say.
struct marks {
    char decimal, group;
    bool unclear; // a comma may be either
};

static struct marks marks_of(const char *line)
{
    bool comma = false, point = false;
    for (const char *c = strpbrk(line, DIGITS); c; c = strpbrk(c, DIGITS)) {
        comma = comma || strncmp(c, "0,", 2) == 0;
        for (; *c && strchr(DIGITS ".,", *c); c++) {
            const size_t digits = *c == ',' ? strspn(c + 1, DIGITS) : 0;
            point = point || *c == '.';
            comma = comma || (digits && digits != 3);
        }
    }
    return (struct marks){comma ? ',' : '.', comma ? '.' : ',', !comma && !point};
}

static bool parse_decimal(const struct marks *marks, const char *text, size_t n, double *ret,
                          struct fault *fault)
{
    const char mark = marks->decimal, group = marks->group;
    char value[WORD_SIZE], made[WORD_SIZE], *to = made;
    snprintf(value, sizeof value, "%.*s", (int)n, text);
    if (marks->unclear && strchr(value, ','))
        return fault_set(fault, "%s may be two numbers; write it without a mark, or with a point",
                         value);
    bool good = n < sizeof value && value[strspn(value, "+-" DIGITS ".,")] == 0;
    size_t digits = 0; // before a character
    for (const char *c = value; good && *c; c++) {
        // Three digits follow a separator of thousands, which stands before the decimal mark.
        good = *c != group || (digits >= 1 && digits <= 3 && strspn(c + 1, DIGITS) == 3 &&
                               !memchr(value, mark, (size_t)(c - value)));
        digits = isdigit((unsigned char)*c) ? digits + 1 : 0;
        if (*c != group) *to++ = *c;
        if (*c == mark) to[-1] = '.';
    }
    struct number number;
    *to = 0;
    if (!good || !number_parse(made, QUANTITY_COUNT, &number))
        return fault_set(fault, "'%s' is no number with the decimal mark '%c'", value, mark);
    *ret = number.value;
    return true;
}

// The value behind a word, which a unit, another word or the end follows at *ret_end; NULL if the
// word is absent.
static const char *find_value(const char *text, const char *word, const char **ret_end)
{
    const char *c = text;
    while ((c = strcasestr(c, word)) && c > text && isalnum((unsigned char)c[-1])) c++;
    if (!c) return NULL;
    const char *const begin = c + strlen(word) + strspn(c + strlen(word), WORD_SPACES);
    for (const char *end = begin, *next;; end = next + (next == end)) {
        next = *ret_end = end + strspn(end, WORD_SPACES);
        if (!*next || strncasecmp(next, "dB", 2) == 0 || strncasecmp(next, "Hz", 2) == 0 ||
            strncasecmp(next, "kHz", 3) == 0 || (next > end && isalpha((unsigned char)*next)))
            return begin;
    }
}

// Equalizer APO has the corner of these shelves, half of the gain at their slope from the middle.
static void move_to_middle(struct partita_section *s)
{
    const double a = pow(10, s->gain / 40), sign = s->kind == PARTITA_SECTION_LOW_SHELF ? 1 : -1;
    const double slope =
        s->slope > 0 ? s->slope / 12 : 1 / ((1 / (s->q * s->q) - 2) / (a + 1 / a) + 1);
    s->frequency *= pow(10, sign * fabs(s->gain) / 80 / slope);
}

// "ON PK Fc 105 Hz Gain -2.4 dB Q 0.70"
static bool add_filter(struct sections *sections, const char *line, struct fault *fault)
{
    struct partita_section s = {.q = 0};
    char word[WORD_SIZE], on[WORD_SIZE] = "", name[WORD_SIZE - 2] = "";
    int length = 0, kind = 0;
    sscanf(line, " %63[A-Za-z0-9]%n %61[A-Za-z]%n", on, &length, name, &length);
    if (strcasecmp(on, "off") == 0 || (strcasecmp(on, "on") == 0 && strcasecmp(name, "none") == 0))
        return true;
    if (strcasecmp(on, "on") != 0) return fault_set(fault, "needs ON or OFF at its begin");
    snprintf(word, sizeof word, "|%s|", name);
    while (kind < N_KINDS && !strcasestr(kinds[kind].listed, word)) kind++;
    s.kind = (enum partita_section_kind)kind;
    if (kind == N_KINDS)
        return fault_set(fault, "type '%s' is none of PK, LP, HP, BP, NO, AP, LS, HS and the like",
                         name);
    const bool shelf = s.kind == PARTITA_SECTION_LOW_SHELF || s.kind == PARTITA_SECTION_HIGH_SHELF;
    const bool has_gain = shelf || s.kind == PARTITA_SECTION_PEAK;
    unsigned found = 0; // bits of the numbers
    line += length;
    const struct marks marks = marks_of(line);
    for (int i = 0; numbers[i].listed; i++) {
        const char *end, *value = find_value(line, numbers[i].listed, &end);
        if (!value || (i == GAIN && !has_gain)) continue;
        size_t n = (size_t)(end - value);
        while (n && strchr(WORD_SPACES, value[n - 1])) n--;
        if (i == SLOPE && (!n || strspn(value, DIGITS ".,") != n || strncasecmp(end, "dB", 2) != 0))
            continue;
        if (!parse_decimal(&marks, value, n, number_of(&s, i), fault) ||
            !is_given(i, *number_of(&s, i), fault))
            return false;
        if (i == 0 && strncasecmp(end, "kHz", 3) == 0) s.frequency *= 1000;
        found |= 1u << i;
    }
    if (!(found & 1) || (has_gain && !(found & 1u << GAIN)))
        return fault_set(fault, "needs Fc%s", found & 1 ? " and Gain" : "");
    const bool narrow = found >> (GAIN + 1); // has a quality, a width or a slope
    if (!narrow && shelf) s.slope = 10.8;    // the defaults of Room EQ Wizard
    if (!narrow && s.kind == PARTITA_SECTION_NOTCH) s.q = 30;
    if (narrow && shelf && strlen(name) == 2) move_to_middle(&s);
    return sections_add(sections, &s, fault);
}

// "20 -1.5; 1000 0.2"
static bool set_points(struct sections *s, const char *line, struct fault *fault)
{
    const struct marks marks = marks_of(line);
    s->n_points = 0;
    for (const char *at = line; *(at += strspn(at, WORD_SPACES ";"));) {
        double pair[2];
        for (int i = 0; i < 2; i++, at += strspn(at, WORD_SPACES)) {
            const size_t n = strcspn(at, WORD_SPACES ";");
            if (!parse_decimal(&marks, at, n, &pair[i], fault)) return false;
            at += n;
        }
        if (*at && *at != ';')
            return fault_set(fault, "'%.20s' follows a frequency and its decibels", at);
        void *list = memory_append(s->points, s->n_points, &s->points_capacity, sizeof *s->points);
        if (!list) return fault_set(fault, "out of memory");
        s->points = list;
        s->points[s->n_points++] = (struct partita_design_point){pair[0], pair[1]};
    }
    return s->n_points || fault_set(fault, "GraphicEQ has no points");
}

static bool add_preamp(struct sections *s, const char *line, struct fault *fault)
{
    struct partita_section gain = {.kind = PARTITA_SECTION_GAIN};
    const struct marks marks = marks_of(line);
    char value[WORD_SIZE];
    size_t n = 0;
    for (const char *c = line; *c && n < sizeof value; c++) {
        if (strncasecmp(c, "dB", 2) == 0) c++;
        else if (!strchr(WORD_SPACES, *c)) value[n++] = *c;
    }
    return parse_decimal(&marks, value, n, &gain.gain, fault) && sections_add(s, &gain, fault);
}

static bool add_line(struct sections *s, char *line, bool *known, struct fault *fault)
{
    static const char refused[] = "|CHANNEL|COPY|CONVOLUTION|DELAY|INCLUDE|IF|ELSEIF|ELSE|EVAL|"
                                  "LOUDNESSCORRECTION|VSTPLUGIN|";
    char word[WORD_SIZE] = "|", *rest = strchrnul(line, ':');
    size_t n = 1;
    for (const char *c = line; c < rest && n < sizeof word - 2; c++)
        if (!strchr(WORD_SPACES DIGITS, *c)) word[n++] = (char)toupper((unsigned char)*c);
    memcpy(word + n, "|", 2);
    if (n > 1 && strstr(refused, word))
        return fault_set(fault, "%.*s is not supported; remove the line", (int)n - 1, word + 1);
    if (!strstr("|FILTER|PREAMP|GRAPHICEQ|", word)) return true;
    *known = true;
    rest += *rest == ':';
    if (word[1] == 'F') return add_filter(s, rest, fault);
    return word[1] == 'P' ? add_preamp(s, rest, fault) : set_points(s, rest, fault);
}

// Replaces UTF-8's minus signs, and spaces that are not broken, which may separate thousands, and
// line breaks of old files.
static void simplify(char *text)
{
    static const char *const from_texts[] = {"\xE2\x88\x92", "\xC2\xA0", "\xE2\x80\xAF", "\r"};
    char *to = text;
    for (const char *from = text; *from;) {
        int i = 0;
        while (i < 4 && strncmp(from, from_texts[i], strlen(from_texts[i])) != 0) i++;
        from += i < 4 ? strlen(from_texts[i]) : 1;
        const bool space = i == 1 || i == 2;
        if (space && to > text && isdigit((unsigned char)to[-1]) && strspn(from, DIGITS) >= 3)
            continue;
        *to++ = i < 4 ? "-  \n"[i] : from[-1];
        from += i == 3 && *from == '\n';
    }
    *to = 0;
}

bool sections_add_list(struct sections *sections, const char *path, char *text, struct fault *fault)
{
    struct sections *s = sections;
    struct lines lines = {.rest = text};
    struct fault said;
    bool known = false;
    simplify(text);
    for (char *line; (line = lines_next(&lines));)
        if (!add_line(s, line, &known, &said))
            return fault_set(fault, "%s: line %d: %s", path, lines.number, said.text);
    if (!known) return fault_set(fault, "%s: has no line of Filter, Preamp or GraphicEQ", path);
    for (size_t i = 0; s->n_points && i < s->n; i++) {
        if (s->list[i].kind != PARTITA_SECTION_GAIN)
            return fault_set(fault, "%s: has lines of Filter and GraphicEQ; remove those of one",
                             path);
        for (size_t k = 0; k < s->n_points; k++) s->points[k].decibels += s->list[i].gain;
    }
    return true;
}

void sections_release(struct sections *sections)
{
    free(sections->list);
    free(sections->points);
}
