// The examples of places, on a GPU of the fake driver: what they print is right, and the copies
// that they count are those that they expect.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <string.h>

#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

int crop_placement_main(int argc, char **argv);
int embedding_main(int argc, char **argv);

#define main crop_placement_main
#include "../../examples/crop_placement.c"
#undef main
#undef CHECK
#define main embedding_main
#define build build_embedding
#include "../../examples/embedding.c"
#undef build
#undef main

// copy_strided.cu, for the slice, which is 16 bytes long, and the crop, which has all of g_y.
static void copy_strided(const void *arguments, size_t argument_bytes) {
    int64_t numbers[3 + 3 * 8];
    const size_t rank = (argument_bytes / sizeof *numbers - 3) / 3;
    memcpy(numbers, arguments, argument_bytes);
    const size_t bytes = (numbers[0] <= 2 ? 16 : sizeof g_y) / (size_t)numbers[0];
    const char *x;
    char *y;
    memcpy(&x, &numbers[1], sizeof x);
    memcpy(&y, &numbers[2], sizeof y);
    for (int64_t k = 0; k < numbers[0]; ++k) {
        int64_t rest = k;
        int64_t from = 0;
        int64_t to = 0;
        for (size_t d = rank; d-- > 0;) {
            const int64_t i = d > 0 ? rest % numbers[3 + d] : rest;
            rest = d > 0 ? rest / numbers[3 + d] : 0;
            from += i * numbers[3 + rank + d];
            to += i * numbers[3 + 2 * rank + d];
        }
        memcpy(y + (size_t)to * bytes, x + (size_t)from * bytes, bytes);
    }
}

static int open_fake(void **state) {
    static const fake_cuda_options options = {
        .device_count = 1, .driver_version = 13000, .has_get_proc_address = true};
    (void)state;
    fake_cuda_reset(&options);
    fake_cuda_install();
    fake_cuda_install_compiler();
    fake_cuda_set_kernel("copy_strided", copy_strided);
    return 0;
}

static int close_fake(void **state) {
    (void)state;
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
    return 0;
}

TEST(test_executor_placement_examples__crop) {
    char program[] = "crop_placement";
    char device[] = "cuda:0";
    char *arguments[] = {program, device, NULL};
    (void)state;
    assert_int_equal(crop_placement_main(2, arguments), EXIT_SUCCESS);
}

// The fake driver has kernels for what works element by element, so the rest is placed elsewhere.
TEST(test_executor_placement_examples__embedding) {
    char *arguments[] = {strdup("embedding"),   strdup("cuda:0"),   strdup("--place"),
                         strdup("Reduce*=cpu"), strdup("--place"),  strdup("Div*=cpu"),
                         strdup("--place"),     strdup("Mul*=cpu"), NULL};
    (void)state;
    assert_int_equal(embedding_main(8, arguments), EXIT_SUCCESS);
    for (size_t i = 0; arguments[i] != NULL; ++i) {
        free(arguments[i]);
    }
}

TEST_MAIN_WITH(open_fake, close_fake)
