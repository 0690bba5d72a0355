// SPDX-License-Identifier: MIT
// Other implementations as contenders, one file each. absent.c stands in for those whose libraries
// were not found.
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include "runner/runner.h"

open_fn peer_fma_peak;
open_fn peer_onednn, peer_onednn_reorder, peer_onednn_winograd, peer_openblas; // bench_layer
open_fn peer_pw_simple;
open_fn peer_cufft_complex, peer_cufft_real, peer_cufft_blocks, peer_two_passes; // bench_gpu
open_fn peer_liquid_fir, peer_liquid_fft;
open_fn peer_zita, peer_afir, peer_textbook_uniform, peer_textbook_two_stage; // bench_stream
open_fn peer_scipy_oaconvolve, peer_scipy_fftconvolve;
open_fn peer_numpy_convolve;         // short signals: the mean of many calls
open_fn peer_scipy_correlate;        // cases with lags
open_fn peer_scipy_rfft;             // layers of causal sequences
open_fn peer_torch, peer_torch_last; // bench_network
open_fn peer_ffmpeg, peer_sox;       // bench_cli, with the workload that command.h requires

#endif
