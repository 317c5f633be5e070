// What variables cost: a step that reads and updates some rows of a large table, the replacement
// of one weight between runs, and a step with a cache.
//
//   build/bench/variable_cost table [DEVICE] [ROWS] [COLUMNS] [IDS]
//   build/bench/variable_cost weight MODEL.onnx [DEVICE] [PARAMETER]     (a constant)
//   build/bench/variable_cost variable MODEL.onnx [DEVICE] [PARAMETER]   (made a variable)
//   build/bench/variable_cost cache MODEL.onnx [DEVICE] [LENGTH]
//   build/bench/variable_cost group [DEVICE] [CAPACITY]
//   build/bench/variable_cost fed [DEVICE] [CAPACITY]
//
// table      rows = Gather(table, ids); table' = ScatterND(table, ids, -0.01 * rows, add), by
//            default 256 rows of a table of 1 000 000 x 150, for which 600 MB are taken once.
// weight     runs of the model, in which the parameter (the largest one) is replaced before every
//            second one; "replaced" is the call and the run behind it, less a run without.
// cache      a step of a decoder as decode_steps.c takes it, whose "past" is a variable with
//            room for one token more, from a cache of LENGTH tokens (512).
// group      a step of GroupQueryAttention: one token, 8 heads of 64, a cache of CAPACITY tokens
//            (4096) of which the step is the 100th.
// fed        the same with lengths that are fed, and grow by one in each step.
//
// Times are the wall time of a call, medians.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "rondo/models.h"

enum { RUNS = 200, WEIGHT_RUNS = 20 };

static double since(uint64_t start_ns) {
    return (double)(rondo__clock_now_ns() - start_ns) / 1e6;
}

// ---- rows of a table --------------------------------------------------------------------------

static void add_node(rondo_builder *b, const char *op, const char *const *inputs, size_t count,
                     const char *output, const rondo_builder_node_options *options) {
    must(rondo_builder_add_node(b, op, inputs, count, &output, 1, options));
}

