// Every CUDA kernel of the op cases is built for three generations of chips, without a GPU.
//
// A stand-in for a device hands the texts to NVRTC and the launches to nobody: the host backend's
// table with another get_function, which compiles and throws the code away, and a launch that only
// counts. So each family's choice of kernel, options and generated text is what a real device of
// that generation would get.
//
//   test_kernel_cuda_compile [sm_N] [NAME]    only that generation, only ops whose name contains it
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "backend/cuda/nvrtc.h"
#include "base/error.h"
#include "base/hash.h"
#include "support/expect_ok.h"
#include "support/op_cases.h"
#include "support/ptx_turn.h"

enum {
    SKIP = 77,
    SEEN_MAX = 4096,
    OPTIONS_MAX = 32,
    HOPPER = 90,      // the first whose launches overlap
    MISSING_MAX = 0,  // cases whose op has no CUDA kernel
};

static const char *g_filter;
static int32_t g_only;  // this generation; 0: all
static int32_t g_arch;
static uint64_t g_seen[SEEN_MAX];
static size_t g_seen_count;
static size_t g_launch_count;

// Where launches overlap, the PTX shows that every kernel waits for its turn (support/ptx_turn.h).
static void check_turn(const char *source, const char *const *options, size_t option_count) {
    static const ptx_constant constants[] = {
        // x, w, bias, z, y: w is a constant where it is read early
        {"conv_tensor", 5, 1, 0},
        // x, w, sums of w, y, and the ends of the sums: w is a constant where it is read early
        {"byte_tensor", 12, 1, 0},
        {"conv_tma", 36, SIZE_MAX, 128},  // maps of x and of w, then pointers
        {"conv_depthwise_rows", 5, 1, 0},
        {"recurrent_sequence", 17, 2,
         0},  // x, w, r and more: r is a constant where it is read early
        {NULL, 0, 0, 0}};
    const char *all[OPTIONS_MAX];
    rondo__cuda_image ptx;
    char why[600];
    bool is_own = false;
    assert_true(option_count + 1 < OPTIONS_MAX);
    for (size_t i = 0; i < option_count; i++) {
        is_own = is_own || strcmp(options[i], "--gpu-architecture=sm_90a") == 0;
        all[i] = strcmp(options[i], "--gpu-architecture=sm_90a") == 0
                     ? "--gpu-architecture=compute_90a"
                     : options[i];
    }
    all[option_count] = "--gpu-architecture=compute_90";
    OK(rondo__cuda_compile(source, all, option_count + (is_own ? 0 : 1), g_arch, &ptx));
    if (!ptx_takes_turns(ptx.bytes, constants, why, sizeof why)) {
        fail_msg("%s", why);
    }
    rondo__cuda_image_deinit(&ptx);
}

static rondo_status compile_only(rondo_device *device, const char *source,
                                 const char *const *options, size_t option_count,
                                 const char *kernel_name, void **out_function) {
    static char function;
    rondo__cuda_image image;
    (void)device;
    (void)kernel_name;
    *out_function = &function;
    uint64_t hash = rondo__hash64(RONDO__HASH_SEED, source, strlen(source));
    for (size_t i = 0; i < option_count; i++) {
        hash = rondo__hash64(hash, options[i], strlen(options[i]) + 1);
    }
    for (size_t i = 0; i < g_seen_count; i++) {
        if (g_seen[i] == hash) {
            return RONDO_STATUS_OK;
        }
    }
    const rondo_status status = rondo__cuda_compile(source, options, option_count, g_arch, &image);
    if (status == RONDO_STATUS_OK) {
        rondo__cuda_image_deinit(&image);
        if (g_arch == HOPPER) {
            check_turn(source, options, option_count);
        }
        if (g_seen_count < SEEN_MAX) {
            g_seen[g_seen_count++] = hash;
        }
    }
    return status;
}

static rondo_status count_launch(rondo_stream *stream, const rondo_launch *launch) {
    (void)stream;
    (void)launch;
    g_launch_count += 1;
    return RONDO_STATUS_OK;
}

static rondo_status describe(int32_t ordinal, rondo_device_info *out_info) {
    (void)ordinal;
    *out_info = (rondo_device_info){
        .description = "stand-in",
        .available = true,
        .compute_units = 132,
        .arch_major = g_arch / 10,
        .arch_minor = g_arch % 10,
    };
    return RONDO_STATUS_OK;
}

static void compile_all(int32_t arch) {
    if (g_only != 0 && g_only != arch) {
        skip();
    }
    rondo__backend backend = rondo__backend_host;
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    op_case_counts counts;
    g_arch = arch;
    g_seen_count = 0;
    g_launch_count = 0;
    assert_int_equal(rondo_device_open("host", &device), RONDO_STATUS_OK);
    const rondo__backend *real = device->backend;
    backend.get_function = compile_only;
    backend.describe_device = describe;
    backend.launch = count_launch;
    assert_int_equal(rondo_stream_create(device, NULL, &stream), RONDO_STATUS_OK);
    device->backend = &backend;
    op_cases_issue(stream, g_filter, &counts);
    device->backend = real;
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    printf(
        "sm_%d: %zu issued, %zu failed, %zu without a kernel; %zu texts compiled, %zu launches\n",
        arch, counts.passed, counts.failed, counts.unsupported, g_seen_count, g_launch_count);
    assert_int_equal(counts.failed, 0);
    assert_true(counts.unsupported <= MISSING_MAX);
    assert_true(counts.passed > 0 && g_launch_count > 0);
}

static void test_kernel_cuda_compile__hopper(void **state) {
    (void)state;
    compile_all(HOPPER);
}

static void test_kernel_cuda_compile__ampere(void **state) {
    (void)state;
    compile_all(80);
}

static void test_kernel_cuda_compile__blackwell(void **state) {
    (void)state;
    compile_all(100);
}

int main(int argc, char **argv) {
    const bool is_one = argc > 1 && strncmp(argv[1], "sm_", 3) == 0;
    g_only = is_one ? (int32_t)strtol(argv[1] + 3, NULL, 10) : 0;
    g_filter = argc > 1 + is_one ? argv[1 + is_one] : NULL;
    int32_t version = 0;
    if (rondo__cuda_get_compiler_version(&version) != RONDO_STATUS_OK) {
        printf("skipped: %s\n", rondo_error_get_last()->message);
        return SKIP;
    }
    (void)setenv("RONDO_TUNE", "off", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_cuda_compile__hopper),
        cmocka_unit_test(test_kernel_cuda_compile__ampere),
        cmocka_unit_test(test_kernel_cuda_compile__blackwell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
