// The fake driver in place of the real one, inside a test program.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cuda/nvrtc.h"
#include "base/memory.h"
#include "rondo/status.h"
#include "support/fake_cuda_state.h"

static rondo__cuda_api g_api;

void fake_cuda_install(void) {
    assert_int_equal(rondo__cuda_api_load(fake_cuda_resolve, NULL, &g_api), RONDO_STATUS_OK);
    rondo__cuda_set_api(&g_api);
}

// The machine code is the text, so that the driver may look at it.
static rondo_status compile_nothing(const char *source, rondo__cuda_image *out_image) {
    const size_t byte_count = sizeof(FAKE_MAGIC) + strlen(source);
    char *bytes = rondo__calloc(1, byte_count);
    if (bytes != NULL) {
        snprintf(bytes, byte_count, "%s%s", FAKE_MAGIC, source);
    }
    out_image->bytes = bytes;
    out_image->byte_count = byte_count;
    return bytes != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

void fake_cuda_install_compiler(void) {
    rondo__cuda_set_compiler(compile_nothing);
}

void fake_cuda_uninstall(void) {
    rondo__cuda_set_api(NULL);
    rondo__cuda_set_compiler(NULL);
}
