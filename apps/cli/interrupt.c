// SPDX-License-Identifier: MIT
// See interrupt.h. The handler calls only write, unlink, signal and raise, which are
// async-signal-safe.
#include "interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "io/bytes/temp.h"

static int wake[2] = {-1, -1};
static volatile sig_atomic_t end_on_interrupt;

static void handle_interrupt(int signal_number)
{
    if (signal_number == SIGINT && end_on_interrupt) {
        end_on_interrupt = 0;
        if (write(wake[1], "", 1) == 1) return;
    }
    temp_discard_on_signal();
    signal(signal_number, SIG_DFL); // the parent process sees that the signal ended the program
    raise(signal_number);
}

void interrupt_install(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    signal(SIGPIPE, SIG_DFL); // a closed pipe ends the program silently, also if it was started
                              // with SIGPIPE ignored
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before, action = {.sa_handler = handle_interrupt, .sa_flags = SA_RESTART};
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN)
            continue; // nohup
        sigaction(signals[i], &action, NULL);
    }
}

int interrupt_as_end_of_input(void)
{
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK)) return -1;
    end_on_interrupt = 1;
    return wake[0];
}
