// Each rank updates its part: the same bits as where all update all, in weights, states and
// checkpoints; what lies in parts is not read; ranks that differ, and what is refused.
//
// Ranks are threads; on the host they use sockets. --gpus 2: threads of GPUs, which use NCCL;
// --processes COUNT: processes of GPUs, as the emulated ones need.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/state/states.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/ranks_world.h"
#include "support/short_forms.h"
#include "support/test.h"

extern char **environ;

// Of three ranks u is dealt out, and w is not; b is too small.
enum { ROWS = 6, WIDTH = 64, WIDE = 72, RUNS = 6 };
static const char *device_name = "host";
static int32_t process_count;  // 0: ranks are threads

typedef struct lesson {
    rondo_optimizer optimizer;
    bool scale_loss;
    int64_t accumulate;
    double clip_norm, clip_value;
    size_t bucket_bytes;
    rondo_dtype dtype;  // that the executor computes in
    bool sends_half;
    bool is_half;    // parameters are f16
    bool has_table;  // u is looked up, too, as in GPT-2
    bool is_shared;
    char path[2][64];  // of checkpoints: of rank 0 and of the last
} lesson;

static void fill(uint32_t seed, size_t count, float *out) {
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)((double)(seed >> 8) / 16777216.0 - 0.5);
    }
}

static void add_matrix(rank_world *w, rondo_builder *b, const char *name, bool is_half,
                       bool is_turned, int64_t columns) {
    static _Thread_local float values[WIDTH * WIDE];
    static _Thread_local uint16_t halves[WIDTH * WIDE];
    fill((uint32_t)columns, (size_t)(WIDTH * columns), values);
    for (int64_t i = 0; i < WIDTH * columns; ++i) {
        halves[i] = rondo_f16_from_float(values[i]);
    }
    const rondo_tensor tensor = {
        .dtype = is_half ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32,
        .shape = {2, {is_turned ? columns : WIDTH, is_turned ? WIDTH : columns}},
        .data = is_half ? (void *)halves : (void *)values};
    RANK_OK(w, rondo_builder_add_parameter(b, name, &tensor, RONDO_PARAMETER_COPIED));
}

static void add(rank_world *w, rondo_builder *b, const char *op, const char *x, const char *y,
                const char *out) {
    RANK_OK(
        w, rondo_builder_add_node(b, op, (const char *[]){x, y}, y != NULL ? 2 : 1, &out, 1, NULL));
}

