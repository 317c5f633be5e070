// Every CUDA kernel of the op cases is built for three generations of chips, without a GPU.
//
// A stand-in for a device hands the texts to NVRTC and the launches to nobody: the host backend's
// table with another get_function, which compiles and throws the code away, and a launch that only
// counts. So each family's choice of kernel, options and generated text is what a real device of
// that generation would get.
//
// Hopper gets the most kernels, and all its texts are compiled. Of the others' texts those are that
// Hopper does not get; of what it gets, too, one of each kind. Texts of one file are of a kind that
// call the same op_... functions and whose options differ only in numbers: what one generation
// compiles and another one does not is an instruction or a branch on __CUDA_ARCH__, never the size
// of a tile.
//
//   test_kernel_cuda_compile [sm_N] [NAME]    only that generation, only ops whose name contains it
//   test_kernel_cuda_compile sm_N K/N         the kth of n parts of its texts
// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cuda/compile/nvrtc.h"
#include "base/error.h"
#include "base/hash.h"
#include "support/cases/op_cases.h"
#include "support/expect_ok.h"
#include "support/ptx_turn.h"
#include "support/test.h"

enum {
    SKIP = 77,
    SEEN_MAX = 4096,
    HOPPER = 90,  // the first whose launches overlap
    // Cases without a CUDA kernel: ConvTranspose of no elements, rondo.LayFilters to f32.
    MISSING_MAX = 4,
};

static const char *g_filter;
static int32_t g_only;                         // this generation; 0: all
static unsigned g_part = 1, g_part_count = 1;  // of the texts that are to be compiled
static size_t g_text_count;
static int32_t g_arch;
typedef struct hash_set {
    uint64_t hashes[SEEN_MAX];
    size_t count;
} hash_set;

static hash_set g_seen;    // texts of this generation
static hash_set g_hopper;  // of Hopper, while another generation's are compiled
static hash_set g_kinds;
static bool g_is_listing;  // Hopper's texts: nothing is compiled
static size_t g_compiled_count, g_launch_count;

// False: it was there before.
static bool insert(hash_set *set, uint64_t hash) {
    for (size_t i = 0; i < set->count; i++) {
        if (set->hashes[i] == hash) {
            return false;
        }
    }
    assert_true(set->count < SEEN_MAX);
    set->hashes[set->count++] = hash;
    return true;
}

static bool contains(const hash_set *set, uint64_t hash) {
    for (size_t i = 0; i < set->count; i++) {
        if (set->hashes[i] == hash) {
            return true;
        }
    }
    return false;
}

static bool is_word(char letter) {
    return isalnum((unsigned char)letter) || letter == '_';
}

// Of the first line, which names the file, and of each op_... function that is named.
static uint64_t hash_calls(const char *source) {
    uint64_t hash = rondo__hash64(RONDO__HASH_SEED, source, strcspn(source, "\n"));
    for (const char *at = strstr(source, "op_"); at != NULL; at = strstr(at + 1, "op_")) {
        size_t length = 0;
        while (is_word(at[length])) {
            length++;
        }
        hash = rondo__hash64(hash, at, length);
    }
    return hash;
}

// Of what stands between the numbers; those of names ("f16") belong to them.
static uint64_t hash_without_numbers(uint64_t hash, const char *text) {
    bool is_number = false;
    for (const char *at = text; *at != '\0'; at++) {
        is_number = isdigit((unsigned char)*at) && (is_number || at == text || !is_word(at[-1]));
        hash = is_number ? hash : rondo__hash64(hash, at, 1);
    }
    return rondo__hash64(hash, "", 1);
}

// Where launches overlap, the PTX shows that every kernel waits for its turn (support/ptx_turn.h).
static void check_turn(const char *ptx) {
    static const ptx_constant constants[] = {
        // x, w, bias, z, y: w is a constant where it is read early
        {"conv_tensor", 5, 1u << 1, 0},
        // x, w, sums of w, y, and the ends of the sums: w is a constant where it is read early
        {"byte_tensor", 12, 1u << 1, 0},
        {"conv_tma", 36, 0, 128},  // maps of x and of w, then pointers
        {"conv_depthwise_rows", 5, 1u << 1, 0},
        // x, w, r and more: r is a constant where it is read early
        {"recurrent_sequence", 17, 1u << 2, 0},
        // x, w, bias, z, y: w is a constant
        {"half_row", 5, 1u << 1, 0},
        // the same, then numbers, gain and gate, which is a constant, too
        {"ring_row", 13, 1u << 1 | 0x3fu << 5 | 1u << 12, 0},
        {"half_few", 13, 1u << 1 | 0x3fu << 5 | 1u << 12, 0},
        // x, b, scales, zeros, bias, y, gain, and three of a gate, which are constants as b is
        {"bits_row", 10, 7u << 1 | 7u << 7, 0},
        {"bits_few", 10, 7u << 1 | 7u << 7, 0},
        {NULL, 0, 0, 0}};
    char why[600];
    if (!ptx_takes_turns(ptx, constants, why, sizeof why)) {
        fail_msg("%s", why);
    }
}