static rondo_program *make_table(int64_t rows, int64_t columns, int64_t ids) {
    rondo_builder *b;
    rondo_program *program;
    const float rate = -0.01f;
    const rondo_port table = {.struct_size = sizeof table,
                              .name = "table",
                              .dtype = RONDO_DTYPE_F32,
                              .rank = 2,
                              .extent = {rows, columns}};
    const rondo_port id = {.struct_size = sizeof id,
                           .name = "ids",
                           .dtype = RONDO_DTYPE_I64,
                           .rank = 2,
                           .extent = {ids, 1}};
    const rondo_start normal = {
        .struct_size = sizeof normal, .kind = RONDO_START_NORMAL, .b = 0.02, .seed = 1};
    const rondo_attribute add = {
        .name = "reduction", .kind = RONDO_ATTRIBUTE_STRING, .string_value = "add"};
    const rondo_builder_node_options reduce = {
        .struct_size = sizeof reduce, .attributes = &add, .attribute_count = 1};
    must(rondo_builder_create(NULL, &b));
    must(rondo_builder_add_input(b, &id));
    must(rondo_builder_add_variable(b, &table, &normal));
    must(rondo_builder_add_constant(b, "rate", RONDO_DTYPE_F32, &(rondo_shape){0}, &rate));
    add_node(b, "GatherND", (const char *[]){"table", "ids"}, 2, "rows", NULL);
    add_node(b, "Mul", (const char *[]){"rows", "rate"}, 2, "step", NULL);
    add_node(b, "ScatterND", (const char *[]){"table", "ids", "step"}, 3, "table.next", &reduce);
    add_node(b, "ReduceMean", (const char *[]){"rows"}, 1, "mean", NULL);
    must(rondo_builder_add_output(b, "mean", NULL));
    must(rondo_builder_set_update(b, "table", "table.next"));
    must(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    return program;
}

static int time_table(const char *device_name, int64_t rows, int64_t columns, int64_t id_count) {
    rondo_device *device;
    rondo_executor *executor;
    rondo_executor_options options = {.struct_size = sizeof options};
    rondo_program *program = make_table(rows, columns, id_count);
    options.memory_limit_bytes = UINT64_C(8) << 30;
    must(rondo_device_open(device_name, &device));
    must(rondo_executor_create(program, device, &options, &executor));
    rondo_binding feed = {.name = "ids"};
    rondo_binding fetch = {.name = "mean"};
    const rondo_shape shape = {.rank = 2, .extent = {id_count, 1}};
    must(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &feed.tensor));
    double times[RUNS];
    uint64_t state = 1;
    for (int run = -3; run < RUNS; ++run) {
        for (int64_t i = 0; i < id_count; ++i) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            ((int64_t *)feed.tensor.data)[i] = (int64_t)((state >> 33) % (uint64_t)rows);
        }
        const uint64_t start = rondo__clock_now_ns();
        must(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        if (run >= 0) {
            times[run] = since(start);
        }
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    must(rondo_executor_get_stats(executor, &stats));
    printf("table %lld x %lld, %lld rows a step on %s: %.3f ms; states %.1f MiB, arena %.3f MiB\n",
           (long long)rows, (long long)columns, (long long)id_count, device_name,
           get_median(times, RUNS), (double)stats.state_bytes / 1048576.0,
           (double)stats.arena_bytes / 1048576.0);
    rondo_tensor_deinit(&feed.tensor);
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    return 0;
}

// ---- one weight -------------------------------------------------------------------------------

static const char *find_largest(const rondo_program *program) {
    enum { PARAMETER_MAX = 4096 };
    static rondo_parameter parameters[PARAMETER_MAX];
    size_t count = 0;
    const char *name = NULL;
    size_t most = 0;
    must(rondo_program_list_parameters(program, PARAMETER_MAX, parameters, &count));
    for (size_t i = 0; i < count && i < PARAMETER_MAX; ++i) {
        const size_t bytes = rondo_tensor_get_bytes(parameters[i].tensor);
        name = bytes > most ? parameters[i].name : name;
        most = bytes > most ? bytes : most;
    }
    return name;
}

static void make_feeds(const rondo_program *program, rondo_binding *feeds) {
    for (size_t i = 0; i < rondo_program_get_input_count(program); ++i) {
        rondo_port port = {.struct_size = sizeof port};
        must(rondo_program_get_input(program, i, &port));
        rondo_shape shape = {.rank = port.rank};
        for (int32_t d = 0; d < port.rank; ++d) {
            shape.extent[d] = port.extent[d] >= 0 ? port.extent[d] : 1;
        }
        feeds[i].name = port.name;
        must(rondo_tensor_init(port.dtype, &shape, &feeds[i].tensor));
        memset(feeds[i].tensor.data, 0, rondo_tensor_get_bytes(&feeds[i].tensor));
    }
}

static int time_weight(const char *path, const char *device_name, const char *name,
                       bool is_variable) {
    enum { FEED_MAX = 64 };
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    rondo_binding feeds[FEED_MAX] = {0};
    rondo_port port = {.struct_size = sizeof port};
    must(rondo_program_load_onnx(path, &program));
    must(rondo_device_open(device_name, &device));
    const size_t feed_count = rondo_program_get_input_count(program);
    if (feed_count > FEED_MAX) {
        return 2;
    }
    rondo_program *source = program;
    make_feeds(source, feeds);
    name = name != NULL ? name : find_largest(program);
    char kept[256];
    snprintf(kept, sizeof kept, "%s", name);
    name = kept;
    if (is_variable) {
        must(rondo_program_make_variables(source, &name, 1, &program));
    }
    must(rondo_executor_create(program, device, NULL, &executor));
    must(rondo_program_get_output(program, 0, &port));
    rondo_binding fetch = {.name = port.name};
    rondo_tensor weight, copy;
    must(rondo_executor_get_variable(executor, name, &weight));
    must(rondo_tensor_init(weight.dtype, &weight.shape, &copy));
    if (weight.device == NULL || rondo_device_is_host(weight.device)) {  // as the program has it
        memcpy(copy.data, weight.data, rondo_tensor_get_bytes(&weight));
    } else {
        must(rondo_tensor_copy(rondo_executor_get_stream(executor), &weight, &copy));
        must(rondo_stream_synchronize(rondo_executor_get_stream(executor)));
    }
    rondo_tensor_deinit(&weight);
    double plain[WEIGHT_RUNS], replaced[WEIGHT_RUNS];
    for (int run = -3; run < WEIGHT_RUNS; ++run) {
        uint64_t start = rondo__clock_now_ns();
        must(rondo_executor_run(executor, feeds, feed_count, &fetch, 1));
        const double plain_ms = since(start);
        start = rondo__clock_now_ns();
        if (run >= 0) {
            must(rondo_executor_set_variable(executor, name, &copy));
        }
        must(rondo_executor_run(executor, feeds, feed_count, &fetch, 1));
        if (run >= 0) {
            plain[run] = plain_ms;
            replaced[run] = since(start);
        }
    }
    const double run_ms = get_median(plain, WEIGHT_RUNS);
    const double both_ms = get_median(replaced, WEIGHT_RUNS);
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    must(rondo_executor_get_stats(executor, &stats));
    printf(
        "\"%s\" (%.1f KiB) on %s: a run %.3f ms, replaced and run %.3f ms: %.3f ms more; "
        "%llu plans made, capture %.3f ms\n",
        name, (double)rondo_tensor_get_bytes(&copy) / 1024.0, device_name, run_ms, both_ms,
        both_ms - run_ms, (unsigned long long)stats.plan_miss_count,
        (double)stats.capture_ns / 1e6);
    for (size_t i = 0; i < feed_count; ++i) {
        rondo_tensor_deinit(&feeds[i].tensor);
    }
    rondo_tensor_deinit(&copy);
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
    if (program != source) {
        rondo_program_destroy(program);
    }
    rondo_program_destroy(source);
    rondo_device_release(device);
    return 0;
}

// ---- caches -----------------------------------------------------------------------------------

static void print_steps(const char *what, const char *device_name, const rondo_executor *executor,
                        double *times) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    must(rondo_executor_get_stats(executor, &stats));
    printf("%s on %s: %.1f us a step; states %.1f KiB, arena %.1f KiB\n", what, device_name,
           1e3 * get_median(times, RUNS), (double)stats.state_bytes / 1024.0,
           (double)stats.arena_bytes / 1024.0);
}

