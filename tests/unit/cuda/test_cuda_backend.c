// The CUDA backend's work on the fake driver: streams, events, memory, launches, capture, graphs.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "backend/backend.h"
#include "backend/cuda/driver/cuda_device.h"
#include "backend/node_image.h"
#include "base/memory.h"
#include "rondo/status.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/fake/fake_cuda_state.h"
#include "support/test.h"

static const rondo__backend *const g_cuda = &rondo__backend_cuda;
static rondo_device *g_device;
static rondo_stream *g_stream;

static int set_up_driver(const fake_cuda_options *options) {
    fake_cuda_reset(options);
    fake_cuda_install();
    OK(g_cuda->open_device(0, &g_device));
    OK(g_cuda->create_stream(g_device, 0, &g_stream));
    return 0;
}

static int set_up(void **state) {
    (void)state;
    return set_up_driver(NULL);
}

// Whatever a test did, nothing is left and nothing illegal was asked of the driver.
static int tear_down(void **state) {
    (void)state;
    g_cuda->destroy_stream(g_stream);
    g_cuda->close_device(g_device);
    assert_int_equal(fake_cuda_count_objects(), 0);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cuda_uninstall();
    return 0;
}

static void *allocate(rondo_memory_kind kind, size_t bytes) {
    void *address = NULL;
    OK(g_cuda->allocate(g_device, kind, bytes, &address));
    return address;
}

static rondo__executable *end_and_instantiate(void) {
    rondo__template *recorded = NULL;
    rondo__executable *executable = NULL;
    OK(g_cuda->end_capture(g_stream, &recorded));
    OK(g_cuda->instantiate(recorded, &executable));
    g_cuda->destroy_template(recorded);
    return executable;
}

static rondo_status begin(rondo_stream *stream, rondo_capture_mode mode) {
    return g_cuda->begin_capture(stream, mode, NULL);
}

static rondo__capture_state get_state(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    OK(g_cuda->get_capture_state(stream, &state));
    return state;
}

// After whatever went wrong the stream records and replays again.
static void assert_stream_is_usable(void) {
    assert_int_equal(get_state(g_stream), RONDO__CAPTURE_NONE);
    uint32_t *values = allocate(RONDO_MEMORY_DEVICE, 16);
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->fill(g_stream, values, 7, 4, 4));
    rondo__executable *executable = end_and_instantiate();
    OK(g_cuda->replay(executable, g_stream));
    OK(g_cuda->synchronize_stream(g_stream));
    assert_int_equal(values[3], 7);
    g_cuda->destroy_executable(executable);
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, values);
}

// ---- devices and memory -----------------------------------------------------------------------

TEST(test_cuda_backend__describes_devices) {
    char reason[256];
    rondo_device_info info = {.struct_size = sizeof info};
    assert_int_equal(g_cuda->count_devices(reason, sizeof(reason)), 1);
    OK(g_cuda->describe_device(0, &info));
    assert_string_equal(info.name, "cuda:0");
    assert_string_equal(info.description, "Fake GPU 0");
    assert_int_equal(info.arch_major, 9);
    assert_int_equal(info.compute_units, 132);
    assert_int_equal(info.driver_version, 13000);
    assert_true(info.available && info.free_bytes > 0);
    assert_int_equal(g_cuda->describe_device(1, &info), RONDO_STATUS_DRIVER);
}

TEST(test_cuda_backend__no_gpu_is_explained) {
    fake_cuda_reset(&(fake_cuda_options){.driver_version = 13000, .has_get_proc_address = true});
    fake_cuda_install();
    char reason[256];
    assert_int_equal(g_cuda->count_devices(reason, sizeof(reason)), 0);
    assert_non_null(strstr(reason, "CUDA_VISIBLE_DEVICES"));
    fake_cuda_uninstall();
}

// The caller's own current context is back after every call, whatever it was.
TEST(test_cuda_backend__context_is_restored) {
    const rondo__cuda_api *api = rondo__cuda_device_of(g_device)->api;
    rondo__cu_context current = NULL;
    void *address = allocate(RONDO_MEMORY_DEVICE, 64);
    OK(g_cuda->fill(g_stream, address, 1, 1, 64));
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, address);
    assert_int_equal(api->cuCtxGetCurrent(&current), RONDO__CU_SUCCESS);
    assert_null(current);
    // With the context current already, nothing is pushed.
    api->cuCtxPushCurrent(rondo__cuda_device_of(g_device)->context);
    size_t before = fake_cuda_count_calls("cuCtxPushCurrent");
    OK(g_cuda->synchronize_stream(g_stream));
    assert_int_equal(fake_cuda_count_calls("cuCtxPushCurrent"), before);
    api->cuCtxPopCurrent(&current);
}

