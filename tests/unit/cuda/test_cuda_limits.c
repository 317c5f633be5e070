// What no GPU takes does not compile: with NVRTC, and with the compiler of the emulated GPU, which
// stands in for it where kernels are tried without one.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/compile/nvrtc.h"
#include "rondo/log.h"
#include "rondo/status.h"
#include "support/test.h"

enum { SKIP = 77 };

// 48 KiB, of which a function declares 256 bytes; and SPARE bytes more.
static const char g_text[] =
    "__device__ float turn(float x) { __shared__ float own[64]; own[threadIdx.x & 63] = x;\n"
    "    __syncthreads(); return own[threadIdx.x + 1 & 63]; }\n"
    "extern \"C\" __global__ void many(float *x) {\n"
    "    __shared__ float held[12224 + SPARE / 4]; held[threadIdx.x] = turn(x[threadIdx.x]);\n"
    "    __syncthreads(); x[threadIdx.x] = held[x[0] > 0.0f ? 12223 : threadIdx.x]; }\n"
    "extern \"C\" __global__ void few(float *x) { __shared__ float held[64];\n"
    "    held[threadIdx.x] = x[0]; __syncthreads(); x[0] = held[threadIdx.x ^ 1]; }\n";

static void ignore_line(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    (void)message;
}

TEST(test_cuda_limits__declared_shared_memory) {
    static const char *const fits[] = {"-DSPARE=0"}, *const exceeds[] = {"-DSPARE=4"};
    rondo__cuda_image image;
    rondo_log_set_sink(ignore_line, NULL);
    assert_int_equal(rondo__cuda_compile(g_text, fits, 1, 80, &image), RONDO_STATUS_OK);
    rondo__cuda_image_deinit(&image);
    assert_int_equal(rondo__cuda_compile(g_text, exceeds, 1, 80, &image), RONDO_STATUS_BAD_DATA);
    rondo_log_set_sink(NULL, NULL);
    assert_non_null(strstr(rondo_error_get_last()->message, "many"));
    assert_non_null(strstr(rondo_error_get_last()->message, "too much shared data"));
    assert_null(image.bytes);
}

int main(void) {
    int32_t version = 0;
    if (rondo__cuda_get_compiler_version(&version) != RONDO_STATUS_OK) {
        printf("skipped: %s\n", rondo_error_get_last()->message);
        return SKIP;
    }
    return RUN_TESTS(NULL, NULL);
}
