// Altered graph files: refused, or a graph that stays inside of the memory it was given. On the
// host and on the fake driver.
//
//   test_graph_file [COUNT]      so many altered files of each kind; 200
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "graph/graph_object.h"
#include "rondo/control.h"
#include "rondo/rondo.h"
#include "saved/section_file.h"
#include "support/driver_calls.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { NUMBERS = 64, FILE_BYTES_MAX = 1 << 14 };

static size_t g_count = 200;
static char g_path[64];
static rondo_device *g_device;
static rondo_stream *g_stream;
static uint32_t *g_x;
enum { SYMBOLS = 3 };

static rondo_graph_symbol g_symbols[SYMBOLS];

typedef struct arguments {
    uint32_t *x;
    uint64_t count;
} arguments;

static void run_kernel(void *data) {
    (void)data;
}

static void run_host(void *data) {
    (void)data;
}

static void run_fake_kernel(const void *data, size_t bytes) {
    (void)data;
    (void)bytes;
}

static rondo_graph *create_graph(void) {
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    rondo_graph *graph;
    OK(rondo_graph_create(g_device, &options, &graph));
    return graph;
}

static void launch(rondo_stream *stream, uint32_t *x) {
    const arguments given = {.x = x, .count = 4};
    const rondo_launch wanted = LAUNCH("scale", g_symbols[0].address, 1, 32, &given, sizeof given);
    OK(rondo_stream_launch(stream, &wanted));
}

static rondo_status put_body(rondo_stream *stream, void *user_data) {
    (void)user_data;
    launch(stream, g_x + 4);
    return rondo_stream_fill(stream, g_x, 0, 4, 1);
}

// Every kind of node that a file has, but events. Host functions are in a graph without bodies:
// where the driver refuses a launch in a body, the graph around it stays with all that it holds
// (cuda_body.c).
static rondo_graph *record(bool has_bodies) {
    rondo_graph *inner = create_graph();
    rondo_graph *graph = create_graph();
    OK(rondo_graph_capture_begin(inner, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    launch(g_stream, g_x + 8);
    OK(rondo_graph_capture_end(inner));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_fill(g_stream, g_x, 1, 2, 8));
    launch(g_stream, g_x);
    OK(rondo_stream_copy(g_stream, g_x + 16, g_x, 32, RONDO_COPY_DEVICE_TO_DEVICE));
    OK(rondo_stream_add_graph(g_stream, inner));
    if (has_bodies) {
        OK(rondo_control_while(g_stream, g_x, put_body, NULL));
        OK(rondo_control_if(g_stream, g_x + 1, put_body, put_body, NULL));
    } else {
        const arguments given = {g_x, 3};
        OK(rondo_stream_call_host(g_stream, "note", run_host, &given, sizeof given));
    }
    OK(rondo_graph_capture_end(graph));
    rondo_graph_destroy(inner);
    return graph;
}

// Memory that the graph takes and gives back, twice, and that all kinds of nodes use.
static rondo_graph *record_memory(void) {
    rondo_graph *graph = create_graph();
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (uint32_t round = 0; round < 2; ++round) {
        void *taken = NULL;
        OK(driver_take(g_stream, NUMBERS * sizeof *g_x, &taken));
        OK(rondo_stream_fill(g_stream, taken, round, 4, 8));
        launch(g_stream, (uint32_t *)taken + 4);
        OK(rondo_stream_copy(g_stream, g_x + 16, taken, 32, RONDO_COPY_DEVICE_TO_DEVICE));
        OK(driver_give_back(g_stream, taken));
    }
    OK(rondo_graph_capture_end(graph));
    return graph;
}

static int g_driver_version;  // of the fake driver; 0: its newest

// Zeroed: as the fake driver has it.
static struct {
    const char *name;
    int compute_capability;
    size_t memory_bytes;
} g_gpu;

static void open_device(bool is_fake) {
    union {
        rondo_host_function function;
        void *address;
    } kernel = {.function = run_kernel};
    if (is_fake) {
        const fake_cuda_options options = {
            .name = g_gpu.name,
            .compute_capability = g_gpu.compute_capability,
            .memory_bytes = g_gpu.memory_bytes,
            .device_count = 2,
            .driver_version = g_driver_version != 0 ? g_driver_version : 13000,
            .has_get_proc_address = true};
        fake_cuda_reset(&options);
        fake_cuda_install();
        fake_cuda_install_compiler();
        fake_cuda_set_kernel("scale", run_fake_kernel);
    }
    OK(rondo_device_open(is_fake ? "cuda:0" : "host", &g_device));
    if (is_fake) {
        OK(rondo__device_get_function(g_device, "", NULL, 0, "scale", &kernel.address));
    }
    OK(rondo_stream_create(g_device, NULL, &g_stream));
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, NUMBERS * sizeof *g_x, (void **)&g_x));
    g_symbols[0] = (rondo_graph_symbol){"scale", kernel.address, 0, RONDO_SYMBOL_FUNCTION};
    g_symbols[1] = (rondo_graph_symbol){"x", g_x, NUMBERS * sizeof *g_x, RONDO_SYMBOL_MEMORY};
    kernel.function = run_host;
    g_symbols[2] = (rondo_graph_symbol){"note", kernel.address, 0, RONDO_SYMBOL_HOST_FUNCTION};
}

