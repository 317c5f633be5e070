// Programs built against other headers than the library: shorter structs, as an older header
// has them, are filled as far as they go; longer ones are refused. Nothing behind a struct is
// touched either way.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/source_dir.h"
#include "support/test.h"

enum { GUARD = 0xA5, ROOM = 2048 };

typedef struct fixture {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_graph_cache *cache;
    rondo_pool *pool;
    rondo_arena *arena;
    rondo_program *program;
    rondo_executor *executor;
} fixture;

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fail_msg("%s", rondo_error_get_last()->message);
    }
}

// An executor that has run once.
static void run_model(fixture *f) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/cli/models/add_relu.onnx", get_source_dir());
    check(rondo_program_load_onnx(path, &f->program));
    check(rondo_executor_create(f->program, f->device, NULL, &f->executor));
    const rondo_shape shape = {.rank = 2, .extent = {1, 3}};
    rondo_binding feeds[] = {{.name = "x"}, {.name = "y"}};
    for (size_t i = 0; i < 2; ++i) {
        check(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &feeds[i].tensor));
    }
    check(rondo_executor_run(f->executor, feeds, 2, NULL, 0));
    for (size_t i = 0; i < 2; ++i) {
        rondo_tensor_deinit(&feeds[i].tensor);
    }
}

static void set_up(fixture *f) {
    *f = (fixture){0};
    check(rondo_device_open("host", &f->device));
    check(rondo_stream_create(f->device, NULL, &f->stream));
    check(rondo_pool_create(f->device, NULL, &f->pool));
    check(rondo_arena_create(f->device, NULL, &f->arena));
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    check(rondo_graph_create(f->device, &options, &f->graph));
    check(rondo_graph_cache_create(f->device, NULL, &f->cache));
    check(rondo_graph_cache_pin(f->cache, "key", 3));
    void *memory = NULL;
    check(rondo_memory_allocate(f->device, RONDO_MEMORY_DEVICE, 64, &memory));
    check(rondo_graph_capture_begin(f->graph, f->stream, RONDO_CAPTURE_THREAD_LOCAL));
    check(rondo_stream_fill(f->stream, memory, 1, 4, 16));
    check(rondo_graph_capture_end(f->graph));
    rondo_memory_free(f->device, memory);
    run_model(f);
}

static void tear_down(fixture *f) {
    rondo_executor_destroy(f->executor);
    rondo_program_destroy(f->program);
    rondo_graph_cache_destroy(f->cache);
    rondo_graph_destroy(f->graph);
    rondo_arena_release(f->arena);
    rondo_pool_release(f->pool);
    rondo_stream_destroy(f->stream);
    rondo_device_release(f->device);
}

// ---- structs that the library fills in --------------------------------------------------------

static rondo_status get_info(fixture *f, void *out) {
    return rondo_device_get_info(f->device, out);
}

static rondo_status list_devices(fixture *f, void *out) {
    (void)f;
    size_t count;
    return rondo_device_list(out, 1, &count);
}

static rondo_status get_graph_stats(fixture *f, void *out) {
    return rondo_graph_get_stats(f->graph, out);
}

static rondo_status get_cache_stats(fixture *f, void *out) {
    return rondo_graph_cache_get_stats(f->cache, out);
}

static rondo_status get_cache_entry(fixture *f, void *out) {
    return rondo_graph_cache_get_entry(f->cache, "key", 3, out);
}

static rondo_status get_node(fixture *f, void *out) {
    return rondo_graph_get_node(f->graph, 0, out);
}

static rondo_status get_report(fixture *f, void *out) {
    return rondo_graph_get_report(f->graph, out);
}

static rondo_status get_pool_stats(fixture *f, void *out) {
    return rondo_pool_get_stats(f->pool, out);
}

static rondo_status get_arena_stats(fixture *f, void *out) {
    return rondo_arena_get_stats(f->arena, out);
}

static rondo_status get_times(fixture *f, void *out) {
    return rondo_executor_get_times(f->executor, out);
}

static rondo_status get_executor_stats(fixture *f, void *out) {
    return rondo_executor_get_stats(f->executor, out);
}

static rondo_status get_input(fixture *f, void *out) {
    return rondo_program_get_input(f->program, 0, out);
}

static rondo_status get_output(fixture *f, void *out) {
    return rondo_program_get_output(f->program, 0, out);
}

static rondo_status import_tensor(fixture *f, void *out) {
    (void)f;
    int64_t extents[1] = {2};
    static float values[2];
    rondo_dlpack_managed managed = {.tensor = {.data = values,
                                               .device = {RONDO_DLPACK_CPU, 0},
                                               .rank = 1,
                                               .type = {RONDO_DLPACK_FLOAT, 32, 1},
                                               .extents = extents}};
    rondo_tensor tensor;
    rondo_status status = rondo_tensor_from_dlpack(&managed, &tensor, out);
    rondo_tensor_deinit(&tensor);
    return status;
}

typedef struct output {
    const char *name;
    size_t bytes;
    rondo_status (*fill)(fixture *f, void *out);
} output;

static const output outputs[] = {
    {"rondo_device_info", sizeof(rondo_device_info), get_info},
    {"rondo_device_info", sizeof(rondo_device_info), list_devices},
    {"rondo_graph_stats", sizeof(rondo_graph_stats), get_graph_stats},
    {"rondo_graph_cache_stats", sizeof(rondo_graph_cache_stats), get_cache_stats},
    {"rondo_graph_cache_entry", sizeof(rondo_graph_cache_entry), get_cache_entry},
    {"rondo_graph_node", sizeof(rondo_graph_node), get_node},
    {"rondo_capture_report", sizeof(rondo_capture_report), get_report},
    {"rondo_pool_stats", sizeof(rondo_pool_stats), get_pool_stats},
    {"rondo_arena_stats", sizeof(rondo_arena_stats), get_arena_stats},
    {"rondo_run_times", sizeof(rondo_run_times), get_times},
    {"rondo_executor_stats", sizeof(rondo_executor_stats), get_executor_stats},
    {"rondo_port", sizeof(rondo_port), get_input},
    {"rondo_port", sizeof(rondo_port), get_output},
    {"rondo_dlpack_info", sizeof(rondo_dlpack_info), import_tensor},
};