// loss = mean((tanh(x w + b) u)^2); with a table mean((tanh((x + u[i]) w + b) u')^2).
static rondo_program *make_lesson(rank_world *w, const lesson *l) {
    const rondo_minimize_options options = {
        .struct_size = sizeof options,
        .optimizer = l->optimizer,
        .learning_rate = 0.01,
        .momentum = l->optimizer == RONDO_OPTIMIZER_SGD ? 0.9 : 0.0,
        .weight_decay = 0.01,
        .scale_loss = l->scale_loss,
        .accumulate = l->accumulate,
        .clip_norm = l->clip_norm,
        .clip_value = l->clip_value,
        .average_ranks = true,
        .bucket_bytes = l->bucket_bytes,
        .shard_updates = l->is_shared};
    const float bias[WIDTH] = {0.25f};
    rondo_program *program = NULL;
    rondo_builder *b = NULL;
    const char *result = "p";
    rondo_status status = rondo_builder_create(NULL, &b);
    if (status != RONDO_STATUS_OK) {
        return NULL;
    }
    status = rondo_builder_add_input(
        b, &PORT("x", l->is_half ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32, -1, WIDTH));
    add_matrix(w, b, "w", l->is_half, false, WIDTH);
    if (!l->is_half) {
        const rondo_tensor tensor = {
            .dtype = RONDO_DTYPE_F32, .shape = {1, {WIDTH}}, .data = (void *)(uintptr_t)bias};
        (void)!rondo_builder_add_parameter(b, "b", &tensor, RONDO_PARAMETER_COPIED);
    }
    add_matrix(w, b, "u", l->is_half, l->has_table, WIDE);
    if (l->has_table) {
        status = status == RONDO_STATUS_OK
                     ? rondo_builder_add_input(b, &PORT("i", RONDO_DTYPE_I64, ROWS))
                     : status;
        add(w, b, "Gather", "u", "i", "r");
        add(w, b, "Add", "x", "r", "h");
    }
    add(w, b, "MatMul", l->has_table ? "h" : "x", "w", "a");
    const char *sum = "a";
    if (!l->is_half) {
        add(w, b, "Add", "a", "b", "s");
        sum = "s";
    }
    add(w, b, "Tanh", sum, NULL, "t");
    if (l->has_table) {
        status = status == RONDO_STATUS_OK
                     ? rondo_builder_add_node(b, "Gemm", (const char *[]){"t", "u"}, 2,
                                              (const char *[]){"p"}, 1,
                                              &WITH(ATTRIBUTE_INT("transB", 1)))
                     : status;
    } else {
        add(w, b, "MatMul", "t", "u", "p");
    }
    if (l->is_half) {
        const rondo_attribute to = {.name = "to", .kind = RONDO_ATTRIBUTE_INT, .int_value = 1};
        const rondo_builder_node_options with = {
            .struct_size = sizeof with, .attributes = &to, .attribute_count = 1};
        (void)!rondo_builder_add_node(b, "Cast", (const char *[]){"p"}, 1, (const char *[]){"c"}, 1,
                                      &with);
        result = "c";
    }
    add(w, b, "Mul", result, result, "q");
    status = status == RONDO_STATUS_OK ? rondo_builder_add_mean(b, "q", "loss") : status;
    status = status == RONDO_STATUS_OK ? rondo_builder_add_output(b, "loss", NULL) : status;
    status = status == RONDO_STATUS_OK ? rondo_builder_minimize(b, "loss", &options) : status;
    status = status == RONDO_STATUS_OK ? rondo_builder_finish(b, &program) : status;
    rondo_builder_destroy(b);
    if (status != RONDO_STATUS_OK) {
        snprintf(w->problem, sizeof w->problem, "%s", rondo_error_get_last()->message);
    }
    return program;
}

static void open_executor(rank_world *w, rondo_program *program, const lesson *l,
                          rondo_executor **out_executor) {
    const char *const averages = "AllReduce";
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .dtype = l->dtype,
                                            .use_f16 = &averages,
                                            .use_f16_count = l->sends_half,
                                            .communicator = w->communicator};
    *out_executor = NULL;
    RANK_OK(w, rondo_executor_create(program, w->device, &options, out_executor));
}

static void run(rank_world *w, rondo_executor *executor, const lesson *l, uint32_t number) {
    float x[ROWS * WIDTH];
    uint16_t half[ROWS * WIDTH];
    fill(100 + number * 16 + (uint32_t)w->rank, ROWS * WIDTH, x);
    if (l->scale_loss && number == 3 && w->rank == w->size - 1) {
        x[ROWS * WIDTH - 1] = INFINITY;  // of one rank; all leave the step out
    }
    for (int i = 0; i < ROWS * WIDTH; ++i) {
        half[i] = rondo_f16_from_float(x[i]);
    }
    int64_t ids[ROWS];
    for (int i = 0; i < ROWS; ++i) {
        ids[i] = ((int64_t)number * 7 + w->rank * 31 + i * 5) % (2 * WIDE) - WIDE;
    }
    const rondo_binding feeds[] = {
        l->is_half ? (rondo_binding)BIND("x", RONDO_DTYPE_F16, half, ROWS, WIDTH)
                   : (rondo_binding)BIND("x", RONDO_DTYPE_F32, x, ROWS, WIDTH),
        BIND("i", RONDO_DTYPE_I64, ids, ROWS)};
    RANK_OK(w, rondo_executor_run(executor, feeds, l->has_table ? 2 : 1, NULL, 0));
}

static const float *find_memory(const rondo_executor *executor, const char *name) {
    const rondo_program *source = executor->main.source;
    const int32_t value = rondo__program_find_value(source, name);
    const rondo__state *state =
        rondo__state_find(executor, (size_t)executor->ports.input_of[value]);
    return state->value.tensor.data;
}

// A run changes this rank's part, and nothing else.
static void expect_own_part(rank_world *w, const float *before, const float *now) {
    const int count = WIDTH * WIDE / w->size;
    for (int i = 0; i < WIDTH * WIDE; ++i) {
        RANK_TRUE(w, (before[i] != now[i]) == (i / count == w->rank));
    }
}