static void close_device(void) {
    rondo_memory_free(g_device, g_x);
    rondo_stream_destroy(g_stream);
    rondo_device_release(g_device);
}

// ---- files ------------------------------------------------------------------------------------

static size_t read_file(unsigned char bytes[FILE_BYTES_MAX]) {
    FILE *file = fopen(g_path, "rb");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, FILE_BYTES_MAX, file);
    assert_int_equal(fclose(file), 0);
    assert_true(count > 0 && count < FILE_BYTES_MAX);
    return count;
}

static void write_file(const unsigned char *bytes, size_t count) {
    FILE *file = fopen(g_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static uint64_t g_random = 1;

static size_t draw(size_t bound) {
    g_random = g_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return bound > 0 ? (size_t)(g_random >> 33) % bound : 0;
}

// Half of the time near the beginning, where the table is.
static void alter(unsigned char *bytes, size_t count) {
    for (size_t i = 1 + draw(4); i > 0 && count > 0; --i) {
        bytes[draw(draw(2) == 0 ? count : (count < 256 ? count : 256))] ^=
            (unsigned char)(1 + draw(255));
    }
}

// Loads it; what is refused leaves the graph as it was.
static bool load(rondo_graph *graph) {
    const rondo_status status = rondo_graph_load(graph, g_path, g_symbols, SYMBOLS);
    if (status == RONDO_STATUS_OK) {
        OK(rondo_graph_reset(graph));
        return true;
    }
    assert_true(strlen(rondo_error_get_last()->message) > 0);
    assert_int_equal(graph->state, RONDO__GRAPH_EMPTY);
    return false;
}

// Each byte is covered by a checksum or has to be zero, so none may be another one.
static void load_with_another_byte(rondo_graph *graph, const unsigned char *whole, size_t count) {
    unsigned char bytes[FILE_BYTES_MAX];
    for (size_t i = 0; i < count; ++i) {
        memcpy(bytes, whole, count);
        bytes[i] ^= (unsigned char)(1 + draw(255));
        write_file(bytes, count);
        if (load(graph)) {
            fail_msg("byte %zu of %zu is looked at by nobody", i, count);
        }
    }
}

// Sums do not fit any more.
static size_t load_altered(rondo_graph *graph, const unsigned char *whole, size_t count) {
    unsigned char bytes[FILE_BYTES_MAX];
    size_t loaded = 0;
    for (size_t i = 0; i < g_count; ++i) {
        memcpy(bytes, whole, count);
        alter(bytes, count);
        write_file(bytes, draw(4) == 0 ? draw(count) : count);
        loaded += load(graph);
    }
    return loaded;
}

// Sections that are altered, in a file whose sums fit: numbers are looked at one by one.
static size_t load_resummed(rondo_graph *graph, const unsigned char *whole, size_t count) {
    rondo__section_file file;
    unsigned char bytes[3][FILE_BYTES_MAX];
    size_t loaded = 0;
    for (size_t i = 0; i < g_count; ++i) {
        rondo__section_piece pieces[3];
        rondo__section_source sources[3];
        write_file(whole, count);
        OK(rondo__section_file_open(&rondo__graph_file_kind, g_path, &file));
        assert_int_equal(file.section_count, 3);
        const size_t altered = draw(8) == 0 ? draw(3) : 2;
        for (size_t k = 0; k < 3; ++k) {
            const rondo__section *section = &file.sections[k];
            memcpy(bytes[k], section->bytes, section->byte_count);
            pieces[k] = (rondo__section_piece){bytes[k], section->byte_count, 0};
            sources[k] = (rondo__section_source){section->name, section->version, &pieces[k], 1};
        }
        pieces[altered].byte_count -= draw(8) == 0 ? draw(pieces[altered].byte_count) : 0;
        alter(bytes[altered], pieces[altered].byte_count);
        OK(rondo__section_file_write(&rondo__graph_file_kind, g_path, sources, 3));
        rondo__section_file_close(&file);
        loaded += load(graph);
    }
    return loaded;
}

typedef enum world { WITH_BODIES, WITH_HOST_FUNCTIONS, WITH_MEMORY } world;

static void load_all(bool is_fake, world kind) {
    static unsigned char whole[FILE_BYTES_MAX];
    open_device(is_fake);
    rondo_graph *graph = kind == WITH_MEMORY ? record_memory() : record(kind == WITH_BODIES);
    rondo_graph *again = create_graph();
    OK(rondo_graph_save(graph, g_path, g_symbols, SYMBOLS));
    const size_t count = read_file(whole);
    assert_true(load(again));
    rondo_log_set_level(RONDO_LOG_ERROR);
    load_with_another_byte(again, whole, count);
    assert_int_equal(load_altered(again, whole, count), 0);
    assert_true(load_resummed(again, whole, count) < g_count);
    rondo_log_set_level(RONDO_LOG_WARNING);
    rondo_graph_destroy(again);
    rondo_graph_destroy(graph);
    close_device();
}

TEST(test_graph_file__altered_files_are_no_wrong_graph_on_the_host) {
    load_all(false, WITH_BODIES);
    load_all(false, WITH_HOST_FUNCTIONS);
}

TEST(test_graph_file__altered_files_are_no_wrong_graph_on_a_gpu) {
    load_all(true, WITH_BODIES);
    load_all(true, WITH_HOST_FUNCTIONS);
    load_all(true, WITH_MEMORY);
}

static uint32_t get_version(const char *section) {
    rondo__section_file file;
    OK(rondo__section_file_open(&rondo__graph_file_kind, g_path, &file));
    const uint32_t version = rondo__section_file_find(&file, section)->version;
    rondo__section_file_close(&file);
    return version;
}

// Only a graph that takes memory has the newer form, so that older libraries read the others.
TEST(test_graph_file__memory_has_a_form_of_its_own) {
    open_device(true);
    rondo_graph *graph = record(false);
    OK(rondo_graph_save(graph, g_path, g_symbols, SYMBOLS));
    assert_int_equal(get_version("graph"), 2);
    rondo_graph_destroy(graph);
    graph = record_memory();
    OK(rondo_graph_save(graph, g_path, g_symbols, SYMBOLS));
    assert_int_equal(get_version("graph"), 3);
    rondo_graph_destroy(graph);
    close_device();
}

// The hidden stream that it was made on is not kept: a GPU has half a megabyte for each.
TEST(test_graph_file__a_loaded_graph_keeps_what_a_recorded_one_does) {
    open_device(true);
    const size_t before = fake_cuda_count_objects();
    rondo_graph *graph = record(false);
    const size_t with_one = fake_cuda_count_objects();
    OK(rondo_graph_save(graph, g_path, g_symbols, SYMBOLS));
    rondo_graph *loaded = create_graph();
    assert_int_equal(fake_cuda_count_objects(), with_one);
    OK(rondo_graph_load(loaded, g_path, g_symbols, SYMBOLS));
    assert_int_equal(fake_cuda_count_objects() - with_one, with_one - before);
    rondo_graph_destroy(loaded);
    rondo_graph_destroy(graph);
    close_device();
}

static void refuse_save(rondo_graph *graph, const char *why) {
    assert_int_equal(rondo_graph_save(graph, g_path, g_symbols, SYMBOLS), RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, why));
}

// A pool of which other processes have parts; here, and where the file is loaded.
TEST(test_graph_file__memory_of_another_pool_is_refused) {
    open_device(true);
    rondo_graph *graph = record_memory();
    rondo_graph *again = create_graph();
    OK(rondo_graph_save(graph, g_path, g_symbols, SYMBOLS));
    fake_cuda_share_pool(true);
    assert_int_equal(rondo_graph_load(again, g_path, g_symbols, SYMBOLS), RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "set its default pool"));
    rondo_graph_destroy(graph);
    graph = record_memory();
    refuse_save(graph, "node 0 (memory): it takes memory that other processes");
    fake_cuda_share_pool(false);
    rondo_graph_destroy(again);
    rondo_graph_destroy(graph);
    close_device();
}

