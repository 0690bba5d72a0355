// SPDX-License-Identifier: MIT
// See library_log.h. PortAudio loads ALSA and JACK; the program is not linked with them.
#include "library_log.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef void alsa_handler(const char *file, int line, const char *function, int error,
                          const char *format, ...);
typedef int alsa_set_handler(alsa_handler *handler);
typedef void jack_handler(const char *text);
typedef void jack_set_handler(jack_handler *handler);

static void ignore_alsa(const char *file, int line, const char *function, int error,
                        const char *format, ...)
{
    (void)file, (void)line, (void)function, (void)error, (void)format;
}

static void ignore_jack(const char *text)
{
    (void)text;
}

// dlsym returns functions as POSIX requires; ISO C has no cast for that, hence memcpy.
static void find_function(const char *name, void *ret_function)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(ret_function, &found, sizeof found);
}

void library_log_silence(void)
{
    alsa_set_handler *set_alsa;
    jack_set_handler *set_jack;
    find_function("snd_lib_error_set_handler", &set_alsa);
    if (set_alsa) set_alsa(ignore_alsa);
    static const char *const jack_setters[] = {"jack_set_error_function", "jack_set_info_function"};
    for (size_t i = 0; i < sizeof jack_setters / sizeof *jack_setters; i++) {
        find_function(jack_setters[i], &set_jack);
        if (set_jack) set_jack(ignore_jack);
    }
}
