// Several ranks: sums and averages of each type, eager and replayed; training by halves of a batch
// against the whole; ranks that differ, leave, fail or are killed; launchers; what is refused.
//
// Ranks are threads or processes, and on the host they use sockets. On GPUs they use NCCL: --gpus
// COUNT, or --processes 2 for the latter alone.
// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
// cmocka wants those above first
#include <cmocka.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/ranks_world.h"
#include "support/short_forms.h"

extern char **environ;

#define TRY(call)                            \
    do {                                     \
        const rondo_status status_ = (call); \
        if (status_ != RONDO_STATUS_OK) {    \
            return status_;                  \
        }                                    \
    } while (0)

static const char *device_name = "host";
static int32_t rank_max = 5;  // on GPUs: how many there are, up to 2
enum { ROWS = 12, COLUMNS = 7, RUNS = 6 };

// ---- sums ---------------------------------------------------------------------------------------

// x0 = rank + i of each type; of small whole numbers all sums are exact.
static const rondo_dtype sum_types[] = {RONDO_DTYPE_F32,  RONDO_DTYPE_F64, RONDO_DTYPE_F16,
                                        RONDO_DTYPE_BF16, RONDO_DTYPE_I32, RONDO_DTYPE_I64};
enum { TYPES = sizeof sum_types / sizeof *sum_types, REALS = 4, ELEMENTS = 5 };

static const char *const sum_names[] = {"s0", "s1", "s2", "s3", "s4", "s5"};
static const char *const mean_names[] = {"m0", "m1", "m2", "m3"};
static const char *const wide_names[] = {"w0", "w1", "w2", "w3", "w4", "w5"};

static rondo_status add_cast(rondo_builder *b, const char *from, const char *to,
                             rondo_dtype dtype) {
    // ONNX's numbers of the types.
    const int64_t number = dtype == RONDO_DTYPE_F32    ? 1
                           : dtype == RONDO_DTYPE_F64  ? 11
                           : dtype == RONDO_DTYPE_F16  ? 10
                           : dtype == RONDO_DTYPE_BF16 ? 16
                           : dtype == RONDO_DTYPE_I32  ? 6
                                                       : 7;
    return rondo_builder_add_node(b, "Cast", &from, 1, &to, 1, &WITH(ATTRIBUTE_INT("to", number)));
}

static rondo_status make_sums(rondo_program **out_program) {
    static const char *const typed[] = {"t0", "t1", "t2", "t3", "t4", "t5"};
    rondo_builder *b;
    rondo_status status = rondo_builder_create(NULL, &b);
    status = status == RONDO_STATUS_OK
                 ? rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, ELEMENTS))
                 : status;
    for (size_t i = 0; i < TYPES && status == RONDO_STATUS_OK; ++i) {
        status = add_cast(b, "x", typed[i], sum_types[i]);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_all_reduce(b, RONDO_REDUCTION_SUM, typed, sum_names, TYPES);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_all_reduce(b, RONDO_REDUCTION_AVERAGE, typed, mean_names, REALS);
    }
    static const char *const wide_means[] = {"v0", "v1", "v2", "v3"};
    for (size_t i = 0; i < TYPES + REALS && status == RONDO_STATUS_OK; ++i) {
        const char *from = i < TYPES ? sum_names[i] : mean_names[i - TYPES];
        const char *to = i < TYPES ? wide_names[i] : wide_means[i - TYPES];
        status = add_cast(b, from, to, RONDO_DTYPE_F64);
        status = status == RONDO_STATUS_OK ? rondo_builder_add_output(b, to, NULL) : status;
    }
    status = status == RONDO_STATUS_OK ? rondo_builder_finish(b, out_program) : status;
    rondo_builder_destroy(b);
    return status;
}

static void open_executor(rank_world *w, rondo_program *program, rondo_graphs_mode graphs,
                          rondo_executor **out_executor) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .graphs = graphs, .communicator = w->communicator};
    *out_executor = NULL;
    RANK_OK(w, rondo_executor_create(program, w->device, &options, out_executor));
}