static size_t count_pushes_of_a_replay(void) {
    uint32_t *values = allocate(RONDO_MEMORY_DEVICE, 16);
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->fill(g_stream, values, 7, 4, 4));
    rondo__executable *executable = end_and_instantiate();
    OK(g_cuda->replay(executable, g_stream));  // asks once whether the capture has ended
    OK(g_cuda->fill(g_stream, values, 0, 4, 4));
    size_t before = fake_cuda_count_calls("cuCtxPushCurrent");
    size_t calls = fake_cuda_count_calls(NULL);
    OK(g_cuda->replay(executable, g_stream));
    size_t pushes = fake_cuda_count_calls("cuCtxPushCurrent") - before;
    // Where nothing needs to be pushed the launch is all that the driver is asked.
    assert_true(pushes > 0 || fake_cuda_count_calls(NULL) == calls + 1);
    assert_int_equal(values[3], 7);
    g_cuda->destroy_executable(executable);
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, values);
    return pushes;
}

// A replay from a thread without a context: a driver that takes the stream's is asked for nothing
// else; one that wants it current gets it.
static void test_cuda_backend__replays_need_no_current_context(void **state) {
    assert_int_equal(count_pushes_of_a_replay(), 0);
    assert_int_equal(tear_down(state), 0);
    set_up_driver(&(fake_cuda_options){
        .device_count = 1, .driver_version = 12040, .has_get_proc_address = true});
    assert_int_equal(count_pushes_of_a_replay(), 1);
}

static size_t count_pushes_of_a_capture(void) {
    size_t before = fake_cuda_count_calls("cuCtxPushCurrent");
    rondo__template *recorded = NULL;
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->end_capture(g_stream, &recorded));
    size_t pushes = fake_cuda_count_calls("cuCtxPushCurrent") - before;
    g_cuda->destroy_template(recorded);
    return pushes;
}

// The same for the begin and the end of a capture.
static void test_cuda_backend__captures_need_no_current_context(void **state) {
    assert_int_equal(count_pushes_of_a_capture(), 0);
    assert_int_equal(tear_down(state), 0);
    set_up_driver(&(fake_cuda_options){
        .device_count = 1, .driver_version = 12040, .has_get_proc_address = true});
    assert_int_equal(count_pushes_of_a_capture(), 2);
}

// The begin tells the id. A driver that starts a capture and cannot tell has it ended again.
TEST(test_cuda_backend__begin_tells_the_id) {
    uint64_t id = 0;
    uint64_t asked = 0;
    rondo__capture_state recording;
    rondo__template *recorded = NULL;
    OK(g_cuda->begin_capture(g_stream, RONDO_CAPTURE_THREAD_LOCAL, &id));
    OK(g_cuda->get_capture_id(g_stream, &recording, &asked));
    assert_int_not_equal(id, 0);
    assert_int_equal(id, asked);
    OK(g_cuda->end_capture(g_stream, &recorded));
    g_cuda->destroy_template(recorded);
    fake_cuda_fail_nth(1, RONDO__CU_ERROR_NOT_SUPPORTED);
    assert_int_equal(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL), RONDO_STATUS_UNSUPPORTED);
    assert_string_equal(fake_cuda_get_failed_call(), "cuStreamGetCaptureInfo");
    assert_string_equal(rondo_error_get_last()->call, "cuStreamGetCaptureInfo");
    assert_stream_is_usable();
}

