// SPDX-License-Identifier: MIT
// Input files, wall time and results of whole commands. Timing runs from fork to exit: starting,
// reading, filtering, writing. Files are in memory (/dev/shm) if they fit, so that no disk is
// measured.
#include "peers/command.h"

#include <fcntl.h>
#include <math.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RATE = 48000, CHUNK = 65536 };

// Gains of the signal and of the taps in their files: noise in [-0.5, 0.5) has an RMS of
// 1/sqrt(12), so both signal and result have an RMS of a tenth of full scale and do not clip at 16
// bits.
static const double signal_gain = 0.1 * 3.4641016151377544;

static double taps_gain(const struct workload *w)
{
    return 3.4641016151377544 / sqrt((double)w->n_taps);
}

void command_shape(struct workload *w)
{
    size_t bytes = w->n_taps * sizeof(float);
    for (size_t c = 0; c < w->in_channels; c++)
        memset(w->x + c * w->n_frames * sizeof(float), 0, bytes);
    for (size_t c = 1; c < w->out_channels; c++) memcpy(w->h + c * bytes, w->h, bytes);
}

// Writes channels (planar, n frames each) as an interleaved WAV, scaled.
static bool wav_write(const char *path, const float *x, size_t n, int channels, double gain,
                      int format)
{
    SF_INFO info = {.samplerate = RATE, .channels = channels, .format = SF_FORMAT_WAV | format};
    SNDFILE *file = sf_open(path, SFM_WRITE, &info);
    float *frames = bench_allocate(CHUNK * (size_t)channels * sizeof(float));
    bool ok = file != NULL;
    for (size_t at = 0; ok && at < n; at += CHUNK) {
        size_t m = n - at < CHUNK ? n - at : CHUNK;
        for (size_t i = 0; i < m; i++)
            for (size_t c = 0; c < (size_t)channels; c++)
                frames[i * (size_t)channels + c] = (float)gain * x[c * n + at + i];
        ok = sf_writef_float(file, frames, (sf_count_t)m) == (sf_count_t)m;
    }
    free(frames);
    return (file == NULL || sf_close(file) == 0) && ok;
}

static bool coefficients_write(const char *path, const float *h, size_t n, double gain)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    for (size_t i = 0; i < n; i++) fprintf(file, "%.9g\n", gain * (double)h[i]);
    return fclose(file) == 0;
}

// Starts argv with its standard output discarded.
static pid_t command_start(const struct command *command)
{
    pid_t child = fork();
    if (child != 0) return child;
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    execvp(command->argv[0], (char *const *)command->argv);
    _exit(127);
}

static double command_pass(void *state, const struct workload *w, double *calls)
{
    (void)w;
    (void)calls;
    int status = 0;
    double before = bench_now();
    pid_t child = command_start(state);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return NAN;
    return bench_now() - before;
}

// Peak resident memory of a running process so far; 0 after it ended. (The rusage of a child
// includes the memory of this program, from between fork and exec.)
static size_t peak_bytes(pid_t child)
{
    char path[64], line[128];
    size_t kilobytes = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)child);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    while (kilobytes == 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0) kilobytes = strtoul(line + 6, NULL, 10);
    fclose(file);
    return kilobytes * 1024;
}

static bool command_fetch(void *state, struct workload *w)
{
    struct command *command = state;
    SF_INFO info = {0};
    SNDFILE *file = sf_open(command->out, SFM_READ, &info);
    size_t channels = w->out_channels, at = command->skipped;
    if (file == NULL) return false;
    bool ok =
        (size_t)info.channels == channels && info.format == (SF_FORMAT_WAV | SF_FORMAT_PCM_16);
    if (!ok)
        fprintf(stderr, "%s writes %d channels, format %x\n", command->argv[0], info.channels,
                info.format);
    float *frames = bench_allocate(CHUNK * channels * sizeof(float)), *y = (float *)w->y;
    float gain = (float)(1 / signal_gain / taps_gain(w));
    for (size_t c = 0; c < channels; c++) memset(y + c * w->n_out, 0, at * sizeof(float));
    for (sf_count_t m = 1; ok && m > 0;) {
        m = sf_readf_float(file, frames, CHUNK);
        for (size_t i = 0; i < (size_t)m && at < w->n_out; i++, at++)
            for (size_t c = 0; c < channels; c++)
                y[c * w->n_out + at] = gain * frames[i * channels + c];
    }
    free(frames);
    sf_close(file);
    return ok;
}

static void command_close(void *state)
{
    struct command *command = state;
    unlink(command->in);
    unlink(command->ir);
    unlink(command->out);
    unlink(command->coefficients);
    rmdir(command->folder);
    free(command);
}

struct command *command_create(struct contender *contender, const struct workload *w)
{
    struct command *command = bench_allocate(sizeof *command);
    struct statvfs status;
    size_t needed = w->n_frames * w->in_channels * 8;
    bool shm = statvfs("/dev/shm", &status) == 0 && status.f_bavail * status.f_bsize > needed;
    snprintf(command->folder, sizeof command->folder, "%s/partita-bench-XXXXXX",
             shm ? "/dev/shm" : "/tmp");
    bool ok = mkdtemp(command->folder) != NULL;
    snprintf(command->in, COMMAND_PATH, "%s/in.wav", command->folder);
    snprintf(command->ir, COMMAND_PATH, "%s/ir.wav", command->folder);
    snprintf(command->out, COMMAND_PATH, "%s/out.wav", command->folder);
    snprintf(command->coefficients, COMMAND_PATH, "%s/coefficients.txt", command->folder);
    const float *x = (const float *)w->x, *h = (const float *)w->h;
    ok =
        ok &&
        wav_write(command->in, x, w->n_frames, (int)w->in_channels, signal_gain,
                  SF_FORMAT_PCM_16) &&
        wav_write(command->ir, h, w->n_taps, (int)w->out_channels, taps_gain(w), SF_FORMAT_FLOAT) &&
        coefficients_write(command->coefficients, h, w->n_taps, taps_gain(w));
    contender->state = command;
    contender->pass = command_pass;
    contender->fetch = command_fetch;
    contender->close = command_close;
    // Rounding to 16 bits before and after has errors of 2^-15/sqrt(12) each, at a level of 0.1;
    // the gate is twice the root of their sum of squares.
    contender->gate = 2 * sqrt(2) * 0x1p-15 / 3.4641016151377544 / 0.1;
    if (ok) return command;
    snprintf(contender->reason, sizeof contender->reason, "cannot write %s", command->folder);
    command_close(command);
    return NULL;
}

bool command_ready(struct contender *contender, const char *const *argv, size_t n_words)
{
    struct command *command = contender->state;
    int status = 0;
    memcpy(command->argv, argv, n_words * sizeof *argv);
    pid_t child = command_start(command);
    usleep(20000); // so that it is past exec
    while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
        size_t now = peak_bytes(child);
        if (now > contender->bytes) contender->bytes = now;
        usleep(2000);
    }
    if (child > 0 && status == 0) return true;
    snprintf(contender->reason, sizeof contender->reason, "%s is missing or fails",
             command->argv[0]);
    command_close(command);
    return false;
}
