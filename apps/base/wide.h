// SPDX-License-Identifier: MIT
// Loops over samples that are compiled for the baseline of the architecture and for AVX2, of which
// the processor's is called. AVX2 alone has no fused operations, so both give the same bits.
#ifndef PARTITA_APPS_WIDE_H
#define PARTITA_APPS_WIDE_H

// WIDE_LOOP(type, name, (parameters), (arguments)) { body }
#ifdef __x86_64__
#define WIDE_BODY(type, name) static inline __attribute__((always_inline)) type name##_body
#define WIDE_LOOP(type, name, parameters, arguments)                                               \
    WIDE_BODY(type, name) parameters;                                                              \
    __attribute__((target("avx2"))) static type name##_avx2 parameters                             \
    {                                                                                              \
        return name##_body arguments;                                                              \
    }                                                                                              \
    static type name parameters                                                                    \
    {                                                                                              \
        return __builtin_cpu_supports("avx2") ? name##_avx2 arguments : name##_body arguments;     \
    }                                                                                              \
    WIDE_BODY(type, name) parameters
#else
#define WIDE_LOOP(type, name, parameters, arguments) static type name parameters
#endif

#endif
