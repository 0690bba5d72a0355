// SPDX-License-Identifier: MIT
// Tests of the kernels for spectra and of plain loops, which test_kernels runs. Their state is a
// kernel_subject.
#ifndef PARTITA_TEST_SPECTRA_H
#define PARTITA_TEST_SPECTRA_H

void test_cmac(void **state);
void test_cmac_same_bits(void **state);
void test_add_and_scale(void **state);
void test_split_and_join(void **state);

#endif
