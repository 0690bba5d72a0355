// SPDX-License-Identifier: MIT
// The store behind struct partita_wisdom and its file: lines of text, keyed by host, closed by a
// checksum, so that a file that was cut short, edited or made elsewhere is refused as a whole.
#include "wisdom.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "fft/fft.h"

#define HEADER "partita wisdom 4"

enum { KEY_SIZE = 224, MAX_FILE = 1 << 24 };

struct entry {
    char key[KEY_SIZE];
    struct remembered choice;
};

struct partita_wisdom {
    bool has_model;
    struct cost_model model;
    struct entry *entries;
    size_t n_entries;
};

static const struct partita_allocator plain;

enum partita_status wisdom_create(struct partita_wisdom **ret_wisdom)
{
    struct partita_wisdom *wisdom = mem_allocate(&plain, sizeof *wisdom);
    if (!wisdom) return PARTITA_ERR_NOMEM;
    *ret_wisdom = wisdom;
    return PARTITA_OK;
}

void wisdom_destroy(struct partita_wisdom *wisdom)
{
    if (!wisdom) return;
    free(wisdom->entries);
    mem_release(&plain, wisdom);
}

enum partita_status wisdom_calibrate(struct partita_wisdom *wisdom)
{
    struct cost_model model;
    const enum partita_status status = cost_model_calibrate(&model, cpu_detect());
    if (status != PARTITA_OK) return status;
    thread_lock(LOCK_WISDOM);
    wisdom->model = model;
    wisdom->has_model = true;
    thread_unlock(LOCK_WISDOM);
    return PARTITA_OK;
}

void wisdom_cost_model(struct partita_wisdom *wisdom, enum cpu_isa isa, struct cost_model *ret)
{
    cost_model_default(ret, isa);
    if (!wisdom) return;
    thread_lock(LOCK_WISDOM);
    if (wisdom->has_model && wisdom->model.isa == isa) *ret = wisdom->model;
    thread_unlock(LOCK_WISDOM);
}

static struct entry *wisdom_find(const struct partita_wisdom *wisdom, const char *key)
{
    for (size_t i = 0; i < wisdom->n_entries; i++)
        if (!strcmp(wisdom->entries[i].key, key)) return &wisdom->entries[i];
    return NULL;
}

bool wisdom_recall(struct partita_wisdom *wisdom, const char *key, struct remembered *ret)
{
    if (!wisdom) return false;
    thread_lock(LOCK_WISDOM);
    const struct entry *entry = wisdom_find(wisdom, key);
    if (entry) *ret = entry->choice;
    thread_unlock(LOCK_WISDOM);
    return entry != NULL;
}

static void keep(struct partita_wisdom *wisdom, const char *key, const struct remembered *choice)
{
    struct entry *entry = wisdom_find(wisdom, key);
    if (!entry) {
        struct entry *more = realloc(wisdom->entries, (wisdom->n_entries + 1) * sizeof *more);
        if (!more) return;
        wisdom->entries = more;
        entry = &more[wisdom->n_entries++];
        snprintf(entry->key, sizeof entry->key, "%s", key);
    }
    entry->choice = *choice;
}

void wisdom_remember(struct partita_wisdom *wisdom, const char *key,
                     const struct remembered *choice)
{
    if (!wisdom || strlen(key) >= KEY_SIZE) return;
    thread_lock(LOCK_WISDOM);
    keep(wisdom, key, choice);
    thread_unlock(LOCK_WISDOM);
}

enum { N_COSTS = sizeof(struct cost_rates) / sizeof(double) };

static void write_costs(FILE *file, const struct cost_rates *costs)
{
    double list[N_COSTS];
    memcpy(list, costs, sizeof list);
    fputs("costs", file);
    for (int i = 0; i < N_COSTS; i++) {
        char number[32];
        text_print(number, sizeof number, " %.6e", list[i]);
        fputs(number, file);
    }
    fputc('\n', file);
}