// What lies in parts is neither read nor saved nor fetched.
static void expect_parts(rank_world *w, rondo_executor *executor, const lesson *l) {
    const char *name = l->is_half ? "u.master" : "u";
    float x[ROWS * WIDTH] = {0};
    int64_t ids[ROWS] = {0};
    const rondo_binding feeds[] = {
        BIND("x", l->is_half ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32, x, ROWS, WIDTH),
        BIND("i", RONDO_DTYPE_I64, ids, ROWS)};
    rondo_tensor now = {0};
    rondo_program *program = NULL;
    char next[32];
    (void)snprintf(next, sizeof next, "%s.next", name);
    rondo_status status = rondo_executor_get_variable(executor, name, &now);
    RANK_TRUE(w, status == RONDO_STATUS_STATE);
    RANK_TRUE(w, strstr(rondo_error_get_last()->message, "rondo_executor_gather_variables"));
    RANK_TRUE(w, strstr(rondo_error_get_last()->message, name) != NULL);
    status = rondo_executor_snapshot(executor, &program);
    RANK_TRUE(w, status == RONDO_STATUS_STATE);
    status = rondo_checkpoint_save(executor, "/nowhere/at/all");
    RANK_TRUE(w, status == RONDO_STATUS_STATE);
    rondo_binding fetch = {.name = next};
    status = rondo_executor_run(executor, feeds, l->has_table ? 2 : 1, &fetch, 1);
    RANK_TRUE(w, status == RONDO_STATUS_UNSUPPORTED);
    RANK_TRUE(w, strstr(rondo_error_get_last()->message, "each rank makes its part") != NULL);
}

// What a rank has added up by itself, until a step is full, is neither read nor saved.
static void expect_sums(rank_world *w, rondo_executor *executor) {
    rondo_tensor now = {0};
    rondo_status status = rondo_executor_get_variable(executor, "b.sum", &now);
    RANK_TRUE(w, status == RONDO_STATUS_STATE);
    RANK_TRUE(w, strstr(rondo_error_get_last()->message, "\"b.sum\" holds the gradients of rank"));
    status = rondo_checkpoint_save(executor, "/nowhere/at/all");
    RANK_TRUE(w, status == RONDO_STATUS_STATE);
}