static void run_sums(rank_world *w, rondo_executor *executor, int run) {
    float x[ELEMENTS];
    rondo_binding fetches[TYPES + REALS] = {
        {.name = "w0"}, {.name = "w1"}, {.name = "w2"}, {.name = "w3"}, {.name = "w4"},
        {.name = "w5"}, {.name = "v0"}, {.name = "v1"}, {.name = "v2"}, {.name = "v3"}};
    for (int i = 0; i < ELEMENTS; ++i) {
        x[i] = (float)(w->rank * 2 + i + run);
    }
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, ELEMENTS);
    RANK_OK(w, rondo_executor_run(executor, &feed, 1, fetches, TYPES + REALS));
    for (int k = 0; k < TYPES + REALS; ++k) {
        const double *got = fetches[k].tensor.data;
        for (int i = 0; i < ELEMENTS; ++i) {
            const double sum = (double)(w->size * (w->size - 1) + w->size * (i + run));
            RANK_TRUE(w, got[i] == (k < TYPES ? sum : sum / w->size));
        }
        rondo_tensor_deinit(&fetches[k].tensor);
    }
}

static void sum_up(rank_world *w) {
    static const rondo_graphs_mode modes[] = {RONDO_GRAPHS_ON, RONDO_GRAPHS_OFF};
    for (size_t m = 0; m < 2; ++m) {
        rondo_program *program;
        rondo_executor *executor;
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        RANK_OK(w, make_sums(&program));
        open_executor(w, program, modes[m], &executor);
        for (int run = 0; run < RUNS && w->problem[0] == '\0'; ++run) {
            run_sums(w, executor, run);
        }
        const bool is_good =
            w->problem[0] == '\0' && rondo_executor_get_stats(executor, &stats) == RONDO_STATUS_OK;
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
        if (!is_good) {
            return;
        }
        RANK_TRUE(w, stats.bypassed_count == 0 && stats.segment_count == 1);
        RANK_TRUE(w, stats.replay_run_count == (m == 0 ? RUNS - 1 : 0));
    }
}

static rondo_status add(rondo_builder *b, const char *op, const char *x, const char *y,
                        const char *out) {
    return rondo_builder_add_node(b, op, (const char *[]){x, y}, y != NULL ? 2 : 1, &out, 1, NULL);
}

static rondo_status make_sum_of(rondo_reduction reduction, int64_t count, bool gathers,
                                rondo_program **out_program) {
    rondo_builder *b;
    TRY(rondo_builder_create(NULL, &b));
    rondo_status status = rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, count));
    const char *from = gathers ? "g" : "x";
    if (gathers) {
        status = status != RONDO_STATUS_OK
                     ? status
                     : rondo_builder_add_input(b, &PORT("at", RONDO_DTYPE_I64, 1));
        status = status != RONDO_STATUS_OK ? status : add(b, "Gather", "x", "at", "g");
    }
    status = status != RONDO_STATUS_OK
                 ? status
                 : rondo_builder_add_all_reduce(b, reduction, &from, (const char *[]){"y"}, 1);
    status = status != RONDO_STATUS_OK ? status : rondo_builder_add_output(b, "y", NULL);
    status = status != RONDO_STATUS_OK ? status : rondo_builder_finish(b, out_program);
    rondo_builder_destroy(b);
    return status;
}

// The sum of what the ranks have is out of range.
static void average_large(rank_world *w) {
    float x[ELEMENTS];
    float y[ELEMENTS] = {0};
    const float *const end = x + ELEMENTS;
    for (float *at = x; at < end; ++at) {
        *at = at == x ? -FLT_MAX : FLT_MAX / (float)(at - x);
    }
    rondo_program *program;
    rondo_executor *executor;
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, ELEMENTS);
    rondo_binding fetch = BIND("y", RONDO_DTYPE_F32, y, ELEMENTS);
    RANK_OK(w, make_sum_of(RONDO_REDUCTION_AVERAGE, ELEMENTS, false, &program));
    open_executor(w, program, RONDO_GRAPHS_AUTO, &executor);
    RANK_OK(w, rondo_executor_run(executor, &feed, 1, &fetch, 1));
    for (int i = 0; i < ELEMENTS; ++i) {
        RANK_TRUE(w, fabs((double)y[i] / (double)x[i] - 1.0) <= 1e-6);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

static void test_averages_are_finite(void **state) {
    (void)state;
    for (int32_t size = 1; size <= rank_max && size < 5; ++size) {
        ranks_world_run(size, device_name, average_large, NULL);
    }
}

static void test_sums(void **state) {
    (void)state;
    ranks_world_run(1, device_name, sum_up, NULL);
    for (int32_t size = 2; size <= rank_max; size += 3) {
        ranks_world_run(size, device_name, sum_up, NULL);
    }
}

// ---- training -----------------------------------------------------------------------------------

typedef struct lesson {
    bool scale_loss;
    int64_t accumulate;
    double clip_norm;
    size_t bucket_bytes;
    bool is_half;                                // matrices are averaged in f16
    float weights[COLUMNS + COLUMNS * COLUMNS];  // of the ranks, after training
    float whole[COLUMNS + COLUMNS * COLUMNS];    // of one process
} lesson;

static void fill(uint32_t seed, size_t count, float *out) {
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)((double)(seed >> 8) / 16777216.0 - 0.5);
    }
}

