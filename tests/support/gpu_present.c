// support/gpu_present.c — see gpu_present.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/gpu_present.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/device.h"

bool gpu_is_present(int *in_out_failed_count) {
    rondo_device *gpu;
    if (rondo_device_open("cuda:0", &gpu) == RONDO_STATUS_OK) {
        rondo_device_release(gpu);
        return true;
    }
    const char *required = getenv("RONDO_REQUIRE");
    const bool is_required = required != NULL && strstr(required, "cuda") != NULL;
    printf("%s on cuda:0: %s\n", is_required ? "FAILED" : "skipped",
           rondo_error_get_last()->message);
    *in_out_failed_count += is_required ? 1 : 0;
    return false;
}