// Memory of which no node before has taken anything: given back twice.
TEST(test_graph_file__memory_that_is_given_back_twice_is_refused) {
    open_device(true);
    rondo_graph *graph = create_graph();
    void *taken = NULL;
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(driver_take(g_stream, 64, &taken));
    OK(driver_give_back(g_stream, taken));
    OK(driver_give_back(g_stream, taken));
    OK(rondo_graph_capture_end(graph));
    refuse_save(graph, "that no node before it has taken");
    rondo_graph_destroy(graph);
    close_device();
}

// A file of another generation, and of the host.
TEST(test_graph_file__another_device_is_refused_by_name) {
    open_device(false);
    rondo_graph *graph = record(true);
    OK(rondo_graph_save(graph, g_path, g_symbols, SYMBOLS));
    rondo_graph_destroy(graph);
    close_device();
    open_device(true);
    rondo_graph *again = create_graph();
    assert_int_equal(rondo_graph_load(again, g_path, g_symbols, SYMBOLS), RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "made on host"));
    rondo_graph_destroy(again);
    close_device();
}

static void set_gpu(const char *name, int compute_capability, size_t memory_bytes) {
    g_gpu.name = name;
    g_gpu.compute_capability = compute_capability;
    g_gpu.memory_bytes = memory_bytes;
}