TEST(test_cuda_backend__out_of_memory_says_how_much) {
    void *address = NULL;
    assert_int_equal(g_cuda->allocate(g_device, RONDO_MEMORY_DEVICE, (size_t)1 << 40, &address),
                     RONDO_STATUS_NO_DEVICE_MEMORY);
    assert_null(address);
    const rondo_error *error = rondo_error_get_last();
    assert_non_null(strstr(error->message, "1099511627776 bytes"));
    assert_string_equal(error->driver_name, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_string_equal(error->call, "cuMemAlloc");
    assert_int_equal(g_cuda->allocate(g_device, RONDO_MEMORY_PINNED, (size_t)1 << 40, &address),
                     RONDO_STATUS_NO_MEMORY);
}

TEST(test_cuda_backend__copies_and_fills) {
    char *device = allocate(RONDO_MEMORY_DEVICE, 64);
    char *other = allocate(RONDO_MEMORY_DEVICE, 64);
    char *pinned = allocate(RONDO_MEMORY_PINNED, 64);
    char pageable[64];
    memset(pageable, 5, sizeof(pageable));
    OK(g_cuda->copy(g_stream, device, pageable, 64, RONDO_COPY_HOST_TO_DEVICE));
    OK(g_cuda->copy(g_stream, other, device, 64, RONDO_COPY_DEVICE_TO_DEVICE));
    OK(g_cuda->copy(g_stream, pinned, other, 64, RONDO_COPY_DEVICE_TO_HOST));
    OK(g_cuda->synchronize_stream(g_stream));
    assert_memory_equal(pinned, pageable, 64);
    OK(g_cuda->fill(g_stream, device, 0xabcd0102, 4, 2));
    OK(g_cuda->fill(g_stream, device + 8, 0xabcd0102, 2, 2));
    OK(g_cuda->fill(g_stream, device + 12, 0xabcd0102, 1, 2));
    static const unsigned char wanted[14] = {2, 1, 0xcd, 0xab, 2, 1, 0xcd, 0xab, 2, 1, 2, 1, 2, 2};
    assert_memory_equal(device, wanted, sizeof(wanted));
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, device);
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, other);
    g_cuda->deallocate(g_device, RONDO_MEMORY_PINNED, pinned);
}

// ---- streams and events -----------------------------------------------------------------------

TEST(test_cuda_backend__wraps_streams) {
    rondo_stream *wrapped = NULL;
    OK(g_cuda->wrap_stream(g_device, g_stream->native, &wrapped));
    assert_true(wrapped->is_wrapped && !wrapped->is_legacy);
    assert_ptr_equal(wrapped->native, g_stream->native);
    g_cuda->destroy_stream(wrapped);  // leaves the native stream alone
    OK(g_cuda->synchronize_stream(g_stream));
    OK(g_cuda->wrap_stream(g_device, NULL, &wrapped));
    assert_true(wrapped->is_legacy);
    assert_int_equal(get_state(wrapped), RONDO__CAPTURE_NONE);
    g_cuda->destroy_stream(wrapped);
    OK(g_cuda->wrap_stream(g_device, (void *)RONDO__CU_STREAM_LEGACY, &wrapped));
    assert_true(wrapped->is_legacy);
    g_cuda->destroy_stream(wrapped);
    int nothing = 0;
    assert_int_equal(g_cuda->wrap_stream(g_device, &nothing, &wrapped), RONDO_STATUS_INVALID);
    assert_null(wrapped);
}

TEST(test_cuda_backend__events_tell_time) {
    rondo_event *events[3];
    OK(g_cuda->create_event(g_device, RONDO_EVENT_TIMED, &events[0]));
    OK(g_cuda->create_event(g_device, RONDO_EVENT_TIMED, &events[1]));
    OK(g_cuda->create_event(g_device, 0, &events[2]));
    int64_t elapsed_ns = -1;
    assert_int_equal(g_cuda->get_elapsed_ns(events[0], events[1], &elapsed_ns),
                     RONDO_STATUS_STATE);  // never recorded
    OK(g_cuda->record_event(events[0], g_stream));
    OK(g_cuda->record_event(events[1], g_stream));
    OK(g_cuda->record_event(events[2], g_stream));
    OK(g_cuda->get_elapsed_ns(events[0], events[1], &elapsed_ns));
    assert_true(elapsed_ns >= 0 && elapsed_ns < 10000000000);
    assert_int_equal(g_cuda->get_elapsed_ns(events[0], events[2], &elapsed_ns), RONDO_STATUS_STATE);
    assert_non_null(strstr(rondo_error_get_last()->message, "RONDO_EVENT_TIMED"));
    bool is_complete = false;
    OK(g_cuda->query_event(events[0], &is_complete));
    assert_true(is_complete);
    for (size_t i = 0; i < 3; i++) {
        g_cuda->destroy_event(events[i]);
    }
}

// ---- work -------------------------------------------------------------------------------------

static void add_to(void *arguments) {
    int *target = NULL;
    memcpy(&target, arguments, sizeof(target));
    *target += 1;
}

TEST(test_cuda_backend__host_functions_own_their_arguments) {
    int counter = 0;
    int *target = &counter;
    OK(g_cuda->call_host(g_stream, "add", add_to, &target, sizeof(target)));
    OK(g_cuda->synchronize_stream(g_stream));
    assert_int_equal(counter, 1);
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->call_host(g_stream, "add", add_to, &target, sizeof(target)));
    target = NULL;  // the graph has its own copy
    rondo__executable *executable = end_and_instantiate();
    assert_int_equal(counter, 1);
    OK(g_cuda->replay(executable, g_stream));
    OK(g_cuda->replay(executable, g_stream));
    assert_int_equal(counter, 3);
    g_cuda->destroy_executable(executable);
}