static void write_body(FILE *file, const struct partita_wisdom *wisdom)
{
    char name[128];
    cost_model_machine(name, sizeof name, cpu_detect());
    fprintf(file, HEADER "\nhost %s\n", name);
    thread_lock(LOCK_WISDOM);
    if (wisdom->has_model)
        for (int f64 = 0; f64 < 2; f64++) write_costs(file, &wisdom->model.costs[f64]);
    for (size_t i = 0; i < wisdom->n_entries; i++)
        fprintf(file, "choice %s %zu %s\n", wisdom->entries[i].choice.engine,
                wisdom->entries[i].choice.transform, wisdom->entries[i].key);
    thread_unlock(LOCK_WISDOM);
    for (int f64 = 0; f64 < 2; f64++) {
        char *text = fft_wisdom_export(f64);
        if (text) fprintf(file, "fftw %zu\n%s\n", strlen(text), text);
        free(text);
    }
}

// The whole file as text, for the checksum; NULL without memory.
static char *render(const struct partita_wisdom *wisdom, size_t *ret_length)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, ret_length);
    if (!file) return NULL;
    write_body(file, wisdom);
    if (fclose(file)) {
        free(text);
        return NULL;
    }
    return text;
}

// A new file beside `path`, whose name is stored: one that stands there, or a link, belongs to
// somebody else, perhaps to another thread that saves.
static int create_beside(const char *path, char *name, size_t capacity)
{
    enum { ATTEMPTS = 100 };
    int fd = -1;
    errno = EEXIST;
    for (int i = 0; fd < 0 && errno == EEXIST && i < ATTEMPTS; i++) {
        snprintf(name, capacity, "%s.%ld.%d.tmp", path, (long)getpid(), i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    return fd;
}

// Closes the descriptor.
static bool write_file(int fd, const char *text, size_t length)
{
    FILE *file = fdopen(fd, "wb");
    if (!file) {
        close(fd);
        return false;
    }
    const bool written =
        fwrite(text, 1, length, file) == length &&
        fprintf(file, "checksum %016" PRIx64 "\n", hash_bytes(HASH_BEGIN, text, length)) > 0;
    return fclose(file) == 0 && written;
}

enum partita_status wisdom_save(const struct partita_wisdom *wisdom, const char *path)
{
    const struct partita_log log = log_default();
    enum partita_status status = PARTITA_ERR_NOMEM;
    const size_t capacity = strlen(path) + 48;
    char *temporary = malloc(capacity), *text = NULL;
    size_t length;
    if (!temporary) goto done;
    text = render(wisdom, &length);
    if (!text) goto done;
    status = PARTITA_ERR_IO;
    const int fd = create_beside(path, temporary, capacity);
    if (fd < 0) goto done;
    if (write_file(fd, text, length) && rename(temporary, path) == 0) status = PARTITA_OK;
    else remove(temporary);
done:
    if (status == PARTITA_ERR_IO) log_line(&log, "%s: cannot be written", path);
    free(text);
    free(temporary);
    return status;
}

// Only regular files: a pipe might wait without end for somebody who writes it.
static FILE *open_regular(const char *path)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *file = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) file = fdopen(fd, "rb");
    if (fd >= 0 && !file) close(fd);
    return file;
}

// Reads a file of at most MAX_FILE bytes as a terminated string.
static char *read_file(const char *path, size_t *ret_length, enum partita_status *ret_status)
{
    FILE *file = open_regular(path);
    char *text = file ? malloc(MAX_FILE + 1) : NULL;
    *ret_status = file ? PARTITA_ERR_NOMEM : PARTITA_ERR_IO;
    if (text) {
        *ret_length = fread(text, 1, MAX_FILE, file);
        text[*ret_length] = 0;
        *ret_status = ferror(file) ? PARTITA_ERR_IO : PARTITA_OK;
    }
    if (file) fclose(file);
    return text;
}

