// SPDX-License-Identifier: MIT
// Stands in for peers whose libraries were not found when this was built.
#include "peers/peers.h"

#define ABSENT(peer, library)                                                                      \
    bool peer(struct contender *contender, const struct workload *w)                               \
    {                                                                                              \
        (void)w;                                                                                   \
        snprintf(contender->reason, sizeof contender->reason,                                      \
                 "%s was not found when this was built", library);                                 \
        return false;                                                                              \
    }

#ifndef HAVE_ZITA
ABSENT(peer_zita, "zita-convolver")
#endif

#ifndef HAVE_AFIR
ABSENT(peer_afir, "libavfilter")
#endif

#ifndef HAVE_TEXTBOOK
ABSENT(peer_textbook_uniform, "FFTW")
ABSENT(peer_textbook_two_stage, "FFTW")
#endif

#ifndef HAVE_ONEDNN
ABSENT(peer_onednn, "oneDNN 2")
ABSENT(peer_onednn_reorder, "oneDNN 2")
ABSENT(peer_onednn_winograd, "oneDNN 2")
#endif

#ifndef HAVE_CUFFT
ABSENT(peer_cufft_complex, "cuFFT")
ABSENT(peer_cufft_real, "cuFFT")
ABSENT(peer_cufft_blocks, "cuFFT")
#endif

#ifndef HAVE_TWO_PASSES
ABSENT(peer_two_passes, "nvcc")
#endif

#ifndef HAVE_PW_SIMPLE
ABSENT(peer_pw_simple, "FFTW")
#endif

#ifndef HAVE_OPENBLAS
ABSENT(peer_openblas, "OpenBLAS")
#endif