// An H100 takes what an H200 has recorded; other generations refuse it by name.
TEST(test_graph_file__gpus_of_one_generation) {
    static const struct {
        int compute_capability;
        const char *words;
    } rows[] = {{90, NULL},
                {80, "cuda:0 is cuda 8.0"},
                {89, "cuda:0 is cuda 8.9"},
                {100, "cuda:0 is cuda 10.0"}};
    set_gpu("NVIDIA H200", 90, (size_t)141 << 30);
    open_device(true);
    rondo_graph *graph = record(false);
    OK(rondo_graph_save(graph, g_path, g_symbols, SYMBOLS));
    rondo_graph_destroy(graph);
    close_device();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        set_gpu("NVIDIA H100 80GB HBM3", rows[i].compute_capability, (size_t)80 << 30);
        open_device(true);
        rondo_graph *again = create_graph();
        const rondo_status status = rondo_graph_load(again, g_path, g_symbols, SYMBOLS);
        if (rows[i].words == NULL) {
            OK(status);
            OK(rondo_graph_replay(again, g_stream));
            OK(rondo_stream_synchronize(g_stream));
        } else {
            assert_int_equal(status, RONDO_STATUS_UNSUPPORTED);
            assert_non_null(strstr(rondo_error_get_last()->message, "made on cuda 9.0"));
            assert_non_null(strstr(rondo_error_get_last()->message, "NVIDIA H200"));
            assert_non_null(strstr(rondo_error_get_last()->message, rows[i].words));
        }
        rondo_graph_destroy(again);
        close_device();
    }
    set_gpu(NULL, 0, 0);
}

