// device/work.h — the checks of work, wherever it is put.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/device.h"
#include "rondo/status.h"

// Each says INVALID in the name of the public `call`.
RONDO_MUST_USE rondo_status rondo__work_check_copy(const void *destination, const void *source,
                                                   size_t bytes, rondo_copy_kind kind,
                                                   const char *call);
RONDO_MUST_USE rondo_status rondo__work_check_fill(const void *destination, uint32_t element_bytes,
                                                   size_t count, const char *call);
RONDO_MUST_USE rondo_status rondo__work_check_arguments(const void *arguments,
                                                        size_t argument_bytes, const char *call);
// A launch that an older program gives is read into *whole, and stands there.
RONDO_MUST_USE rondo_status rondo__work_check_launch(const rondo_launch **in_out_launch,
                                                     rondo_launch *whole, const char *call);