// Blocks of patched calls do not gather where an executable is patched and updated in turns.
TEST(test_cuda_backend__updates_end_patched_calls) {
    int counter = 0;
    int *target = &counter;
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->call_host(g_stream, "add", add_to, &target, sizeof(target)));
    rondo__template *recorded = NULL;
    rondo__executable *executable = NULL;
    rondo__node_image image;
    OK(g_cuda->end_capture(g_stream, &recorded));
    OK(g_cuda->instantiate(recorded, &executable));
    OK(g_cuda->read_node(recorded, 0, &image));
    const int64_t taken = rondo__memory_get_thread_bytes();
    for (int round = 0; round < 3; round++) {
        bool was_updated = false;
        size_t done;
        OK(g_cuda->patch_nodes(executable, recorded, (rondo__node_image *[]){&image}, 1, &done));
        OK(g_cuda->replay(executable, g_stream));
        OK(g_cuda->update(executable, recorded, &was_updated));
        assert_true(was_updated);
        OK(g_cuda->replay(executable, g_stream));
        assert_true(rondo__memory_get_thread_bytes() == taken);
    }
    assert_int_equal(counter, 6);
    rondo__node_image_deinit(&image);
    g_cuda->destroy_executable(executable);
    g_cuda->destroy_template(recorded);
}

static void store_sum(const void *arguments, size_t argument_bytes) {
    struct {
        float *out;
        float a, b;
    } values;
    assert_int_equal(argument_bytes, sizeof(values));
    memcpy(&values, arguments, sizeof(values));
    *values.out = values.a + values.b;
}

TEST(test_cuda_backend__launches_packed_arguments) {
    fake_cuda_set_kernel("store_sum", store_sum);
    const rondo__cuda_api *api = rondo__cuda_device_of(g_device)->api;
    rondo__cu_module module = NULL;
    rondo__cu_function function = NULL;
    OK(rondo__cuda_push_context(rondo__cuda_device_of(g_device)));
    api->cuModuleLoadData(&module, "");
    api->cuModuleGetFunction(&function, module, "store_sum");
    float *out = allocate(RONDO_MEMORY_DEVICE, 64);
    struct {
        float *out;
        float a, b;
    } arguments = {out, 1.5f, 2.0f};
    rondo_launch launch = {.struct_size = sizeof launch,
                           .name = "store_sum",
                           .function = function,
                           .grid = {2, 3, 4},
                           .block = {32, 1, 1},
                           .shared_bytes = 16,
                           .arguments = &arguments,
                           .argument_bytes = sizeof(arguments)};
    OK(g_cuda->launch(g_stream, &launch));
    assert_true(*out == 3.5f);
    launch.block[0] = 2048;
    assert_int_equal(g_cuda->launch(g_stream, &launch), RONDO_STATUS_DRIVER);
    assert_string_equal(rondo_error_get_last()->op, "store_sum");
    assert_non_null(strstr(rondo_error_get_last()->message, "block 2048x1x1"));
    launch.block[0] = 32;

    // The same recorded: the dump knows name and shape.
    OK(begin(g_stream, RONDO_CAPTURE_RELAXED));
    OK(g_cuda->launch(g_stream, &launch));
    rondo__template *recorded = NULL;
    OK(g_cuda->end_capture(g_stream, &recorded));
    rondo__node_info info;
    OK(g_cuda->describe_node(recorded, 0, &info));
    assert_int_equal(info.kind, RONDO__NODE_KERNEL);
    assert_string_equal(info.name, "store_sum");
    assert_int_equal(info.grid[1], 3);
    assert_int_equal(info.block[0], 32);
    assert_int_equal(info.shared_bytes, 16);
    g_cuda->destroy_template(recorded);
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, out);
    api->cuModuleUnload(module);
    rondo__cu_context popped = NULL;
    api->cuCtxPopCurrent(&popped);
}