static rondo_status add_weights(rondo_builder *b, const char *name, int64_t rows) {
    float values[COLUMNS * COLUMNS];
    const rondo_tensor tensor = {
        .dtype = RONDO_DTYPE_F32, .shape = {2, {rows, COLUMNS}}, .data = values};
    fill((uint32_t)rows, (size_t)rows * COLUMNS, values);
    return rondo_builder_add_parameter(b, name, &tensor, RONDO_PARAMETER_COPIED);
}

// loss = mean((tanh(x w) v')^2), over rows of x.
static rondo_status make_lesson(const lesson *l, bool has_ranks, rondo_program **out_program) {
    const rondo_minimize_options options = {.struct_size = sizeof options,
                                            .optimizer = RONDO_OPTIMIZER_ADAM,
                                            .learning_rate = 0.01,
                                            .scale_loss = l->scale_loss,
                                            .accumulate = l->accumulate,
                                            .clip_norm = l->clip_norm,
                                            .average_ranks = has_ranks,
                                            .bucket_bytes = l->bucket_bytes};
    rondo_builder *b;
    TRY(rondo_builder_create(NULL, &b));
    rondo_status status = rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, -1, COLUMNS));
    status = status != RONDO_STATUS_OK ? status : add_weights(b, "w", COLUMNS);
    status = status != RONDO_STATUS_OK ? status : add_weights(b, "v", 1);
    status = status != RONDO_STATUS_OK ? status : add(b, "MatMul", "x", "w", "a");
    status = status != RONDO_STATUS_OK ? status : add(b, "Tanh", "a", NULL, "t");
    status = status != RONDO_STATUS_OK ? status : add(b, "Mul", "t", "v", "p");
    status = status != RONDO_STATUS_OK ? status : add(b, "Mul", "p", "p", "q");
    status = status != RONDO_STATUS_OK ? status : rondo_builder_add_mean(b, "q", "loss");
    status = status != RONDO_STATUS_OK ? status : rondo_builder_add_output(b, "loss", NULL);
    status = status != RONDO_STATUS_OK ? status : rondo_builder_minimize(b, "loss", &options);
    status = status != RONDO_STATUS_OK ? status : rondo_builder_finish(b, out_program);
    rondo_builder_destroy(b);
    return status;
}

static rondo_status read_weights(rondo_executor *executor, const char *name, float *out) {
    rondo_tensor now;
    TRY(rondo_executor_get_variable(executor, name, &now));
    const rondo_tensor to = {.dtype = now.dtype, .shape = now.shape, .data = out};
    rondo_stream *stream = rondo_executor_get_stream(executor);
    rondo_status status = rondo_tensor_copy(stream, &now, &to);
    status = status == RONDO_STATUS_OK ? rondo_stream_synchronize(stream) : status;
    rondo_tensor_deinit(&now);
    return status;
}

enum { PLAN_BYTES = 20000 };

static bool keep_text(void *data, const char *text, size_t bytes) {
    const size_t used = strlen(data);
    const size_t taken = bytes < PLAN_BYTES - 1 - used ? bytes : PLAN_BYTES - 1 - used;
    memcpy((char *)data + used, text, taken);
    ((char *)data)[used + taken] = '\0';
    return true;
}

// Whether the last bucket comes behind the count of ranks whose gradients are not finite, which it
// takes along, and the update of what is in the others before the update of what is in it.
static bool is_last_behind(const char *plan) {
    const char *last = NULL;
    const char *check = strstr(plan, "rondo.Finite");
    const char *update = strstr(plan, "rondo.Update");
    for (const char *next = strstr(plan, "rondo.AllReduce"); next != NULL;
         next = strstr(next + 1, "rondo.AllReduce")) {
        last = next;
    }
    if (check == NULL || last == NULL || update == NULL) {
        return false;
    }
    const char *end = strchr(last, '\n');
    const char *gradient = strstr(last, ", 7]");
    const char *count = strstr(last, "f32 []");
    return check < last && last < update && gradient != NULL && gradient < end && count != NULL &&
           count < end && strstr(update + 1, "rondo.Update") != NULL;
}