static rondo_tensor make_cache(const rondo_program *program, int64_t length) {
    rondo_tensor cache = {0};
    for (size_t i = 0; i < rondo_program_get_input_count(program); ++i) {
        rondo_port port = {.struct_size = sizeof port};
        must(rondo_program_get_input(program, i, &port));
        if (strcmp(port.name, "past") == 0) {
            rondo_shape shape = {.rank = port.rank};
            for (int32_t d = 0; d < port.rank; ++d) {
                shape.extent[d] = port.extent[d] >= 0 ? port.extent[d] : 1;
            }
            shape.extent[shape.rank - 2] = length;
            must(rondo_tensor_init(port.dtype, &shape, &cache));
        }
    }
    memset(cache.data, 0, rondo_tensor_get_bytes(&cache));
    return cache;
}

static int time_cache(const char *path, const char *device_name, int64_t length) {
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    double times[RUNS];
    int64_t id = 1, position = 1;
    const rondo_shape one = {.rank = 2, .extent = {1, 1}};
    const rondo_binding feeds[] = {
        {"ids", {.dtype = RONDO_DTYPE_I64, .shape = one, .data = &id}},
        {"position", {.dtype = RONDO_DTYPE_I64, .shape = one, .data = &position}}};
    rondo_binding fetch = {.name = "logits"};
    must(rondo_program_load_onnx(path, &program));
    must(rondo_program_set_update(program, "past", "present"));
    must(rondo_device_open(device_name, &device));
    must(rondo_executor_create(program, device, NULL, &executor));
    rondo_tensor cache = make_cache(program, length);
    const size_t bytes = rondo_tensor_get_bytes(&cache);
    must(rondo_executor_reserve_variable(executor, "past", bytes + bytes / (size_t)length));
    for (int run = -3; run < RUNS; ++run) {
        must(rondo_executor_set_variable(executor, "past", &cache));
        const uint64_t start = rondo__clock_now_ns();
        must(rondo_executor_run(executor, feeds, 2, &fetch, 1));
        if (run >= 0) {
            times[run] = since(start);
        }
    }
    print_steps("a cache that grows", device_name, executor, times);
    rondo_tensor_deinit(&cache);
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    return 0;
}

enum { HEADS = 8, WIDTH = 64, PLACE = 99 };