// A share of shared memory is a wish: a driver that refuses it stops nobody, one that fails does.
TEST(test_cuda_backend__wishes_may_be_refused) {
    static const struct {
        rondo__cu_result code;
        rondo_status status;
    } rows[] = {{RONDO__CU_ERROR_INVALID_VALUE, RONDO_STATUS_OK},
                {RONDO__CU_ERROR_NOT_SUPPORTED, RONDO_STATUS_OK},
                {RONDO__CU_ERROR_OUT_OF_MEMORY, RONDO_STATUS_NO_DEVICE_MEMORY},
                {RONDO__CU_ERROR_LAUNCH_FAILED, RONDO_STATUS_LOST}};
    void *function = NULL;
    fake_cuda_install_compiler();
    fake_cuda_set_kernel("store_sum", store_sum);
    OK(g_cuda->get_function(g_device, "", NULL, 0, "store_sum", &function));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        long before_it = 0;
        do {  // until it is this call that fails
            fake_cuda_fail_nth(before_it++, rows[i].code);
            const rondo_status status = g_cuda->prefer_shared(g_device, function, 32);
            if (strcmp(fake_cuda_get_failed_call(), "cuFuncSetAttribute") == 0) {
                assert_int_equal(status, rows[i].status);
                break;
            }
        } while (before_it < 4);
        assert_string_equal(fake_cuda_get_failed_call(), "cuFuncSetAttribute");
    }
    fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
}

// ---- capture ----------------------------------------------------------------------------------

TEST(test_cuda_backend__records_and_describes) {
    char *device = allocate(RONDO_MEMORY_DEVICE, 64);
    char *pinned = allocate(RONDO_MEMORY_PINNED, 64);
    memset(pinned, 3, 64);
    OK(begin(g_stream, RONDO_CAPTURE_GLOBAL));
    assert_int_equal(get_state(g_stream), RONDO__CAPTURE_ACTIVE);
    OK(g_cuda->copy(g_stream, device, pinned, 64, RONDO_COPY_HOST_TO_DEVICE));
    OK(g_cuda->fill(g_stream, device, 9, 1, 32));
    OK(g_cuda->copy(g_stream, pinned, device, 64, RONDO_COPY_DEVICE_TO_HOST));
    OK(g_cuda->call_host(g_stream, "observer", add_to, &(int *){NULL}, sizeof(int *)));
    rondo__template *recorded = NULL;
    OK(g_cuda->end_capture(g_stream, &recorded));
    assert_int_equal(pinned[0], 3);

    size_t count = 0;
    OK(g_cuda->count_nodes(recorded, &count));
    assert_int_equal(count, 4);
    rondo__node_info info;
    OK(g_cuda->describe_node(recorded, 0, &info));
    assert_int_equal(info.kind, RONDO__NODE_COPY);
    assert_int_equal(info.copy_kind, RONDO_COPY_HOST_TO_DEVICE);
    assert_ptr_equal(info.source, pinned);
    assert_ptr_equal(info.destination, device);
    assert_int_equal(info.byte_count, 64);
    OK(g_cuda->describe_node(recorded, 1, &info));
    assert_int_equal(info.kind, RONDO__NODE_FILL);
    assert_int_equal(info.fill_value, 9);
    assert_int_equal(info.byte_count, 32);
    OK(g_cuda->describe_node(recorded, 2, &info));
    assert_int_equal(info.copy_kind, RONDO_COPY_DEVICE_TO_HOST);
    OK(g_cuda->describe_node(recorded, 3, &info));
    assert_int_equal(info.kind, RONDO__NODE_HOST);
    assert_string_equal(info.name, "observer");
    assert_int_equal(g_cuda->describe_node(recorded, 4, &info), RONDO_STATUS_INVALID);

    size_t pairs[6];
    OK(g_cuda->list_edges(recorded, NULL, 0, &count));
    assert_int_equal(count, 3);
    OK(g_cuda->list_edges(recorded, pairs, 3, &count));
    static const size_t wanted[6] = {0, 1, 1, 2, 2, 3};
    assert_memory_equal(pairs, wanted, sizeof(wanted));
    assert_non_null(g_cuda->get_native_template(recorded));
    g_cuda->destroy_template(recorded);
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, device);
    g_cuda->deallocate(g_device, RONDO_MEMORY_PINNED, pinned);
}

// Waiting for other work while this thread records is harmless, and so is making an executable.
TEST(test_cuda_backend__priorities_count_upwards) {
    static const int32_t priorities[] = {0, 2, -1, INT32_MIN};
    static const int levels[] = {0, -2, 1, INT32_MAX};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; ++i) {
        rondo_stream *stream = NULL;
        OK(g_cuda->create_stream(g_device, priorities[i], &stream));
        assert_int_equal(((const fake_stream *)stream->native)->priority, levels[i]);
        (void)g_cuda->destroy_stream(stream);
    }
}