// Whether the plan averages the gradient of `w` in that type, and in that order.
static bool is_averaged_in(rondo_executor *executor, const char *dtype, bool has_last) {
    static _Thread_local char plan[PLAN_BYTES];
    char wanted[32];
    bool is = false;
    plan[0] = '\0';
    (void)snprintf(wanted, sizeof wanted, "%s [%d, %d]", dtype, COLUMNS, COLUMNS);
    if (rondo_executor_describe(executor, RONDO_TEXT_PLAIN, keep_text, plan) != RONDO_STATUS_OK ||
        (has_last && !is_last_behind(plan))) {
        return false;
    }
    for (char *line = strstr(plan, "rondo.AllReduce"); line != NULL && !is;
         line = strstr(line + 1, "rondo.AllReduce")) {
        const char *end = strchr(line, '\n');
        const char *found = strstr(line, wanted);
        is = found != NULL && (end == NULL || found < end);
    }
    return is;
}

// Takes rows [rank, rank + 1) * rows / size of each batch.
static void learn(rank_world *w) {
    lesson *l = w->data;
    const bool has_ranks = w->communicator != NULL;
    const int64_t rows = ROWS / w->size;
    rondo_program *program;
    rondo_executor *executor;
    const char *const averages = "AllReduce";
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .dtype = RONDO_DTYPE_F16,
                                            .use_f16 = &averages,
                                            .use_f16_count = 1,
                                            .communicator = w->communicator};
    RANK_OK(w, make_lesson(l, has_ranks, &program));
    if (l->is_half && has_ranks) {
        executor = NULL;
        RANK_OK(w, rondo_executor_create(program, w->device, &options, &executor));
    } else {
        open_executor(w, program, RONDO_GRAPHS_AUTO, &executor);
    }
    float *got = has_ranks ? l->weights : l->whole;
    float own[COLUMNS + COLUMNS * COLUMNS];
    for (uint32_t run = 0; run < RUNS && w->problem[0] == '\0'; ++run) {
        float x[ROWS * COLUMNS];
        fill(100 + run, ROWS * COLUMNS, x);
        if (l->scale_loss && run == 3) {
            x[ROWS * COLUMNS - 1] = INFINITY;  // of one rank; all leave the step out
        }
        const rondo_binding feed =
            BIND("x", RONDO_DTYPE_F32, x + w->rank * rows * COLUMNS, rows, COLUMNS);
        RANK_OK(w, rondo_executor_run(executor, &feed, 1, NULL, 0));
    }
    RANK_TRUE(w, !has_ranks || is_averaged_in(executor, l->is_half ? "f16" : "f32",
                                              l->scale_loss && l->bucket_bytes > 0));
    RANK_OK(w, read_weights(executor, "v", own));
    RANK_OK(w, read_weights(executor, "w", own + COLUMNS));
    if (w->rank == 0) {
        memcpy(got, own, sizeof own);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

// A table of which each rank looks up its own row: loss = sum of that row, over ranks the average.
static void look_up(rank_world *w) {
    const rondo_minimize_options options = {
        .struct_size = sizeof options, .learning_rate = 1.0, .average_ranks = true};
    const int64_t row = w->rank;
    const rondo_binding feed = BIND("at", RONDO_DTYPE_I64, (void *)(uintptr_t)&row, 1);
    float values[COLUMNS * COLUMNS] = {0};
    rondo_builder *b;
    rondo_program *program;
    rondo_executor *executor;
    const rondo_tensor table = {
        .dtype = RONDO_DTYPE_F32, .shape = {2, {3, COLUMNS}}, .data = values};
    RANK_OK(w, rondo_builder_create(NULL, &b));
    RANK_OK(w, rondo_builder_add_input(b, &PORT("at", RONDO_DTYPE_I64, 1)));
    RANK_OK(w, rondo_builder_add_parameter(b, "t", &table, RONDO_PARAMETER_COPIED));
    RANK_OK(w, add(b, "Gather", "t", "at", "r"));
    RANK_OK(w, add(b, "ReduceSum", "r", NULL, "loss"));
    RANK_OK(w, rondo_builder_add_output(b, "loss", NULL));
    RANK_OK(w, rondo_builder_minimize(b, "loss", &options));
    RANK_OK(w, rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    open_executor(w, program, RONDO_GRAPHS_AUTO, &executor);
    for (int run = 0; run < 3; ++run) {
        RANK_OK(w, rondo_executor_run(executor, &feed, 1, NULL, 0));
    }
    RANK_OK(w, read_weights(executor, "t", values));
    for (int i = 0; i < 3 * COLUMNS; ++i) {
        RANK_TRUE(w, values[i] == (i < 2 * COLUMNS ? -1.5f : 0.0f));
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

static void test_training(void **state) {
    (void)state;
    static const struct {
        bool scale_loss;
        int64_t accumulate;
        double clip_norm;
        size_t bucket_bytes;
        bool is_half;
    } cases[] = {{false, 0, 0.0, 0, false},
                 {true, 0, 0.0, 1, false},
                 {false, 2, 0.01, 64, false},
                 {true, 0, 0.0, 0, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        lesson l = {.scale_loss = cases[i].scale_loss,
                    .accumulate = cases[i].accumulate,
                    .clip_norm = cases[i].clip_norm,
                    .bucket_bytes = cases[i].bucket_bytes,
                    .is_half = cases[i].is_half};
        rank_world alone = {.size = 1, .data = &l};
        OK(rondo_device_open("host", &alone.device));
        learn(&alone);
        assert_string_equal(alone.problem, "");
        rondo_device_release(alone.device);
        ranks_world_run(rank_max < 2 ? rank_max : 2, device_name, learn, &l);
        for (size_t k = 0; k < COLUMNS + COLUMNS * COLUMNS; ++k) {
            const double difference = fabs((double)l.weights[k] - (double)l.whole[k]);
            assert_true(difference <= (l.is_half ? 2e-3 : 2e-5));
        }
    }
    if (rank_max > 1) {
        ranks_world_run(2, device_name, look_up, NULL);
    }
}

// ---- ranks that do not go on --------------------------------------------------------------------

static rondo_status run_plain(rondo_executor *executor, int64_t count) {
    float x[64] = {0};
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, count);
    return rondo_executor_run(executor, &feed, 1, NULL, 0);
}

static void differ(rank_world *w) {
    rondo_program *program;
    rondo_executor *executor;
    const int64_t count = w->rank == 0 ? 5 : 9;
    RANK_OK(w, make_sum_of(RONDO_REDUCTION_SUM, count, false, &program));
    open_executor(w, program, RONDO_GRAPHS_AUTO, &executor);
    for (int i = 0; i < 2; ++i) {  // and again
        const rondo_status status = run_plain(executor, count);
        RANK_TRUE(w, status == RONDO_STATUS_MISMATCH);
        const char *message = rondo_error_get_last()->message;
        RANK_TRUE(w, strstr(message, "rank 0 has sum of f32 x 5") != NULL);
        RANK_TRUE(w, strstr(message, "rank 1 has sum of f32 x 9") != NULL);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

// Rank 1 takes up another program after two runs; the other still has the first.
static void differ_later(rank_world *w) {
    rondo_program *programs[2];
    rondo_executor *executors[2];
    RANK_OK(w, make_sum_of(RONDO_REDUCTION_SUM, 4, false, &programs[0]));
    RANK_OK(w, make_sum_of(RONDO_REDUCTION_AVERAGE, 4, false, &programs[1]));
    open_executor(w, programs[0], RONDO_GRAPHS_AUTO, &executors[0]);
    open_executor(w, programs[1], RONDO_GRAPHS_AUTO, &executors[1]);
    for (int run = 0; run < 3; ++run) {
        RANK_OK(w, run_plain(executors[0], 4));
        RANK_OK(w, run_plain(executors[1], 4));
    }
    const rondo_status status = run_plain(executors[w->rank], 4);
    RANK_TRUE(w, status == RONDO_STATUS_MISMATCH);
    RANK_TRUE(w, strstr(rondo_error_get_last()->message, "run 7") != NULL);
    for (size_t i = 0; i < 2; ++i) {
        rondo_executor_destroy(executors[i]);
        rondo_program_destroy(programs[i]);
    }
}

static void leave_early(rank_world *w) {
    rondo_program *program;
    rondo_executor *executor;
    RANK_OK(w, make_sum_of(RONDO_REDUCTION_SUM, 4, false, &program));
    open_executor(w, program, RONDO_GRAPHS_AUTO, &executor);
    for (int run = 0; run < 3; ++run) {
        RANK_OK(w, run_plain(executor, 4));
    }
    if (w->rank != w->size - 1) {
        const rondo_status status = run_plain(executor, 4);
        RANK_TRUE(w, status == RONDO_STATUS_UNAVAILABLE);
        RANK_TRUE(w, strstr(rondo_error_get_last()->message, "has left after 3 runs") != NULL);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

static void fail_in_run(rank_world *w) {
    rondo_program *program;
    rondo_executor *executor;
    float x[4] = {0};
    const int64_t at = w->rank == 1 ? 17 : 1;
    const rondo_binding feeds[] = {BIND("x", RONDO_DTYPE_F32, x, 4),
                                   BIND("at", RONDO_DTYPE_I64, (void *)(uintptr_t)&at, 1)};
    RANK_OK(w, make_sum_of(RONDO_REDUCTION_SUM, 4, true, &program));
    open_executor(w, program, RONDO_GRAPHS_AUTO, &executor);
    const rondo_status status = rondo_executor_run(executor, feeds, 2, NULL, 0);
    RANK_TRUE(w, status == (w->rank == 1 ? RONDO_STATUS_BAD_DATA : RONDO_STATUS_UNAVAILABLE));
    RANK_TRUE(w, w->rank == 1 || strstr(rondo_error_get_last()->message,
                                        "rank 1 of 3 failed in run 1") != NULL);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

static void test_differences(void **state) {
    (void)state;
    ranks_world_run(2, device_name, differ, NULL);
    ranks_world_run(2, device_name, differ_later, NULL);
}

static void test_leaving(void **state) {
    (void)state;
    ranks_world_run(2, device_name, leave_early, NULL);
    if (strcmp(device_name, "host") == 0) {
        ranks_world_run(3, device_name, leave_early, NULL);
        ranks_world_run(3, device_name, fail_in_run, NULL);
    }
}

// Rank 1 is killed behind its second run, the others hear of it: in that run, if it has not come to
// its end at theirs, or in the next.
static void be_killed(rank_world *w) {
    rondo_program *program;
    rondo_executor *executor;
    RANK_OK(w, make_sum_of(RONDO_REDUCTION_SUM, 4, false, &program));
    open_executor(w, program, RONDO_GRAPHS_AUTO, &executor);
    RANK_OK(w, run_plain(executor, 4));
    rondo_status status = run_plain(executor, 4);
    RANK_TRUE(w, status == RONDO_STATUS_OK || (w->rank == 0 && status == RONDO_STATUS_UNAVAILABLE));
    if (w->rank == 1) {
        (void)raise(SIGKILL);
    }
    for (int i = 0; i < 2; ++i) {  // and again
        status = run_plain(executor, 4);
        RANK_TRUE(w, status == RONDO_STATUS_UNAVAILABLE);
        RANK_TRUE(w, strstr(rondo_error_get_last()->message, "rank 1 of 2 has ended") != NULL);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

// Starts rank 1 as a process of its own, which runs `what`.
static pid_t start_rank(const char *what, const char *meeting) {
    char arguments[][200] = {"test_training_ranks", "--rank", "1", "2", "", "", ""};
    char *argv[8] = {NULL};
    pid_t child;
    (void)snprintf(arguments[4], sizeof arguments[4], "%s", device_name);
    (void)snprintf(arguments[5], sizeof arguments[5], "%s", meeting);
    (void)snprintf(arguments[6], sizeof arguments[6], "%s", what);
    for (size_t i = 0; i < 7; ++i) {
        argv[i] = arguments[i];
    }
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    return child;
}

static const struct {
    const char *what;
    rank_function function;
} process_cases[] = {{"sums", sum_up}, {"differ", differ}, {"killed", be_killed}};

static int be_rank(char **argv) {
    for (size_t i = 0; i < sizeof process_cases / sizeof *process_cases; ++i) {
        if (strcmp(argv[6], process_cases[i].what) == 0) {
            char device[24];
            (void)snprintf(device, sizeof device, strcmp(argv[4], "cuda") == 0 ? "cuda:1" : "host");
            return ranks_world_run_one(atoi(argv[2]), atoi(argv[3]), device, argv[5],
                                       process_cases[i].function, NULL)
                       ? 0
                       : 1;
        }
    }
    return 2;
}

static void test_processes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof process_cases / sizeof *process_cases; ++i) {
        char meeting[200];
        int ended;
        ranks_world_name_meeting(meeting, sizeof meeting);
        const pid_t child = start_rank(process_cases[i].what, meeting);
        const bool is_good =
            ranks_world_run_one(0, 2, strcmp(device_name, "cuda") == 0 ? "cuda:0" : "host", meeting,
                                process_cases[i].function, NULL);
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_true(is_good);
        if (strcmp(process_cases[i].what, "killed") == 0) {
            assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
        } else {
            assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
        }
    }
}

// ---- launchers ----------------------------------------------------------------------------------

static void test_launchers(void **state) {
    (void)state;
    static const struct {
        const char *launcher;
        const char *set[8];
        int32_t rank, size, local_rank, local_size;
    } cases[] = {
        {"", {NULL}, 0, 1, 0, 1},
        {"Open MPI",
         {"OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_RANK",
          "1", "OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
         3,
         4,
         1,
         2},
        {"torchrun",
         {"RANK", "1", "WORLD_SIZE", "2", "LOCAL_RANK", "0", "LOCAL_WORLD_SIZE", "1"},
         1,
         2,
         0,
         1},
        {"MPICH",
         {"PMI_RANK", "1", "PMI_SIZE", "3", "MPI_LOCALRANKID", "1", "MPI_LOCALNRANKS", "3"},
         1,
         3,
         1,
         3},
        {"SLURM",
         {"SLURM_PROCID", "2", "SLURM_STEP_NUM_TASKS", "8", "SLURM_LOCALID", "0"},
         2,
         8,
         0,
         0},
        {"rondo", {"RONDO_RANK", "1", "RONDO_RANKS", "2"}, 1, 2, 1, 0},
        {"rondo",
         {"RONDO_RANK", "3", "RONDO_RANKS", "4", "RONDO_LOCAL_RANK", "1", "RONDO_LOCAL_RANKS", "2"},
         3,
         4,
         1,
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        rondo_ranks ranks = {.struct_size = sizeof ranks};
        for (size_t k = 0; k < 8 && cases[i].set[k] != NULL; k += 2) {
            assert_int_equal(setenv(cases[i].set[k], cases[i].set[k + 1], 1), 0);
        }
        OK(rondo_find_ranks(&ranks));
        assert_string_equal(ranks.launcher, cases[i].launcher);
        assert_int_equal(ranks.rank, cases[i].rank);
        assert_int_equal(ranks.size, cases[i].size);
        assert_int_equal(ranks.local_rank, cases[i].local_rank);
        assert_int_equal(ranks.local_size, cases[i].local_size);
        for (size_t k = 0; k < 8 && cases[i].set[k] != NULL; k += 2) {
            assert_int_equal(unsetenv(cases[i].set[k]), 0);
        }
    }
    static const char *const bad[][3] = {{"x", "2", "a number from 0"},
                                         {"2", "2", "ranks count from 0"},
                                         {"-1", "2", "a number from 0"},
                                         {"0", "0", "at least one rank"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        rondo_ranks ranks = {.struct_size = sizeof ranks};
        (void)setenv("RONDO_RANK", bad[i][0], 1);
        (void)setenv("RONDO_RANKS", bad[i][1], 1);
        assert_int_equal(rondo_find_ranks(&ranks), RONDO_STATUS_INVALID);
        assert_non_null(strstr(rondo_error_get_last()->message, bad[i][2]));
    }
    (void)unsetenv("RONDO_RANK");
    (void)unsetenv("RONDO_RANKS");
}

// ---- what is refused ----------------------------------------------------------------------------

static void expect_create(rondo_device *device, const rondo_communicator_options *options,
                          rondo_status status, const char *text) {
    rondo_communicator *communicator;
    assert_int_equal(rondo_communicator_create(device, options, &communicator), status);
    assert_null(communicator);
    assert_non_null(strstr(rondo_error_get_last()->message, text));
}

static void test_refusals(void **state) {
    (void)state;
    rondo_device *device;
    rondo_communicator *communicator;
    rondo_program *program;
    rondo_executor *executor;
    OK(rondo_device_open("host", &device));
    static const struct {
        rondo_communicator_options options;
        rondo_status status;
        const char *text;
    } cases[] = {
        {{.rank = 2, .size = 2}, RONDO_STATUS_INVALID, "options.rank is 2"},
        {{.rank = 0, .size = -1}, RONDO_STATUS_INVALID, "options.size"},
        {{.size = 2, .meeting = "here"}, RONDO_STATUS_INVALID, "neither HOST:PORT nor a path"},
        {{.size = 2, .meeting = "/nowhere/at/all", .wait_ms = 50},
         RONDO_STATUS_UNAVAILABLE,
         "cannot meet at /nowhere/at/all"},
        {{.rank = 1, .size = 2, .meeting = "/nowhere/at/all", .wait_ms = 50},
         RONDO_STATUS_UNAVAILABLE,
         "rank 1 of 2 met nobody"},
        {{.size = 1, .transport = RONDO_TRANSPORT_NCCL}, RONDO_STATUS_UNSUPPORTED, "by nccl"},
        {{.size = 1, .transport = 7}, RONDO_STATUS_INVALID, "7 is not a rondo_transport"},
        {{.size = 1, .transport = RONDO_TRANSPORT_MPI}, RONDO_STATUS_UNAVAILABLE, "mpirun"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        rondo_communicator_options options = cases[i].options;
        options.struct_size = sizeof options;
        expect_create(device, &options, cases[i].status, cases[i].text);
    }
    char meeting[200];
    ranks_world_name_meeting(meeting, sizeof meeting);
    const rondo_communicator_options early = {
        .struct_size = sizeof early, .size = 2, .meeting = meeting, .wait_ms = 50};
    expect_create(device, &early, RONDO_STATUS_UNAVAILABLE, "rank 1 of 2 did not come in time");

    // A program of ranks without ranks; a second communicator of a thread.
    OK(make_sum_of(RONDO_REDUCTION_SUM, 4, false, &program));
    OK(rondo_executor_create(program, device, NULL, &executor));
    assert_int_equal(run_plain(executor, 4), RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "options.communicator"));
    rondo_executor_destroy(executor);
    const rondo_communicator_options one = {.struct_size = sizeof one, .size = 1};
    OK(rondo_communicator_create(device, &one, &communicator));
    expect_create(device, &one, RONDO_STATUS_STATE, "this thread serves another communicator");
    const rondo_executor_options checked = {
        .struct_size = sizeof checked, .communicator = communicator, .self_check_every = 2};
    assert_int_equal(rondo_executor_create(program, device, &checked, &executor),
                     RONDO_STATUS_UNSUPPORTED);
    rondo_communicator_destroy(communicator);
    rondo_communicator_destroy(NULL);
    rondo_program_destroy(program);

    // Averages of whole numbers; a body; names.
    const char *in = "x";
    const char *out = "y";
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_I32, 2)));
    assert_int_equal(rondo_builder_add_all_reduce(b, 5, &in, &out, 1), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_builder_add_all_reduce(b, 0, &in, &out, 0), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_builder_add_all_reduce(b, 0, &in, &out, 241), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_builder_add_all_reduce(b, 0, &out, &in, 1), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_builder_add_all_reduce(b, 0, &in, &in, 1), RONDO_STATUS_INVALID);
    OK(rondo_builder_add_all_reduce(b, RONDO_REDUCTION_AVERAGE, &in, &out, 1));
    OK(rondo_builder_add_output(b, "y", NULL));
    rondo_status status = rondo_builder_finish(b, &program);
    if (status == RONDO_STATUS_OK) {
        OK(rondo_executor_create(program, device, NULL, &executor));
        int32_t numbers[2] = {0};
        const rondo_binding feed = BIND("x", RONDO_DTYPE_I32, numbers, 2);
        status = rondo_executor_run(executor, &feed, 1, NULL, 0);
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
    }
    assert_int_equal(status, RONDO_STATUS_UNSUPPORTED);
    rondo_builder_destroy(b);
    rondo_device_release(device);
}

int main(int argc, char **argv) {
    static const struct CMUnitTest all[] = {
        cmocka_unit_test(test_sums),      cmocka_unit_test(test_averages_are_finite),
        cmocka_unit_test(test_training),  cmocka_unit_test(test_differences),
        cmocka_unit_test(test_leaving),   cmocka_unit_test(test_processes),
        cmocka_unit_test(test_launchers), cmocka_unit_test(test_refusals),
    };
    static const struct CMUnitTest threads[] = {
        cmocka_unit_test(test_sums),     cmocka_unit_test(test_averages_are_finite),
        cmocka_unit_test(test_training), cmocka_unit_test(test_differences),
        cmocka_unit_test(test_leaving),  cmocka_unit_test(test_processes),
    };
    static const struct CMUnitTest one[] = {cmocka_unit_test(test_sums),
                                            cmocka_unit_test(test_training)};
    static const struct CMUnitTest processes[] = {cmocka_unit_test(test_processes)};
    if (argc == 7 && strcmp(argv[1], "--rank") == 0) {
        return be_rank(argv);
    }
    if (argc == 3) {
        device_name = "cuda";
        rank_max = atoi(argv[2]) > 1 ? 2 : 1;
        return strcmp(argv[1], "--processes") == 0
                   ? cmocka_run_group_tests_name("ranks that are processes", processes, NULL, NULL)
               : rank_max > 1 ? cmocka_run_group_tests_name("ranks of GPUs", threads, NULL, NULL)
                              : cmocka_run_group_tests_name("a rank of a GPU", one, NULL, NULL);
    }
    return cmocka_run_group_tests_name("ranks", all, NULL, NULL);
}