static rondo_graph *record_event(rondo_event *event) {
    rondo_graph *graph = create_graph();
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_fill(g_stream, g_x, 1, 4, 1));
    OK(rondo_stream_wait_event(g_stream, event));
    OK(rondo_graph_capture_end(graph));
    return graph;
}

// Memory is of the graph's own GPU; an event that is waited for may be another's.
TEST(test_graph_file__symbols_of_another_gpu) {
    open_device(true);
    rondo_device *other;
    rondo_event *events[2], *host_event;
    rondo_graph_symbol symbols[3] = {g_symbols[0], g_symbols[1]};
    void *far_memory = NULL;
    rondo_device *host;
    OK(rondo_device_open("cuda:1", &other));
    OK(rondo_device_open("host", &host));
    OK(rondo_memory_allocate(other, RONDO_MEMORY_DEVICE, NUMBERS * sizeof *g_x, &far_memory));
    OK(rondo_event_create(other, RONDO_EVENT_EXTERNAL, &events[0]));
    OK(rondo_event_create(other, 0, &events[1]));
    OK(rondo_event_create(host, RONDO_EVENT_EXTERNAL, &host_event));
    symbols[2] = (rondo_graph_symbol){"done", events[0], 0, RONDO_SYMBOL_EVENT};
    rondo_graph *graph = record_event(events[0]);
    rondo_graph *again = create_graph();
    OK(rondo_graph_save(graph, g_path, symbols, 3));
    OK(rondo_graph_load(again, g_path, symbols, 3));
    OK(rondo_graph_reset(again));
    symbols[1].address = far_memory;
    assert_int_equal(rondo_graph_load(again, g_path, symbols, 3), RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "memory x is of cuda:1"));
    symbols[1].address = g_x;
    symbols[2].address = events[1];
    assert_int_equal(rondo_graph_load(again, g_path, symbols, 3), RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "event done is not external"));
    symbols[2].address = host_event;
    assert_int_equal(rondo_graph_load(again, g_path, symbols, 3), RONDO_STATUS_INVALID);
    assert_non_null(
        strstr(rondo_error_get_last()->message, "event done is of host; a graph of cuda:0"));
    symbols[2].address = events[0];
    OK(rondo_graph_load(again, g_path, symbols, 3));
    // A graph that uses the other's memory is refused when it is saved.
    OK(rondo_graph_reset(graph));
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    launch(g_stream, far_memory);
    OK(rondo_graph_capture_end(graph));
    symbols[1].address = far_memory;
    assert_int_equal(rondo_graph_save(graph, g_path, symbols, 3), RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "memory x is of cuda:1"));
    rondo_graph_destroy(again);
    rondo_graph_destroy(graph);
    rondo_event_destroy(host_event);
    rondo_event_destroy(events[1]);
    rondo_event_destroy(events[0]);
    rondo_memory_free(other, far_memory);
    rondo_device_release(host);
    rondo_device_release(other);
    close_device();
}

static rondo_status put_nothing(rondo_stream *stream, void *user_data) {
    (void)stream;
    (void)user_data;
    return RONDO_STATUS_OK;
}

// An else, and a switch in a body of another, of which a branch is empty.
static rondo_status put_switch(rondo_stream *stream, void *user_data) {
    (void)user_data;
    static const rondo_body_function bodies[] = {put_body, put_nothing, put_body};
    launch(stream, g_x + 2);
    return rondo_control_switch(stream, g_x + 2, bodies, 3, NULL);
}

static rondo_graph *record_rows(void) {
    rondo_graph *graph = create_graph();
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    launch(g_stream, g_x);
    OK(rondo_control_if(g_stream, g_x + 1, put_switch, put_body, NULL));
    OK(rondo_control_if(g_stream, g_x + 1, put_body, NULL, NULL));
    OK(put_switch(g_stream, NULL));
    launch(g_stream, g_x);
    OK(rondo_graph_capture_end(graph));
    return graph;
}

static size_t count_nodes(rondo_graph *graph) {
    size_t count = 0;
    OK(rondo_graph_get_node_count(graph, &count));
    return count;
}