TEST(test_cuda_backend__other_streams_may_be_waited_for) {
    char *device = allocate(RONDO_MEMORY_DEVICE, 64);
    rondo_stream *other = NULL;
    rondo_event *event = NULL;
    bool is_complete = false;
    rondo__template *recorded = NULL;
    rondo__executable *executable = NULL;
    OK(g_cuda->create_stream(g_device, 0, &other));
    OK(g_cuda->create_event(g_device, 0, &event));
    OK(begin(other, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->fill(other, device, 1, 1, 64));
    OK(g_cuda->end_capture(other, &recorded));
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->record_event(event, other));
    OK(g_cuda->query_event(event, &is_complete));
    OK(g_cuda->synchronize_event(event));
    OK(g_cuda->instantiate(recorded, &executable));
    OK(g_cuda->replay(executable, other));
    OK(g_cuda->synchronize_stream(other));
    assert_int_equal(g_cuda->replay(executable, g_stream), RONDO_STATUS_STATE);
    assert_int_equal(get_state(g_stream), RONDO__CAPTURE_ACTIVE);
    g_cuda->destroy_executable(end_and_instantiate());
    OK(g_cuda->replay(executable, g_stream));
    g_cuda->destroy_executable(executable);
    g_cuda->destroy_template(recorded);
    g_cuda->destroy_event(event);
    g_cuda->destroy_stream(other);
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, device);
}

TEST(test_cuda_backend__fork_and_join) {
    char *device = allocate(RONDO_MEMORY_DEVICE, 64);
    rondo_stream *side = NULL;
    rondo_event *fork = NULL;
    rondo_event *join = NULL;
    OK(g_cuda->create_stream(g_device, 0, &side));
    side->number = 42;  // the generic layer counts them
    OK(g_cuda->create_event(g_device, 0, &fork));
    OK(g_cuda->create_event(g_device, 0, &join));
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->fill(g_stream, device, 1, 1, 8));
    OK(g_cuda->record_event(fork, g_stream));
    OK(g_cuda->wait_event(side, fork));
    assert_int_equal(get_state(side), RONDO__CAPTURE_ACTIVE);
    OK(g_cuda->fill(side, device + 8, 2, 1, 8));
    OK(g_cuda->fill(g_stream, device + 16, 3, 1, 8));
    bool is_complete = true;
    OK(g_cuda->record_event(join, side));
    OK(g_cuda->wait_event(g_stream, join));
    OK(g_cuda->fill(g_stream, device + 24, 4, 1, 8));
    rondo__template *recorded = NULL;
    OK(g_cuda->end_capture(g_stream, &recorded));
    size_t pairs[16];
    size_t count = 0;
    OK(g_cuda->list_edges(recorded, pairs, 8, &count));
    assert_int_equal(count, 4);
    g_cuda->destroy_template(recorded);

    // Not joined: an error that says what to do, and both streams are free again.
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->record_event(fork, g_stream));
    OK(g_cuda->wait_event(side, fork));
    OK(g_cuda->fill(side, device + 8, 2, 1, 8));
    assert_int_equal(g_cuda->query_event(fork, &is_complete), RONDO_STATUS_STATE);
    assert_string_equal(rondo_error_get_last()->driver_name, "CUDA_ERROR_CAPTURED_EVENT");
    assert_int_equal(g_cuda->end_capture(g_stream, &recorded), RONDO_STATUS_STATE);
    assert_null(recorded);
    assert_int_equal(get_state(side), RONDO__CAPTURE_NONE);
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->record_event(fork, g_stream));
    OK(g_cuda->wait_event(side, fork));
    OK(g_cuda->fill(side, device + 8, 2, 1, 8));
    assert_int_equal(g_cuda->end_capture(g_stream, &recorded), RONDO_STATUS_STATE);
    assert_non_null(strstr(rondo_error_get_last()->message, "stream 42 forked"));
    assert_non_null(strstr(rondo_error_get_last()->message, "not joined"));
    assert_stream_is_usable();
    g_cuda->destroy_event(fork);
    g_cuda->destroy_event(join);
    g_cuda->destroy_stream(side);
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, device);
}

static void *end_elsewhere(void *stream) {
    rondo__template *recorded = NULL;
    rondo_status status = g_cuda->end_capture(stream, &recorded);
    return (void *)(uintptr_t)status;
}

