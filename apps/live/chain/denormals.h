// SPDX-License-Identifier: MIT
// Flushes denormal numbers to zero: the tail of a filter decays into them, and some processors then
// are a hundred times slower. This is a mode of the thread, so every callback sets it and restores
// the previous one.
#ifndef PARTITA_APPS_LIVE_DENORMALS_H
#define PARTITA_APPS_LIVE_DENORMALS_H

#include <stdint.h>
#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

// Sets the mode and returns the previous one.
static inline uint64_t denormals_off(void)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); // flush results to zero (FTZ), take operands as zero (DAZ)
    return before;
#elif defined(__aarch64__)
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | UINT64_C(1) << 24)); // FZ does both
    return before;
#else
    return 0;
#endif
}

static inline void denormals_restore(uint64_t before)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_setcsr((unsigned)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}

#endif