// Cuts the checksum line off the text; false if it is missing or wrong.
static bool verify(char *text, size_t length)
{
    enum { CLOSING = 9 + 16 + 1 };
    char expected[CLOSING + 1];
    if (length < CLOSING || strlen(text) != length) return false;
    snprintf(expected, sizeof expected, "checksum %016" PRIx64 "\n",
             hash_bytes(HASH_BEGIN, text, length - CLOSING));
    if (strcmp(text + length - CLOSING, expected) != 0) return false;
    text[length - CLOSING] = 0;
    return true;
}

// Takes one line off the front of *text; NULL at its end.
static char *next_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');
    if (!end) return NULL;
    *end = 0;
    *text = end + 1;
    return line;
}

static bool read_costs(const char *line, struct cost_rates *costs)
{
    double list[N_COSTS];
    for (int i = 0; i < N_COSTS; i++) {
        char *end;
        list[i] = text_number(line, &end);
        if (end == line || !(list[i] > 0 && list[i] < 1)) return false;
        line = end;
    }
    memcpy(costs, list, sizeof list);
    return *line == 0;
}

static bool read_choice(const char *line, struct partita_wisdom *wisdom)
{
    struct remembered choice;
    int key = 0;
    if (sscanf(line, "%31s %zu %n", choice.engine, &choice.transform, &key) != 2 || !key)
        return false;
    if (strlen(line + key) >= KEY_SIZE) return false;
    keep(wisdom, line + key, &choice);
    return true;
}

// FFTW's text spans lines: its length says where it ends.
static bool read_fftw(const char *line, bool f64, char **text)
{
    char *end;
    const size_t length = strtoul(line, &end, 10);
    if (*end || length >= strlen(*text) || (*text)[length] != '\n') return false;
    char *wisdom = *text;
    wisdom[length] = 0;
    *text += length + 1;
    return fft_wisdom_import(f64, wisdom);
}

// Fills a store from the lines of a verified file.
static bool parse(char *text, struct partita_wisdom *ret)
{
    char name[128];
    cost_model_machine(name, sizeof name, cpu_detect());
    const char *line = next_line(&text);
    if (!line || strcmp(line, HEADER) != 0) return false;
    line = next_line(&text);
    if (!line || strncmp(line, "host ", 5) != 0 || strcmp(line + 5, name) != 0) return false;
    cost_model_default(&ret->model, cpu_detect());
    int costs = 0, fftw = 0;
    while ((line = next_line(&text))) {
        bool good = false;
        if (!strncmp(line, "costs ", 6) && costs < 2)
            good = read_costs(line + 6, &ret->model.costs[costs++]);
        else if (!strncmp(line, "choice ", 7)) good = read_choice(line + 7, ret);
        else if (!strncmp(line, "fftw ", 5) && fftw < 2) good = read_fftw(line + 5, fftw++, &text);
        if (!good) return false;
    }
    ret->has_model = costs == 2;
    return costs != 1 && *text == 0;
}

// Moves the contents of a file into the store; choices of the same problem are replaced.
static void wisdom_merge(struct partita_wisdom *wisdom, const struct partita_wisdom *loaded)
{
    thread_lock(LOCK_WISDOM);
    if (loaded->has_model) {
        wisdom->model = loaded->model;
        wisdom->has_model = true;
    }
    for (size_t i = 0; i < loaded->n_entries; i++)
        keep(wisdom, loaded->entries[i].key, &loaded->entries[i].choice);
    thread_unlock(LOCK_WISDOM);
}

enum partita_status wisdom_load(struct partita_wisdom *wisdom, const char *path)
{
    const struct partita_log log = log_default();
    size_t length = 0;
    enum partita_status status;
    struct partita_wisdom loaded = {0};
    char *text = read_file(path, &length, &status);
    if (status == PARTITA_ERR_IO) log_line(&log, "%s: not readable, or no regular file", path);
    else if (status == PARTITA_OK && verify(text, length) && parse(text, &loaded))
        wisdom_merge(wisdom, &loaded);
    else if (status == PARTITA_OK)
        status = log_error(&log, PARTITA_ERR_STATE,
                           "%s: no wisdom of this version and machine, or damaged", path);
    free(loaded.entries);
    free(text);
    return status;
}