// A broken capture, too, is ended by the thread that began it, though the driver would let another:
// afterwards this one may do in a capture of its own thread what that forbids the program.
TEST(test_cuda_backend__broken_captures_end_where_they_began) {
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_GLOBAL};
    for (size_t i = 0; i < 2; i++) {
        rondo__template *recorded = NULL;
        pthread_t thread;
        void *status = NULL;
        OK(begin(g_stream, modes[i]));
        assert_int_equal(g_cuda->synchronize_stream(g_stream), RONDO_STATUS_STATE);
        assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, g_stream), 0);
        pthread_join(thread, &status);
        assert_int_equal((uintptr_t)status, RONDO_STATUS_STATE);
        assert_int_equal(get_state(g_stream), RONDO__CAPTURE_BROKEN);
        assert_int_equal(g_cuda->end_capture(g_stream, &recorded), RONDO_STATUS_STATE);
        assert_int_equal(get_state(g_stream), RONDO__CAPTURE_NONE);
        OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
        void *block = allocate(RONDO_MEMORY_DEVICE, 64);
        OK(g_cuda->end_capture(g_stream, &recorded));
        g_cuda->destroy_template(recorded);
        g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, block);
    }
}

TEST(test_cuda_backend__capture_misuse) {
    rondo_stream *other = NULL;
    rondo_event *event = NULL;
    rondo__template *recorded = NULL;
    OK(g_cuda->create_stream(g_device, 0, &other));
    OK(g_cuda->create_event(g_device, 0, &event));
    assert_int_equal(g_cuda->end_capture(g_stream, &recorded), RONDO_STATUS_STATE);
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_int_equal(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL), RONDO_STATUS_STATE);
    // Two captures meet: both break, each says so.
    OK(begin(other, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->record_event(event, other));
    assert_int_equal(g_cuda->wait_event(g_stream, event), RONDO_STATUS_STATE);
    assert_string_equal(rondo_error_get_last()->driver_name, "CUDA_ERROR_STREAM_CAPTURE_MERGE");
    assert_int_equal(g_cuda->end_capture(other, &recorded), RONDO_STATUS_STATE);
    assert_int_equal(g_cuda->end_capture(g_stream, &recorded), RONDO_STATUS_STATE);
    // The event of an ended capture stands for nothing.
    assert_int_equal(g_cuda->wait_event(other, event), RONDO_STATUS_STATE);
    assert_non_null(strstr(rondo_error_get_last()->message, "has ended"));
    // An event from before the capture.
    OK(g_cuda->record_event(event, other));
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_int_equal(g_cuda->wait_event(g_stream, event), RONDO_STATUS_STATE);
    assert_int_equal(g_cuda->end_capture(g_stream, &recorded), RONDO_STATUS_STATE);
    // Waiting for the whole device is refused before the driver hears of it.
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_int_equal(g_cuda->synchronize_device(g_device), RONDO_STATUS_STATE);
    OK(g_cuda->end_capture(g_stream, &recorded));
    g_cuda->destroy_template(recorded);
    assert_stream_is_usable();
    // A stream destroyed in the middle gives its capture up.
    OK(begin(other, RONDO_CAPTURE_THREAD_LOCAL));
    g_cuda->destroy_event(event);
    g_cuda->destroy_stream(other);
}

// The driver lets the library allocate beside captures of every mode: what they forbid to the
// program was checked before (capture/forbid.h).
TEST(test_cuda_backend__allocation_while_recording) {
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_RELAXED,
                                               RONDO_CAPTURE_GLOBAL};
    for (size_t i = 0; i < 3; i++) {
        OK(begin(g_stream, modes[i]));
        void *address = allocate(RONDO_MEMORY_DEVICE, 64);
        OK(g_cuda->fill(g_stream, address, 1, 1, 64));
        g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, address);
        g_cuda->destroy_executable(end_and_instantiate());
    }
    assert_stream_is_usable();
}

static void *end_from_thread(void *user_data) {
    rondo__template *recorded = NULL;
    *(rondo_status *)user_data = g_cuda->end_capture(g_stream, &recorded);
    return NULL;
}

TEST(test_cuda_backend__wrong_thread_leaves_the_capture_alone) {
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    rondo_status status = RONDO_STATUS_OK;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_from_thread, &status), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, RONDO_STATUS_STATE);
    assert_int_equal(get_state(g_stream), RONDO__CAPTURE_ACTIVE);
    g_cuda->destroy_executable(end_and_instantiate());
}

// ---- executables ------------------------------------------------------------------------------

static rondo__template *record_fills(char *device, uint32_t value, size_t count) {
    rondo__template *recorded = NULL;
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (size_t i = 0; i < count; i++) {
        OK(g_cuda->fill(g_stream, device + 8 * i, value, 1, 8));
    }
    OK(g_cuda->end_capture(g_stream, &recorded));
    return recorded;
}

