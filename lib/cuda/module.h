// SPDX-License-Identifier: MIT
#ifndef PARTITA_CUDA_MODULE_H
#define PARTITA_CUDA_MODULE_H

#include "core/device.h"

// Opens device `index` of this process; the module exports this.
// Errors: PARTITA_ERR_DEVICE, text says why; PARTITA_ERR_NOMEM.
enum partita_status cuda_open(size_t index, char *text, size_t size, struct device **ret_device);

#endif