static void learn(rank_world *w) {
    lesson *l = w->data;
    rondo_executor *executor;
    rondo_program *program = make_lesson(w, l);
    if (program == NULL) {
        return;
    }
    open_executor(w, program, l, &executor);
    static _Thread_local float before[WIDTH * WIDE];
    const bool looks = l->is_shared && rondo_device_is_host(w->device) &&
                       l->optimizer == RONDO_OPTIMIZER_ADAMW && !l->scale_loss;
    for (uint32_t i = 0; i < RUNS && w->problem[0] == '\0'; ++i) {
        run(w, executor, l, i);
        if (i == 1) {  // whole between, and then in parts again
            RANK_OK(w, rondo_executor_gather_variables(executor));
        }
        if (i == 1 && looks) {
            memcpy(before, find_memory(executor, "u.mean"), sizeof before);
        } else if (i == 2 && looks) {
            expect_own_part(w, before, find_memory(executor, "u.mean"));
        }
    }
    if (w->size > 1 && l->is_shared && w->problem[0] == '\0') {
        expect_parts(w, executor, l);
    }
    if (w->size > 1 && l->accumulate > 1 && w->problem[0] == '\0') {
        expect_sums(w, executor);
    }
    RANK_OK(w, rondo_executor_gather_variables(executor));
    RANK_OK(w, rondo_executor_gather_variables(executor));  // has nothing to do
    if (w->rank == 0 || w->rank == w->size - 1) {
        RANK_OK(w, rondo_checkpoint_save(executor, l->path[w->rank != 0]));
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

static size_t read_file(const char *path, char **out_bytes) {
    FILE *file = fopen(path, "rb");
    *out_bytes = calloc(1, 1 << 20);
    assert_non_null(file);
    const size_t count = fread(*out_bytes, 1, 1 << 20, file);
    (void)fclose(file);
    return count;
}

static void expect_equal_files(const char *a, const char *b) {
    char *x;
    char *y;
    const size_t x_count = read_file(a, &x);
    const size_t y_count = read_file(b, &y);
    assert_int_equal(x_count, y_count);
    assert_true(x_count > 4096 && memcmp(x, y, x_count) == 0);
    free(x);
    free(y);
}

// All variables are near, as far as sums in another order let them.
static void expect_near(const lesson *l, const char *a, const char *b) {
    static const char *const names[] = {"w", "u", "b", "u.mean", "u.square"};
    const size_t count = l->optimizer == RONDO_OPTIMIZER_SGD ? 3 : 5;
    for (size_t i = 0; i < count; ++i) {
        rondo_tensor x;
        rondo_tensor y;
        OK(rondo_checkpoint_read(a, names[i], &x));
        OK(rondo_checkpoint_read(b, names[i], &y));
        for (int64_t k = 0; k < rondo_shape_get_count(&x.shape); ++k) {
            const double difference =
                fabs((double)((float *)x.data)[k] - (double)((float *)y.data)[k]);
            assert_true(difference <= 1e-6);
        }
        rondo_tensor_deinit(&x);
        rondo_tensor_deinit(&y);
    }
}

static void name_files(lesson *l, int process) {
    for (int k = 0; k < 2; ++k) {
        (void)snprintf(l->path[k], sizeof l->path[k], "/tmp/rondo_parts_%d_%d_%d", process,
                       (int)l->is_shared, k);
    }
}

// Rank 0 is this process, the others are started: lesson `index`, shared or not.
static void learn_in_processes(const lesson *l, int index, int32_t size) {
    char meeting[200];
    pid_t children[8];
    lesson own = *l;
    ranks_world_name_meeting(meeting, sizeof meeting);
    for (int32_t r = 1; r < size; ++r) {
        char name[] = "test_training_parts";
        char mode[] = "--rank";
        char numbers[5][12];
        char *argv[] = {name,       mode,       numbers[0], numbers[1], numbers[2],
                        numbers[3], numbers[4], meeting,    NULL};
        const int values[] = {(int)r, (int)size, index, (int)l->is_shared, (int)getpid()};
        for (int i = 0; i < 5; ++i) {
            (void)snprintf(numbers[i], sizeof numbers[i], "%d", values[i]);
        }
        assert_int_equal(posix_spawn(&children[r], "/proc/self/exe", NULL, NULL, argv, environ), 0);
    }
    const bool is_good = ranks_world_run_one(0, size, "cuda:0", meeting, learn, &own);
    for (int32_t r = 1; r < size; ++r) {
        int ended;
        assert_int_equal(waitpid(children[r], &ended, 0), children[r]);
        assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
    assert_true(is_good);
}

static void compare(lesson l, int index, int32_t size) {
    char whole[2][64];
    for (int shared = 0; shared < 2; ++shared) {
        l.is_shared = shared != 0;
        name_files(&l, (int)getpid());
        if (process_count > 0) {
            learn_in_processes(&l, index, size);
        } else {
            ranks_world_run(size, device_name, learn, &l);
        }
        if (shared == 0) {
            memcpy(whole, l.path, sizeof whole);
        }
    }
    if (size > 1) {
        expect_equal_files(l.path[0], l.path[1]);
    }
    if (l.clip_norm > 0.0 && size > 1) {
        expect_near(&l, whole[0], l.path[0]);
    } else {
        expect_equal_files(whole[0], l.path[0]);
    }
    for (int k = 0; k < (size > 1 ? 2 : 1); ++k) {
        (void)unlink(whole[k]);
        (void)unlink(l.path[k]);
    }
}

static const lesson lessons[] = {
    {.optimizer = RONDO_OPTIMIZER_ADAMW},
    {.optimizer = RONDO_OPTIMIZER_ADAM, .scale_loss = true, .bucket_bytes = 1},
    {.optimizer = RONDO_OPTIMIZER_ADAM, .accumulate = 2, .clip_norm = 0.001},
    {.optimizer = RONDO_OPTIMIZER_SGD, .clip_value = 0.0001},
    {.optimizer = RONDO_OPTIMIZER_ADAGRAD, .is_half = true, .scale_loss = true},
    {.optimizer = RONDO_OPTIMIZER_ADAMW, .scale_loss = true, .dtype = RONDO_DTYPE_F16},
    {.optimizer = RONDO_OPTIMIZER_ADAMW,
     .scale_loss = true,
     .dtype = RONDO_DTYPE_F16,
     .sends_half = true},
    {.optimizer = RONDO_OPTIMIZER_ADAMW, .has_table = true},
    {.optimizer = RONDO_OPTIMIZER_ADAMW,
     .scale_loss = true,
     .dtype = RONDO_DTYPE_F16,
     .sends_half = true,
     .has_table = true},
    {.optimizer = RONDO_OPTIMIZER_SGD, .clip_norm = 0.01},
    {.optimizer = RONDO_OPTIMIZER_ADAM, .accumulate = 4},  // a step is half full at the end
};

enum { LESSONS = sizeof lessons / sizeof *lessons };

TEST(test_training_parts__ranks_that_share_have_the_same_bits) {
    const bool is_host = strcmp(device_name, "host") == 0;
    const int32_t least = is_host ? 1 : 2;
    const int32_t most = is_host ? 3 : process_count > 0 ? process_count : 2;
    for (int32_t size = least; size <= most; ++size) {
        for (int i = 0; i < LESSONS; i += is_host ? 1 : 2) {
            compare(lessons[i], i, size);
        }
    }
}

// A rank that shares the updates, and one that does not.
static void differ(rank_world *w) {
    lesson l = {.optimizer = RONDO_OPTIMIZER_ADAM, .is_shared = w->rank == 1};
    rondo_executor *executor;
    rondo_program *program = make_lesson(w, &l);
    float x[ROWS * WIDTH] = {0};
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, ROWS, WIDTH);
    if (program == NULL) {
        return;
    }
    open_executor(w, program, &l, &executor);
    const rondo_status status = rondo_executor_run(executor, &feed, 1, NULL, 0);
    RANK_TRUE(w, status == RONDO_STATUS_MISMATCH);
    RANK_TRUE(w, strstr(rondo_error_get_last()->message, "rank 1 has shared updates of f32 x"));
    RANK_TRUE(w, strstr(rondo_error_get_last()->message, "rank 0 has optimizer adam"));
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

TEST(test_training_parts__ranks_that_differ_are_named) {
    ranks_world_run(2, device_name, differ, NULL);
}

// A rank gathers, the other goes on.
static void part_ways(rank_world *w) {
    const lesson l = {.optimizer = RONDO_OPTIMIZER_ADAM, .is_shared = true};
    rondo_executor *executor;
    rondo_program *program = make_lesson(w, &l);
    float x[ROWS * WIDTH] = {0};
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, ROWS, WIDTH);
    if (program == NULL) {
        return;
    }
    open_executor(w, program, &l, &executor);
    run(w, executor, &l, 0);
    const rondo_status status = w->rank == 0 ? rondo_executor_gather_variables(executor)
                                             : rondo_executor_run(executor, &feed, 1, NULL, 0);
    RANK_TRUE(w, status == RONDO_STATUS_MISMATCH);
    RANK_TRUE(w, strstr(rondo_error_get_last()->message, "variable of f32") != NULL);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

TEST(test_training_parts__one_that_gathers_alone_is_named) {
    ranks_world_run(2, device_name, part_ways, NULL);
}

// A rank leaves with its parts.
static void lose_a_rank(rank_world *w) {
    const lesson l = {.optimizer = RONDO_OPTIMIZER_ADAM, .is_shared = true};
    rondo_executor *executor;
    rondo_program *program = make_lesson(w, &l);
    if (program == NULL) {
        return;
    }
    open_executor(w, program, &l, &executor);
    run(w, executor, &l, 0);
    const rondo_status status =
        w->rank == 0 ? rondo_executor_gather_variables(executor) : RONDO_STATUS_UNAVAILABLE;
    RANK_TRUE(w, status == RONDO_STATUS_UNAVAILABLE);
    RANK_TRUE(w,
              w->rank != 0 || strstr(rondo_error_get_last()->message, "rank 1 of 2 has") != NULL);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

TEST(test_training_parts__parts_of_a_rank_that_left_are_named) {
    ranks_world_run(2, device_name, lose_a_rank, NULL);
}

// What "u" holds, copied from where it lies.
static void read_u(rank_world *w, rondo_executor *executor, float *out_numbers) {
    rondo_tensor now;
    RANK_OK(w, rondo_executor_get_variable(executor, "u", &now));
    const rondo_tensor to = {.dtype = now.dtype, .shape = now.shape, .data = out_numbers};
    rondo_stream *stream = rondo_executor_get_stream(executor);
    const rondo_status status = rondo_tensor_copy(stream, &now, &to);
    RANK_OK(w, status == RONDO_STATUS_OK ? rondo_stream_synchronize(stream) : status);
    rondo_tensor_deinit(&now);
}

// A rank that has set all variables since waits for the others nevertheless.
static void set_all(rank_world *w) {
    const lesson l = {.optimizer = RONDO_OPTIMIZER_SGD, .is_shared = true};
    static const char *const names[] = {"w", "w.momentum", "u", "u.momentum", "b", "b.momentum"};
    static float zeros[WIDTH * WIDE];
    rondo_executor *executor;
    rondo_program *program = make_lesson(w, &l);
    if (program == NULL) {
        return;
    }
    open_executor(w, program, &l, &executor);
    run(w, executor, &l, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names && w->rank == 0; ++i) {
        const int64_t columns = names[i][0] == 'u' ? WIDE : WIDTH;
        const rondo_tensor tensor = {.dtype = RONDO_DTYPE_F32,
                                     .shape = names[i][0] == 'b'
                                                  ? (rondo_shape){1, {WIDTH}}
                                                  : (rondo_shape){2, {WIDTH, columns}},
                                     .data = zeros};
        RANK_OK(w, rondo_executor_set_variable(executor, names[i], &tensor));
    }
    RANK_OK(w, rondo_executor_gather_variables(executor));
    static _Thread_local float now[WIDTH * WIDE];
    read_u(w, executor, now);
    for (int i = 0; i < WIDTH * WIDE; ++i) {
        RANK_TRUE(w, (now[i] == 0.0f) == (i < WIDTH * WIDE / 2));
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

TEST(test_training_parts__one_that_set_all_gathers_with_the_others) {
    ranks_world_run(2, device_name, set_all, NULL);
}

// All ranks load the plan file of rank 0, and come to what they had without it.
static void load_plan(rank_world *w) {
    const lesson l = {.optimizer = RONDO_OPTIMIZER_ADAM, .is_shared = true, .clip_norm = 0.001};
    const char *path = w->data;
    rondo_executor *executors[2];
    static _Thread_local float now[2][WIDTH * WIDE];
    rondo_program *program = make_lesson(w, &l);
    rondo_program *loaded;
    if (program == NULL) {
        return;
    }
    open_executor(w, program, &l, &executors[0]);
    run(w, executors[0], &l, 0);
    if (w->rank == 0) {
        RANK_OK(w, rondo_executor_save(executors[0], path));
    }
    run(w, executors[0], &l, 1);  // behind which the file is there at all ranks
    RANK_OK(w, rondo_program_load_plan(path, NULL, &loaded));
    open_executor(w, loaded, &l, &executors[1]);
    run(w, executors[1], &l, 0);
    run(w, executors[1], &l, 1);
    for (int i = 0; i < 2; ++i) {
        RANK_OK(w, rondo_executor_gather_variables(executors[i]));
        read_u(w, executors[i], now[i]);
    }
    RANK_TRUE(w, memcmp(now[0], now[1], sizeof now[0]) == 0);
    for (int i = 0; i < 2; ++i) {
        rondo_executor_destroy(executors[i]);
    }
    rondo_program_destroy(loaded);
    rondo_program_destroy(program);
}

TEST(test_training_parts__a_plan_file_is_of_all_ranks) {
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/rondo_parts_%d.rplan", (int)getpid());
    ranks_world_run(2, device_name, load_plan, path);
    (void)unlink(path);
}

// What stands behind the step reads no part for the whole, in a body neither.
TEST(test_training_parts__what_is_added_behind_reads_no_part) {
    static const char *const parts[] = {"w", "w.mean", "w.next", "w.square.next"};
    const rondo_minimize_options options = {.struct_size = sizeof options,
                                            .optimizer = RONDO_OPTIMIZER_ADAM,
                                            .learning_rate = 0.1,
                                            .average_ranks = true,
                                            .shard_updates = true};
    const rondo_start zeros = {.struct_size = sizeof zeros, .kind = RONDO_START_CONSTANT};
    rondo_builder *b = build_begin();
    rondo_builder *body;
    rondo_builder *branches[2];
    OK(rondo_builder_add_variable(b, &PORT("w", RONDO_DTYPE_F32, WIDTH, WIDTH), &zeros));
    OK(rondo_builder_add_mean(b, "w", "loss"));
    OK(rondo_builder_add_output(b, "loss", NULL));
    OK(rondo_builder_add_input(b, &PORT("c", RONDO_DTYPE_BOOL)));
    for (int i = 0; i < 2; ++i) {  // that read "w" before, and stand behind
        OK(rondo_builder_create_body(b, NULL, &branches[i]));
        OK(rondo_builder_add_mean(branches[i], "w", "m"));
        OK(rondo_builder_add_output(branches[i], "m", NULL));
    }
    OK(rondo_builder_minimize(b, "loss", &options));
    const rondo_attribute bodies[] = {ATTRIBUTE_BODY("then_branch", branches[0]),
                                      ATTRIBUTE_BODY("else_branch", branches[1])};
    assert_int_equal(rondo_builder_add_node(b, "If", (const char *[]){"c"}, 1,
                                            (const char *[]){"chosen"}, 1, &WITH_LIST(bodies, 2)),
                     RONDO_STATUS_UNSUPPORTED);
    rondo_builder_destroy(branches[0]);
    rondo_builder_destroy(branches[1]);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
        assert_int_equal(rondo_builder_add_mean(b, parts[i], "m"), RONDO_STATUS_UNSUPPORTED);
        const char *message = rondo_error_get_last()->message;
        assert_non_null(strstr(message, parts[i]));
        assert_non_null(strstr(message, i % 2 == 0 ? "is \"w.whole\"" : "is not gathered"));
    }
    assert_int_equal(rondo_builder_add_output(b, "w", NULL), RONDO_STATUS_UNSUPPORTED);
    OK(rondo_builder_create_body(b, NULL, &body));
    assert_int_equal(rondo_builder_add_mean(body, "w", "m"), RONDO_STATUS_UNSUPPORTED);
    rondo_builder_destroy(body);
    OK(rondo_builder_add_mean(b, "w.whole", "m"));
    OK(rondo_builder_add_mean(b, "train.rate", "r"));
    rondo_builder_destroy(b);
}

TEST(test_training_parts__needs_ranks) {
    const rondo_minimize_options options = {.struct_size = sizeof options, .shard_updates = true};
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, 4)));
    OK(rondo_builder_add_mean(b, "x", "loss"));
    assert_int_equal(rondo_builder_minimize(b, "loss", &options), RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "average_ranks"));
    rondo_builder_destroy(b);
    assert_int_equal(rondo_executor_gather_variables(NULL), RONDO_STATUS_INVALID);
}

// --rank RANK SIZE LESSON SHARED PROCESS MEETING
static int be_rank(char **argv) {
    char device[24];
    const int index = atoi(argv[4]);
    if (index < 0 || index >= LESSONS) {
        return 2;
    }
    lesson l = lessons[index];
    l.is_shared = atoi(argv[5]) != 0;
    name_files(&l, atoi(argv[6]));
    (void)snprintf(device, sizeof device, "cuda:%d", atoi(argv[2]));
    return ranks_world_run_one(atoi(argv[2]), atoi(argv[3]), device, argv[7], learn, &l) ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc == 8 && strcmp(argv[1], "--rank") == 0) {
        return be_rank(argv);
    }
    if (argc == 3) {
        device_name = "cuda";
        process_count = strcmp(argv[1], "--processes") == 0 ? atoi(argv[2]) : 0;
    }
    if (process_count > 0) {
        static const struct CMUnitTest processes[] = {
            cmocka_unit_test(test_training_parts__ranks_that_share_have_the_same_bits)};
        return cmocka_run_group_tests_name("ranks that are processes", processes, NULL, NULL);
    }
    return RUN_TESTS(NULL, NULL);
}
