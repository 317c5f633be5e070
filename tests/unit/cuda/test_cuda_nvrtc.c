// NVRTC and the library's kernel texts, without a GPU: each text for three generations of chips,
// or, with an argument K/N of several parts, for one of them, by K another.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/compile/nvrtc.h"
#include "backend/cuda/driver/discover.h"
#include "core_cu_sources.h"
#include "cu_sources.h"
#include "rondo/log.h"
#include "rondo/status.h"
#include "support/test.h"

enum { SKIP = 77, CHIPS = 3 };

static size_t g_part = 1, g_part_count = 1;

static const char g_good_text[] =
    "extern \"C\" __global__ void add(float *x, float y) { x[threadIdx.x] += y * SCALE; }\n";

TEST(test_cuda_nvrtc__compiles_to_machine_code) {
    static const char *const options[] = {"-DSCALE=2"};
    rondo__cuda_image image;
    assert_int_equal(rondo__cuda_compile(g_good_text, options, 1, 90, &image), RONDO_STATUS_OK);
    assert_true(image.byte_count > 100);
    assert_memory_equal(image.bytes, "\177ELF", 4);
    rondo__cuda_image_deinit(&image);
    assert_null(image.bytes);
}

// A chip the compiler has never heard of gets PTX of the newest one it knows.
TEST(test_cuda_nvrtc__falls_back_to_ptx) {
    static const char *const options[] = {"-DSCALE=2"};
    rondo__cuda_image image;
    assert_int_equal(rondo__cuda_compile(g_good_text, options, 1, 990, &image), RONDO_STATUS_OK);
    assert_int_equal(image.bytes[image.byte_count - 1], '\0');
    assert_non_null(strstr(image.bytes, ".target sm_"));
    assert_non_null(strstr(image.bytes, ".entry add"));
    rondo__cuda_image_deinit(&image);
}

TEST(test_cuda_nvrtc__refuses_chips_it_has_dropped) {
    rondo__cuda_image image;
    assert_int_equal(rondo__cuda_compile(g_good_text, NULL, 0, 20, &image),
                     RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "2.0"));
    assert_null(image.bytes);
}

static void count_line(void *user_data, rondo_log_level level, const char *message) {
    (void)level;
    if (strstr(message, "missing_name") != NULL) {
        ++*(int *)user_data;
    }
}

TEST(test_cuda_nvrtc__bad_text_names_its_error) {
    int lines = 0;
    rondo_log_set_sink(count_line, &lines);
    rondo__cuda_image image;
    assert_int_equal(
        rondo__cuda_compile("__global__ void f() { missing_name = 1; }", NULL, 0, 90, &image),
        RONDO_STATUS_BAD_DATA);
    rondo_log_set_sink(NULL, NULL);
    assert_non_null(strstr(rondo_error_get_last()->message, "missing_name"));
    assert_string_equal(rondo_error_get_last()->driver_name, "NVRTC_ERROR_COMPILATION");
    assert_true(lines > 0);
    assert_null(image.bytes);
}

TEST(test_cuda_nvrtc__own_target_wins) {
    static const char *const options[] = {"-DSCALE=2", "--gpu-architecture=compute_90a"};
    rondo__cuda_image image;
    assert_int_equal(rondo__cuda_compile(g_good_text, options, 2, 80, &image), RONDO_STATUS_OK);
    assert_non_null(strstr(image.bytes, ".target sm_90a"));
    rondo__cuda_image_deinit(&image);
}

TEST(test_cuda_nvrtc__too_many_options) {
    const char *options[100];
    for (size_t i = 0; i < 100; i++) {
        options[i] = "-DX";
    }
    rondo__cuda_image image;
    assert_int_equal(rondo__cuda_compile(g_good_text, options, 100, 90, &image),
                     RONDO_STATUS_INVALID);
}

// One text for the oldest and the newest chips it serves; what only Hopper can run, for that.
static size_t compile_for_chips(const rondo__cu_source *source, size_t index) {
    static const int32_t archs[CHIPS] = {80, 90, 100};
    static const char *const of_hopper[] = {"--gpu-architecture=sm_90a"};
    const bool is_of_hopper = strcmp(source->name, "conv_tma") == 0;
    const int32_t first_arch = strcmp(source->name, "ring_row") == 0 ? 90 : 80;
    size_t failure_count = 0;
    for (size_t j = 0; j < CHIPS; j++) {
        rondo__cuda_image image;
        const bool is_served = is_of_hopper ? archs[j] == 90 : archs[j] >= first_arch;
        const bool is_for_all = !is_of_hopper && first_arch == archs[0];
        if (!is_served || (g_part_count > 1 && is_for_all && (index + g_part) % CHIPS != j)) {
            continue;
        }
        rondo_status status = rondo__cuda_compile(source->text, is_of_hopper ? of_hopper : NULL,
                                                  is_of_hopper ? 1 : 0, archs[j], &image);
        if (status != RONDO_STATUS_OK) {
            print_error("%s.cu for sm_%d: %s\n", source->name, (int)archs[j],
                        rondo_error_get_last()->message);
            failure_count++;
        }
        rondo__cuda_image_deinit(&image);
    }
    return failure_count;
}

TEST(test_cuda_nvrtc__every_text_compiles) {
    size_t failure_count = 0;
    for (size_t i = 0; i < rondo__core_cu_source_count; i++) {
        failure_count += compile_for_chips(&rondo__core_cu_sources[i], i);
    }
    for (size_t i = 0; i < rondo__cu_source_count; i++) {
        failure_count += compile_for_chips(&rondo__cu_sources[i], i);
    }
    print_message("compiled %zu texts\n", rondo__core_cu_source_count + rondo__cu_source_count);
    assert_int_equal(failure_count, 0);
}

TEST(test_cuda_nvrtc__unknown_library) {
    rondo__library *library = NULL;
    assert_int_equal(rondo__cuda_open_library("cunothing", &library), RONDO_STATUS_INVALID);
    assert_null(library);
}

int main(int argc, char **argv) {
    int32_t version = 0;
    if (argc > 1 && sscanf(argv[1], "%zu/%zu", &g_part, &g_part_count) != 2) {
        return 2;
    }
    if (rondo__cuda_get_compiler_version(&version) != RONDO_STATUS_OK) {
        const char *required = getenv("RONDO_REQUIRE");
        printf("skipped: %s\n", rondo_error_get_last()->message);
        return required != NULL && strstr(required, "nvrtc") != NULL ? 1 : SKIP;
    }
    printf("NVRTC %d.%d\n", (int)version / 1000, (int)version % 1000 / 10);
    return RUN_TESTS(NULL, NULL);
}
