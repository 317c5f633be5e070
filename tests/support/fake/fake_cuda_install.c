// The fake driver in place of the real one, inside a test program.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "backend/cuda/compile/nvrtc.h"
#include "base/memory.h"
#include "rondo/status.h"
#include "support/fake/fake_cuda_state.h"
#include "support/test.h"

static rondo__cuda_api g_api;

void fake_cuda_install(void) {
    assert_int_equal(rondo__cuda_api_load(fake_cuda_resolve, NULL, &g_api), RONDO_STATUS_OK);
    rondo__cuda_set_api(&g_api);
}

// The machine code is the options, a line each, and the text, so that the driver may look at them.
static rondo_status compile_nothing(const char *source, const char *const *options,
                                    size_t option_count, rondo__cuda_image *out_image) {
    size_t byte_count = sizeof(FAKE_MAGIC) + strlen(source);
    for (size_t i = 0; i < option_count; i++) {
        byte_count += strlen(options[i]) + 1;
    }
    char *bytes = rondo__calloc(1, byte_count);
    if (bytes != NULL) {
        strcpy(bytes, FAKE_MAGIC);
        for (size_t i = 0; i < option_count; i++) {
            strcat(strcat(bytes, options[i]), "\n");
        }
        strcat(bytes, source);
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