static rondo_program *make_group(int64_t capacity, bool is_fed) {
    rondo_builder *b;
    rondo_program *program;
    const int32_t total = (int32_t)capacity;
    const rondo_attribute heads[] = {
        {.name = "num_heads", .kind = RONDO_ATTRIBUTE_INT, .int_value = HEADS},
        {.name = "kv_num_heads", .kind = RONDO_ATTRIBUTE_INT, .int_value = HEADS}};
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .domain = "com.microsoft",
                                                .attributes = heads,
                                                .attribute_count = 2};
    rondo_port port = {.struct_size = sizeof port,
                       .dtype = RONDO_DTYPE_F32,
                       .rank = 3,
                       .extent = {1, 1, HEADS * WIDTH}};
    must(rondo_builder_create(NULL, &b));
    port.name = "x";
    must(rondo_builder_add_input(b, &port));
    port = (rondo_port){.struct_size = sizeof port,
                        .dtype = RONDO_DTYPE_F32,
                        .rank = 4,
                        .extent = {1, HEADS, capacity, WIDTH}};
    const rondo_start zero = {.struct_size = sizeof zero, .kind = RONDO_START_CONSTANT};
    port.name = "keys";
    must(rondo_builder_add_variable(b, &port, &zero));
    port.name = "values";
    must(rondo_builder_add_variable(b, &port, &zero));
    const int32_t place = PLACE;
    const rondo_shape one = {.rank = 1, .extent = {1}};
    const rondo_port number = {
        .struct_size = sizeof number, .dtype = RONDO_DTYPE_I32, .rank = 1, .extent = {1}};
    for (int i = 0; i < 2; ++i) {
        const char *name = i == 0 ? "place" : "total";
        port = number;
        port.name = name;
        must(is_fed ? rondo_builder_add_input(b, &port)
                    : rondo_builder_add_constant(b, name, RONDO_DTYPE_I32, &one,
                                                 i == 0 ? &place : &total));
    }
    must(rondo_builder_add_node(b, "GroupQueryAttention",
                                (const char *[]){"x", "x", "x", "keys", "values", "place", "total"},
                                7, (const char *[]){"y", "keys.next", "values.next"}, 3, &options));
    must(rondo_builder_add_output(b, "y", NULL));
    must(rondo_builder_set_update(b, "keys", "keys.next"));
    must(rondo_builder_set_update(b, "values", "values.next"));
    must(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    return program;
}

static int time_group(const char *device_name, int64_t capacity, bool is_fed) {
    rondo_device *device;
    rondo_executor *executor;
    double times[RUNS];
    rondo_program *program = make_group(capacity, is_fed);
    const rondo_shape row = {.rank = 3, .extent = {1, 1, HEADS * WIDTH}};
    const rondo_shape one = {.rank = 1, .extent = {1}};
    int32_t place = PLACE, total = PLACE + 1;
    rondo_binding feeds[3] = {{.name = "x"},
                              {"place", {.dtype = RONDO_DTYPE_I32, .shape = one, .data = &place}},
                              {"total", {.dtype = RONDO_DTYPE_I32, .shape = one, .data = &total}}};
    rondo_binding fetch = {.name = "y"};
    must(rondo_tensor_init(RONDO_DTYPE_F32, &row, &feeds[0].tensor));
    memset(feeds[0].tensor.data, 0, rondo_tensor_get_bytes(&feeds[0].tensor));
    must(rondo_device_open(device_name, &device));
    must(rondo_executor_create(program, device, NULL, &executor));
    for (int run = -3; run < RUNS; ++run) {
        const uint64_t start = rondo__clock_now_ns();
        must(rondo_executor_run(executor, feeds, is_fed ? 3 : 1, &fetch, 1));
        place += 1;
        total += 1;
        if (run >= 0) {
            times[run] = since(start);
        }
    }
    print_steps(is_fed ? "GroupQueryAttention, fed" : "GroupQueryAttention", device_name, executor,
                times);
    rondo_tensor_deinit(&feeds[0].tensor);
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    return 0;
}

static int64_t read_number(int argc, char **argv, int index, int64_t absent) {
    const long long number = argc > index ? strtoll(argv[index], NULL, 10) : absent;
    return number >= 1 ? number : absent;
}

int main(int argc, char **argv) {
    if (argc >= 2 && strcmp(argv[1], "table") == 0) {
        return time_table(argc > 2 ? argv[2] : "host", read_number(argc, argv, 3, 1000 * 1000),
                          read_number(argc, argv, 4, 150), read_number(argc, argv, 5, 256));
    }
    if (argc >= 3 && strcmp(argv[1], "cache") == 0) {
        return time_cache(argv[2], argc > 3 ? argv[3] : "host", read_number(argc, argv, 4, 512));
    }
    const bool is_fed = argc >= 2 && strcmp(argv[1], "fed") == 0;
    if (is_fed || (argc >= 2 && strcmp(argv[1], "group") == 0)) {
        return time_group(argc > 2 ? argv[2] : "host", read_number(argc, argv, 3, 4096), is_fed);
    }
    const bool is_variable = argc >= 2 && strcmp(argv[1], "variable") == 0;
    if (argc >= 3 && (is_variable || strcmp(argv[1], "weight") == 0)) {
        return time_weight(argv[2], argc > 3 ? argv[3] : "host", argc > 4 ? argv[4] : NULL,
                           is_variable);
    }
    fprintf(stderr,
            "usage: variable_cost table [DEVICE] [ROWS] [COLUMNS] [IDS]\n"
            "       variable_cost weight|variable MODEL.onnx [DEVICE] [PARAMETER]\n"
            "       variable_cost cache MODEL.onnx [DEVICE] [LENGTH]\n"
            "       variable_cost group|fed [DEVICE] [CAPACITY]\n");
    return 2;
}