TEST(test_cuda_backend__updates_where_the_topology_is_the_same) {
    char *device = allocate(RONDO_MEMORY_DEVICE, 64);
    rondo__template *first = record_fills(device, 1, 2);
    rondo__template *same = record_fills(device, 2, 2);
    rondo__template *longer = record_fills(device, 3, 3);
    rondo__executable *executable = NULL;
    OK(g_cuda->instantiate(first, &executable));
    bool was_updated = false;
    OK(g_cuda->update(executable, same, &was_updated));
    assert_true(was_updated);
    OK(g_cuda->upload(executable, g_stream));
    OK(g_cuda->replay(executable, g_stream));
    assert_int_equal(device[8], 2);
    OK(g_cuda->update(executable, longer, &was_updated));
    assert_false(was_updated);
    assert_non_null(g_cuda->get_native_executable(executable));
    g_cuda->destroy_executable(executable);
    g_cuda->destroy_template(first);
    g_cuda->destroy_template(same);
    g_cuda->destroy_template(longer);
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, device);
}

// An old driver: no kernel details, no blame, no update, but capture and replay all the same.
TEST(test_cuda_backend__old_driver_replays) {
    tear_down(state);
    set_up_driver(&(fake_cuda_options){.device_count = 1, .driver_version = 11040});
    assert_stream_is_usable();
    char *device = allocate(RONDO_MEMORY_DEVICE, 64);
    rondo__template *recorded = record_fills(device, 1, 3);
    size_t pairs[4];
    size_t count = 0;
    OK(g_cuda->list_edges(recorded, pairs, 2, &count));
    assert_int_equal(count, 2);
    rondo__executable *executable = NULL;
    OK(g_cuda->instantiate(recorded, &executable));
    bool was_updated = true;
    OK(g_cuda->update(executable, recorded, &was_updated));
    assert_false(was_updated);
    g_cuda->destroy_executable(executable);
    g_cuda->destroy_template(recorded);
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, device);
}

static void refuse_next(void *data) {
    (void)data;
    fake_cuda_fail_nth(0, RONDO__CU_ERROR_NOT_SUPPORTED);
}

TEST(test_cuda_backend__failed_instantiation_names_its_node) {
    OK(begin(g_stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(g_cuda->call_host(g_stream, "culprit", add_to, &(int *){NULL}, sizeof(int *)));
    rondo__template *recorded = NULL;
    rondo__executable *executable = NULL;
    OK(g_cuda->end_capture(g_stream, &recorded));
    fake_cuda_set_hook("cuGraphInstantiateWithParams", refuse_next, NULL);
    assert_int_equal(g_cuda->instantiate(recorded, &executable), RONDO_STATUS_UNSUPPORTED);
    assert_string_equal(fake_cuda_get_failed_call(), "cuGraphInstantiateWithParams");
    assert_string_equal(rondo_error_get_last()->op, "culprit");
    assert_null(executable);
    g_cuda->destroy_template(recorded);
}

// A fault on the GPU surfaces at the next call and marks the device; clean-up stays silent.
TEST(test_cuda_backend__sticky_fault_loses_the_device) {
    char *device = allocate(RONDO_MEMORY_DEVICE, 64);
    fake_cuda_fail_nth(0, RONDO__CU_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(g_cuda->synchronize_stream(g_stream), RONDO_STATUS_LOST);
    assert_true(atomic_load(&g_device->is_lost));
    assert_non_null(strstr(rondo_error_get_last()->message, "compute-sanitizer"));
    fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
    g_cuda->deallocate(g_device, RONDO_MEMORY_DEVICE, device);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(test_cuda_backend__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(describes_devices),
        cmocka_unit_test(test_cuda_backend__no_gpu_is_explained),
        CASE(context_is_restored),
        CASE(replays_need_no_current_context),
        CASE(captures_need_no_current_context),
        CASE(begin_tells_the_id),
        CASE(out_of_memory_says_how_much),
        CASE(copies_and_fills),
        CASE(wraps_streams),
        CASE(events_tell_time),
        CASE(host_functions_own_their_arguments),
        CASE(updates_end_patched_calls),
        CASE(launches_packed_arguments),
        CASE(wishes_may_be_refused),
        CASE(records_and_describes),
        CASE(priorities_count_upwards),
        CASE(other_streams_may_be_waited_for),
        CASE(fork_and_join),
        CASE(broken_captures_end_where_they_began),
        CASE(capture_misuse),
        CASE(allocation_while_recording),
        CASE(wrong_thread_leaves_the_capture_alone),
        CASE(updates_where_the_topology_is_the_same),
        CASE(old_driver_replays),
        CASE(failed_instantiation_names_its_node),
        CASE(sticky_fault_loses_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
