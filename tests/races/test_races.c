// SPDX-License-Identifier: MIT
// The stand-in ends a process whose kernel has a race in shared memory or an address that is not
// aligned, and no other.
#include "support/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/arrays.h"
#include "races/races.h"

enum { THREADS = 32, TEXT = 4096 };

// Runs a kernel in a process of its own. Returns the signal that ended it, 0: none; stores what it
// wrote to stderr.
static int end_of(enum races_kernel kernel, char text[TEXT])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        signal(SIGILL, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        float *to = device_copy(NULL, THREADS * sizeof *to, 0);
        const bool ran = races_launch(kernel, to) == cudaSuccess &&
                         cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess;
        _exit(ran ? 0 : 1);
    }
    close(ends[1]);
    size_t n = 0;
    ssize_t got;
    while (n < TEXT - 1 && (got = read(ends[0], text + n, TEXT - 1 - n)) > 0) n += (size_t)got;
    text[n] = '\0';
    close(ends[0]);
    int status = 0;
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void races_end_the_process(void **state)
{
    static const struct {
        enum races_kernel kernel;
        const char *first, *second; // one of these, as threads have any order
    } racing[] = {
        {RACES_READ_AFTER_WRITE, "race: read of byte", "race: write of byte"},
        {RACES_WRITE_AFTER_READ, "race: write of byte", "race: read of byte"},
        {RACES_WRITE_AFTER_WRITE, "race: write of byte", "race: write of byte"},
        {RACES_BYTE, "race: write of byte", "race: write of byte"},
    };
    char text[TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof racing / sizeof *racing; i++) {
        assert_int_equal(end_of(racing[i].kernel, text), SIGABRT);
        if (!strstr(text, racing[i].first) && !strstr(text, racing[i].second))
            fail_msg("kernel %d: %s", racing[i].kernel, text);
        assert_non_null(strstr(text, "by thread "));
        assert_non_null(strstr(text, "races.cu:")); // by addr2line, part of gcc's tools
    }
}

static void addresses_trap(void **state)
{
    char text[TEXT];
    (void)state;
    assert_int_equal(end_of(RACES_MISALIGNED, text), SIGILL);
}

static void right_kernels_run(void **state)
{
    char text[TEXT];
    (void)state;
    assert_int_equal(end_of(RACES_NONE, text), 0);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(races_end_the_process),
        cmocka_unit_test(addresses_trap),
        cmocka_unit_test(right_kernels_run),
    };
    return run_all(tests);
}