static void assert_no_difference(rondo_graph *graph, rondo_graph *again) {
    rondo_difference difference = {.struct_size = sizeof difference};
    size_t count = 0;
    OK(rondo_graph_compare(graph, again, &difference, 1, &count));
    assert_int_equal(count, 0);
}

// There an else is two ifs, and a switch as many as it has branches; the file has one node. So the
// file of an older driver is a file of a newer one, too, byte for byte.
TEST(test_graph_file__an_else_of_an_older_driver_is_made_again) {
    static unsigned char bytes[2][FILE_BYTES_MAX];
    static const int versions[] = {12030, 13000};
    size_t byte_counts[2], node_counts[2];
    for (int i = 0; i < 2; ++i) {
        g_driver_version = versions[i];
        open_device(true);
        rondo_graph *graph = record_rows();
        rondo_graph *again = create_graph();
        OK(rondo_graph_save(graph, g_path, g_symbols, SYMBOLS));
        OK(rondo_graph_load(again, g_path, g_symbols, SYMBOLS));
        assert_no_difference(graph, again);
        node_counts[i] = count_nodes(again);
        byte_counts[i] = read_file(bytes[i]);
        rondo_graph_destroy(again);
        rondo_graph_destroy(graph);
        close_device();
    }
    g_driver_version = 0;
    assert_int_equal(node_counts[0], 2 + 4 + 2 + 1 + 6);
    assert_int_equal(node_counts[1], 2 + 2 + 2 + 1 + 2);
    assert_int_equal(byte_counts[0], byte_counts[1]);
    assert_memory_equal(bytes[0], bytes[1], byte_counts[0]);
}

// Something comes behind the first of its ifs alone.
TEST(test_graph_file__a_row_that_was_edited_is_refused) {
    rondo__node_handle first, ends[2];
    size_t count = 0;
    g_driver_version = 12030;
    open_device(true);
    g_driver_version = 0;
    const rondo__backend *backend = g_device->backend;
    rondo_graph *graph = create_graph();
    OK(rondo_graph_capture_begin(graph, g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_control_if(g_stream, g_x + 1, put_body, put_body, NULL));
    OK(backend->get_frontier(g_stream, &ends[0], 1, &count));
    OK(backend->get_predecessors(g_stream, ends[0], &first, 1, &count));
    OK(backend->set_frontier(g_stream, &first, 1));
    launch(g_stream, g_x);
    OK(backend->get_frontier(g_stream, &ends[1], 1, &count));
    OK(backend->set_frontier(g_stream, ends, 2));
    OK(rondo_graph_capture_end(graph));
    refuse_save(graph, "drivers before CUDA 12.8 do not have as one node, and was edited");
    rondo_graph_destroy(graph);
    close_device();
}

// Files of earlier libraries have them.
TEST(test_graph_file__checksums_stay_as_they_are) {
    static unsigned char bytes[(1 << 20) + 77];
    rondo__section_file file;
    for (size_t i = 0; i < sizeof bytes; ++i) {
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    }
    const rondo__section_piece piece = {bytes, sizeof bytes, 0};
    const rondo__section_source source = {"bytes", 1, &piece, 1};
    OK(rondo__section_file_write(&rondo__graph_file_kind, g_path, &source, 1));
    OK(rondo__section_file_open(&rondo__graph_file_kind, g_path, &file));
    assert_int_equal(file.sections[0].sum.low, UINT64_C(0x6469c888426882f3));
    assert_int_equal(file.sections[0].sum.high, UINT64_C(0xf84f9eee0873a3e8));
    rondo__section_file_close(&file);
}

static int make_file(void **state) {
    (void)state;
    (void)snprintf(g_path, sizeof g_path, "%s/rondo_graph_XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : P_tmpdir);
    const int file = mkstemp(g_path);
    return file >= 0 && close(file) == 0 ? 0 : -1;
}

static int drop_file(void **state) {
    (void)state;
    return unlink(g_path);
}

int main(int argc, char **argv) {
    g_count = argc > 1 ? (size_t)strtoull(argv[1], NULL, 10) : g_count;
    return RUN_TESTS(make_file, drop_file);
}