// A struct that says it has `bytes`, with guards in it and behind it.
static void prepare(unsigned char *room, size_t bytes) {
    memset(room, GUARD, ROOM);
    memcpy(room, &bytes, sizeof bytes);
}

static void assert_untouched(const unsigned char *room, size_t from) {
    for (size_t i = from; i < ROOM; ++i) {
        assert_int_equal(room[i], GUARD);
    }
}

TEST(test_abi_structs__outputs_are_filled_as_far_as_they_go) {
    fixture f;
    set_up(&f);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; ++i) {
        _Alignas(16) unsigned char whole[ROOM];
        prepare(whole, outputs[i].bytes);
        check(outputs[i].fill(&f, whole));
        assert_untouched(whole, outputs[i].bytes);
        for (size_t bytes = sizeof(size_t); bytes < outputs[i].bytes; bytes += 4) {
            _Alignas(16) unsigned char room[ROOM];
            prepare(room, bytes);
            check(outputs[i].fill(&f, room));
            assert_memory_equal(room, &bytes, sizeof bytes);
            assert_untouched(room, bytes);
        }
    }
    tear_down(&f);
}

TEST(test_abi_structs__outputs_of_unknown_length_are_refused) {
    fixture f;
    set_up(&f);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; ++i) {
        const size_t wrong[] = {0, sizeof(size_t) - 1, outputs[i].bytes + 1, outputs[i].bytes + 64,
                                SIZE_MAX};
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; ++w) {
            _Alignas(16) unsigned char room[ROOM];
            prepare(room, wrong[w]);
            assert_int_equal(outputs[i].fill(&f, room), RONDO_STATUS_INVALID);
            assert_non_null(strstr(rondo_error_get_last()->message, outputs[i].name));
            assert_untouched(room, sizeof(size_t));
        }
    }
    tear_down(&f);
}

// The entries of a list lie as far apart as the program's header says.
TEST(test_abi_structs__lists_have_the_programs_distance) {
    enum { BYTES = offsetof(rondo_device_info, description), COUNT = 3 };
    _Alignas(16) unsigned char room[ROOM];
    prepare(room, BYTES);
    size_t count;
    check(rondo_device_list((void *)room, COUNT, &count));
    assert_true(count >= 2);
    const char *first = (const char *)room + offsetof(rondo_device_info, name);
    assert_string_equal(first, "host");
    assert_memory_equal(first + BYTES, "cuda", 4);
    assert_untouched(room, (count < COUNT ? count : COUNT) * (size_t)BYTES);
}

// ---- structs that the program fills in --------------------------------------------------------

static void add_one(void *arguments) {
    int *const *value = arguments;
    **value += 1;
}

TEST(test_abi_structs__launches_of_other_lengths) {
    fixture f;
    set_up(&f);
    int value = 0;
    int *address = &value;
    // What a later header has is longer; this library does not know what the rest means.
    struct {
        rondo_launch launch;
        uint64_t later;
    } longer = {.launch = {.struct_size = sizeof longer,
                           .name = "add_one",
                           .function = (void *)(uintptr_t)add_one,
                           .grid = {1, 1, 1},
                           .block = {1, 1, 1},
                           .arguments = &address,
                           .argument_bytes = sizeof address}};
    assert_int_equal(rondo_stream_launch(f.stream, &longer.launch), RONDO_STATUS_INVALID);
    longer.launch.struct_size = 0;
    assert_int_equal(rondo_stream_launch(f.stream, &longer.launch), RONDO_STATUS_INVALID);
    longer.launch.struct_size = sizeof longer.launch;
    check(rondo_stream_launch(f.stream, &longer.launch));
    // An older one may lack the flags, of which nothing is read.
    longer.launch.struct_size = offsetof(rondo_launch, flags);
    longer.launch.flags = UINT32_MAX;
    check(rondo_stream_launch(f.stream, &longer.launch));
    check(rondo_stream_synchronize(f.stream));
    assert_int_equal(value, 2);
    tear_down(&f);
}

TEST(test_abi_structs__options_of_other_lengths) {
    fixture f;
    set_up(&f);
    rondo_graph_options options = {.struct_size = offsetof(rondo_graph_options, keep), .keep = 77};
    rondo_graph *graph = NULL;
    check(rondo_graph_create(f.device, &options, &graph));  // `keep` is not there
    rondo_graph_destroy(graph);
    options.struct_size = sizeof options + 8;
    assert_int_equal(rondo_graph_create(f.device, &options, &graph), RONDO_STATUS_INVALID);
    const rondo_stream_options later = {.struct_size = sizeof later + 8};
    rondo_stream *stream = NULL;
    assert_int_equal(rondo_stream_create(f.device, &later, &stream), RONDO_STATUS_INVALID);
    assert_null(stream);
    tear_down(&f);
}

TEST(test_abi_structs__the_record_says_how_long_it_is) {
    assert_int_equal(rondo_error_get_last()->struct_size, sizeof(rondo_error));
    assert_int_equal(rondo_version_get_number(), RONDO_VERSION_NUMBER);
    assert_int_equal(sizeof(rondo_dtype), 4);
}

TEST_MAIN()
