// Primitives that helpers make while a plan's kernels are prepared (kernel/host/dnnl_ahead.h): what
// was surveyed is found in oneDNN's cache when it is prepared, for its own number of threads.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
// cmocka wants the four above first
#include <cmocka.h>

#include "base/thread_count.h"
#include "kernel/host/dnnl_ahead.h"
#include "support/expect_ok.h"

typedef struct row {
    const char *op;  // with its domain
    int64_t x[5], w[5], y[5];
    bool is_weight_known;
    bool is_reference;
    bool is_made_ahead;
} row;

// Channels first; the last ones are none of oneDNN's convolutions.
static const row rows[] = {
    {".Conv", {1, 8, 9, 9}, {16, 8, 3, 3}, {1, 16, 7, 7}, true, false, true},
    {".Conv", {2, 8, 9, 9}, {16, 8, 3, 3}, {2, 16, 7, 7}, true, false, true},
    {".Conv", {1, 8, 9, 9}, {16, 8, 1, 1}, {1, 16, 9, 9}, false, false, true},
    {".Conv", {3, 16, 64, 64}, {32, 16, 3, 3}, {3, 32, 62, 62}, true, false, true},
    {"rondo.Conv", {5, 16, 64, 64}, {32, 16, 3, 3}, {5, 32, 62, 62}, true, false, true},
    {".Conv", {1, 8, 9, 1}, {16, 8, 3, 1}, {1, 16, 7, 1}, true, false, false},
    {".Conv", {0, 8, 9, 9}, {16, 8, 3, 3}, {0, 16, 7, 7}, true, false, false},
    {".Conv", {1, 8, 5, 5}, {16, 8, 3, 3}, {1, 16, 3, 3}, true, true, false},
    {".Relu", {1, 8, 9, 9}, {0}, {1, 8, 9, 9}, false, false, false},
};
enum { ROW_COUNT = sizeof rows / sizeof *rows, THREADS = 3 };

typedef struct asked {
    rondo__op op;
    rondo_tensor weight;
    rondo__tensor_info inputs[2];
    rondo__tensor_info output;
    rondo__kernel_request request;
} asked;

static rondo__tensor_info get_info(const int64_t *extents) {
    rondo__tensor_info info = {
        .dtype = RONDO_DTYPE_F32, .is_shape_known = true, .shape = {.rank = 4}};
    memcpy(info.shape.extent, extents, 4 * sizeof *extents);
    return info;
}

static void ask(rondo_device *device, rondo__weight_list *weights, const row *r, asked *out) {
    *out = (asked){.inputs = {get_info(r->x), get_info(r->w)}, .output = get_info(r->y)};
    const bool is_rondo = r->op[0] == 'r';
    out->op.def =
        rondo__op_lookup(is_rondo ? "rondo" : "", strchr(r->op, '.') + 1, is_rondo ? 1 : 21);
    assert_non_null(out->op.def);
    out->op.name = strdup("case");
    out->op.opset = 21;
    if (r->is_weight_known) {
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &out->inputs[1].shape, &out->weight));
        memset(out->weight.data, 0, rondo_tensor_get_bytes(&out->weight));
        out->inputs[1].constant = &out->weight;
    }
    out->request = (rondo__kernel_request){.device = device,
                                           .op = &out->op,
                                           .weights = weights,
                                           .input_count = r->w[0] != 0 ? 2 : 1,
                                           .inputs = out->inputs,
                                           .output_count = 1,
                                           .outputs = &out->output,
                                           .use_reference = r->is_reference};
}

// What oneDNN says about the primitives that it makes meanwhile.
static FILE *begin_listening(int *out_former) {
    FILE *said = tmpfile();
    assert_non_null(said);
    (void)fflush(stdout);
    *out_former = dup(STDOUT_FILENO);
    assert_true(dup2(fileno(said), STDOUT_FILENO) >= 0);
    assert_int_equal(dnnl_set_verbose(2), dnnl_success);
    return said;
}

static void count_lines(FILE *said, int former, size_t *out_hits, size_t *out_misses) {
    char line[1024];
    (void)dnnl_set_verbose(0);
    (void)fflush(stdout);
    assert_true(dup2(former, STDOUT_FILENO) >= 0);
    (void)close(former);
    rewind(said);
    *out_hits = *out_misses = 0;
    while (fgets(line, sizeof line, said) != NULL) {
        if (strstr(line, ",convolution,") != NULL) {
            *out_hits += strstr(line, "create:cache_hit") != NULL;
            *out_misses += strstr(line, "create:cache_miss") != NULL;
        }
    }
    (void)fclose(said);
}

static void wait_for(const rondo__kernel_ahead *ahead, size_t count) {
    for (int i = 0; i < 20000 && rondo__dnnl_ahead_count(ahead) < count; ++i) {
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
    }
}

static void what_was_surveyed_is_found(void **state) {
    (void)state;
    static asked all[ROW_COUNT];
    size_t wanted = 0;
    size_t hits, misses;
    int former;
    rondo_device *device;
    rondo__weight_account account = {0};
    rondo__weight_list weights;
    rondo__kernel_ahead *ahead = rondo__kernel_ahead_create();
    if (ahead == NULL) {
        print_message("skipped: one processor, or oneDNN keeps no primitives\n");
        skip();
    }
    (void)rondo__host_choose_thread_count(THREADS);  // others than a thread has by itself
    OK(rondo_device_open("host", &device));
    OK(rondo__weight_store_create(device, RONDO_MEMORY_DEVICE, &account.store));
    OK(rondo_stream_create(device, NULL, &account.stream));
    rondo__weight_list_init(&account, &weights);
    for (size_t i = 0; i < ROW_COUNT; ++i) {
        ask(device, &weights, &rows[i], &all[i]);
        all[i].request.ahead = ahead;
        rondo__kernel_survey(&all[i].request);
        wanted += rows[i].is_made_ahead;
    }
    rondo__kernel_ahead_begin(ahead);
    wait_for(ahead, wanted);
    assert_int_equal(rondo__dnnl_ahead_count(ahead), wanted);
    FILE *said = begin_listening(&former);
    for (size_t i = 0; i < ROW_COUNT; ++i) {
        rondo__kernel *kernel;
        OK(rondo__kernel_prepare(&all[i].request, &kernel));
        rondo__kernel_destroy(kernel);
    }
    count_lines(said, former, &hits, &misses);
    assert_int_equal(misses, 0);
    assert_int_equal(hits, wanted);
    assert_int_equal(rondo__dnnl_ahead_count(ahead), wanted);
    rondo__kernel_ahead_destroy(ahead);
    rondo__weight_list_cut(&weights, 0);
    rondo__weight_store_destroy(account.store);
    rondo_stream_destroy(account.stream);
    for (size_t i = 0; i < ROW_COUNT; ++i) {
        rondo_tensor_deinit(&all[i].weight);
        rondo__op_deinit(&all[i].op);
    }
    rondo_device_release(device);
    (void)rondo__host_choose_thread_count(0);
}

static void nothing_has_to_be_begun(void **state) {
    (void)state;
    rondo__kernel_ahead_begin(NULL);
    rondo__kernel_ahead_destroy(NULL);
    rondo__kernel_ahead_destroy(rondo__kernel_ahead_create());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_surveyed_is_found),
        cmocka_unit_test(nothing_has_to_be_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
