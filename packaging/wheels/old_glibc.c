// SPDX-License-Identifier: MIT
// Functions of libm in the versions that glibc had before 2.29. The linker's option --wrap sends
// calls of exp to __wrap_exp (packaging/wheels/toolchain.py). In any glibc, both versions compute
// the same values.
#ifdef __aarch64__
#define FIRST_VERSION "GLIBC_2.17"
#else
#define FIRST_VERSION "GLIBC_2.2.5"
#endif

#define WRAPPED(name, parameters, arguments)                                                       \
    __asm__(".symver old_" #name ", " #name "@" FIRST_VERSION);                                    \
    double old_##name parameters;                                                                  \
    double __wrap_##name parameters;                                                               \
    double __wrap_##name parameters                                                                \
    {                                                                                              \
        return old_##name arguments;                                                               \
    }

WRAPPED(exp, (double x), (x))
WRAPPED(exp2, (double x), (x))
WRAPPED(log, (double x), (x))
WRAPPED(log2, (double x), (x))
WRAPPED(pow, (double x, double y), (x, y))