static rondo_status compile(const char *source, const char *const *options, size_t option_count) {
    rondo__cuda_image image = {0}, ptx = {0};
    g_compiled_count++;
    const rondo_status status =
        g_arch == HOPPER
            ? rondo__cuda_compile_both(source, options, option_count, g_arch, &image, &ptx)
            : rondo__cuda_compile(source, options, option_count, g_arch, &image);
    if (status == RONDO_STATUS_OK && g_arch == HOPPER) {
        check_turn(ptx.bytes);
    }
    rondo__cuda_image_deinit(&image);
    rondo__cuda_image_deinit(&ptx);
    return status;
}

static rondo_status compile_only(rondo_device *device, const char *source,
                                 const char *const *options, size_t option_count,
                                 const char *kernel_name, void **out_function) {
    static char function;
    (void)device;
    (void)kernel_name;
    *out_function = &function;
    uint64_t hash = rondo__hash64(RONDO__HASH_SEED, source, strlen(source));
    uint64_t kind = hash_calls(source);
    for (size_t i = 0; i < option_count; i++) {
        hash = rondo__hash64(hash, options[i], strlen(options[i]) + 1);
        kind = hash_without_numbers(kind, options[i]);
    }
    if (g_is_listing) {
        (void)insert(&g_hopper, hash);
        return RONDO_STATUS_OK;
    }
    if (!insert(&g_seen, hash)) {
        return RONDO_STATUS_OK;
    }
    const bool is_new_kind = insert(&g_kinds, kind);
    const bool is_due = is_new_kind || !contains(&g_hopper, hash);
    return is_due && g_text_count++ % g_part_count == g_part - 1
               ? compile(source, options, option_count)
               : RONDO_STATUS_OK;
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

static op_case_counts issue_all(int32_t arch) {
    rondo__backend backend = rondo__backend_host;
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    op_case_counts counts;
    g_arch = arch;
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
    return counts;
}

static void compile_all(int32_t arch) {
    if (g_only != 0 && g_only != arch) {
        skip();
    }
    g_seen.count = g_hopper.count = g_kinds.count = 0;
    g_compiled_count = g_text_count = 0;
    if (arch != HOPPER) {
        g_is_listing = true;
        (void)issue_all(HOPPER);
        g_is_listing = false;
    }
    const op_case_counts counts = issue_all(arch);
    printf(
        "sm_%d: %zu issued, %zu failed, %zu without a kernel; %zu texts, %zu compiled, "
        "%zu launches\n",
        arch, counts.passed, counts.failed, counts.unsupported, g_seen.count, g_compiled_count,
        g_launch_count);
    assert_int_equal(counts.failed, 0);
    assert_true(counts.unsupported <= MISSING_MAX);
    assert_true(counts.passed > 0 && g_launch_count > 0);
}

TEST(test_kernel_cuda_compile__hopper) {
    compile_all(HOPPER);
}

TEST(test_kernel_cuda_compile__ampere) {
    compile_all(80);
}

TEST(test_kernel_cuda_compile__blackwell) {
    compile_all(100);
}

int main(int argc, char **argv) {
    const bool is_one = argc > 1 && strncmp(argv[1], "sm_", 3) == 0;
    g_only = is_one ? (int32_t)strtol(argv[1] + 3, NULL, 10) : 0;
    g_filter = argc > 1 + is_one ? argv[1 + is_one] : NULL;
    if (g_filter != NULL && sscanf(g_filter, "%u/%u", &g_part, &g_part_count) == 2) {
        g_filter = NULL;
        if (g_part == 0 || g_part > g_part_count) {
            printf("a part is 1/N to N/N\n");
            return EXIT_FAILURE;
        }
    }
    int32_t version = 0;
    if (rondo__cuda_get_compiler_version(&version) != RONDO_STATUS_OK) {
        printf("skipped: %s\n", rondo_error_get_last()->message);
        return SKIP;
    }
    (void)setenv("RONDO_TUNE", "off", 1);
    return RUN_TESTS(NULL, NULL);
}
