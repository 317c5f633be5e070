// Fail the nth: every driver call and every allocation of a scenario fails once, in turn, on the
// fake driver. Whatever fails: the failing call wrote a fresh record, nothing crashes, nothing
// stays behind, every object can still be destroyed, and nothing illegal is asked of the driver.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "backend/backend.h"
#include "backend/cuda/compile/nvrtc.h"
#include "backend/cuda/driver/cuda_api.h"
#include "rondo/graph.h"
#include "rondo/inspect.h"
#include "rondo/status.h"
#include "support/short_forms.h"
#include "support/sweep.h"

static const rondo__backend *const g_cuda = &rondo__backend_cuda;

// Everything a scenario may hold; torn down in any state.
typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *side;
    rondo_event *fork;
    rondo_event *join;
    void *memory;
    void *pinned;
    rondo__template *recorded;
    rondo__template *second;
    rondo__executable *executable;
    int counter;
} world;

static void count_up(void *arguments) {
    int *counter = NULL;
    memcpy(&counter, arguments, sizeof(counter));
    ++*counter;
}

static void open_world(world *w) {
    STEP(g_cuda->open_device(0, &w->device));
    STEP(g_cuda->create_stream(w->device, 0, &w->stream));
    STEP(g_cuda->create_stream(w->device, 0, &w->side));
    STEP(g_cuda->create_event(w->device, 0, &w->fork));
    STEP(g_cuda->create_event(w->device, RONDO_EVENT_TIMED, &w->join));
    STEP(g_cuda->allocate(w->device, RONDO_MEMORY_DEVICE, 256, &w->memory));
    STEP(g_cuda->allocate(w->device, RONDO_MEMORY_PINNED, 256, &w->pinned));
    memset(w->pinned, 1, 256);
}

static void work_eagerly(world *w) {
    int *counter = &w->counter;
    bool is_done = false;
    int64_t elapsed_ns = 0;
    rondo_stream *wrapped = NULL;
    rondo_device_info info = {.struct_size = sizeof info};
    STEP(g_cuda->describe_device(0, &info));
    STEP(g_cuda->copy(w->stream, w->memory, w->pinned, 256, RONDO_COPY_HOST_TO_DEVICE));
    STEP(g_cuda->fill(w->stream, w->memory, 3, 2, 8));
    STEP(g_cuda->call_host(w->stream, "count", count_up, &counter, sizeof(counter)));
    STEP(g_cuda->record_event(w->join, w->stream));
    STEP(g_cuda->wait_event(w->side, w->join));
    STEP(g_cuda->query_event(w->join, &is_done));
    STEP(g_cuda->synchronize_event(w->join));
    STEP(g_cuda->get_elapsed_ns(w->join, w->join, &elapsed_ns));
    STEP(g_cuda->query_stream(w->stream, &is_done));
    STEP(g_cuda->synchronize_stream(w->stream));
    STEP(g_cuda->wrap_stream(w->device, w->stream->native, &wrapped));
    g_cuda->destroy_stream(wrapped);
    STEP(g_cuda->synchronize_device(w->device));
}

static void record(world *w, rondo__template **out_template) {
    int *counter = &w->counter;
    STEP(g_cuda->begin_capture(w->stream, RONDO_CAPTURE_THREAD_LOCAL, NULL));
    STEP(g_cuda->copy(w->stream, w->memory, w->pinned, 256, RONDO_COPY_HOST_TO_DEVICE));
    STEP(g_cuda->record_event(w->fork, w->stream));
    STEP(g_cuda->wait_event(w->side, w->fork));
    STEP(g_cuda->fill(w->side, w->memory, 3, 1, 8));
    STEP(g_cuda->call_host(w->stream, "count", count_up, &counter, sizeof(counter)));
    void *more = NULL;
    STEP(g_cuda->allocate(w->device, RONDO_MEMORY_DEVICE, 64, &more));
    g_cuda->deallocate(w->device, RONDO_MEMORY_DEVICE, more);
    STEP(g_cuda->record_event(w->join, w->side));
    STEP(g_cuda->wait_event(w->stream, w->join));
    STEP(g_cuda->end_capture(w->stream, out_template));
}

static void replay(world *w) {
    size_t count = 0;
    size_t pairs[8];
    rondo__node_info info;
    bool was_updated = false;
    record(w, &w->recorded);
    if (w->recorded == NULL) {
        return;
    }
    STEP(g_cuda->count_nodes(w->recorded, &count));
    for (size_t i = 0; i < count; i++) {
        STEP(g_cuda->describe_node(w->recorded, i, &info));
    }
    STEP(g_cuda->list_edges(w->recorded, pairs, 4, &count));
    STEP(g_cuda->instantiate(w->recorded, &w->executable));
    STEP(g_cuda->upload(w->executable, w->stream));
    STEP(g_cuda->replay(w->executable, w->stream));
    STEP(g_cuda->synchronize_stream(w->stream));
    record(w, &w->second);
    if (w->second == NULL) {
        return;
    }
    STEP(g_cuda->update(w->executable, w->second, &was_updated));
    STEP(g_cuda->replay(w->executable, w->stream));
    STEP(g_cuda->synchronize_stream(w->stream));
}

// The same through the public calls: registry, argument checks and the graph object on top.
typedef struct embedding {
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *other;
    rondo_graph *graph;
    void *memory;
    void *pinned;
} embedding;

static bool swallow(void *user_data, const char *text, size_t bytes) {
    *(size_t *)user_data += bytes;
    (void)text;
    return true;
}

static void use_graph(embedding *e) {
    rondo_graph_options options = {.struct_size = sizeof options};
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    rondo_device_info info = {.struct_size = sizeof info};
    size_t dumped = 0;
    options.keep = RONDO_KEEP_TEMPLATE;
    STEP(rondo_device_open("cuda:0", &e->device));
    STEP(rondo_device_get_info(e->device, &info));
    STEP(rondo_stream_create(e->device, NULL, &e->stream));
    STEP(rondo_stream_wrap(e->device, rondo_stream_get_native(e->stream), &e->other));
    STEP(rondo_memory_allocate(e->device, RONDO_MEMORY_DEVICE, 64, &e->memory));
    STEP(rondo_memory_allocate(e->device, RONDO_MEMORY_PINNED, 64, &e->pinned));
    STEP(rondo_graph_create(e->device, &options, &e->graph));
    for (int round = 0; round < 2; round++) {
        STEP(rondo_graph_capture_begin(e->graph, e->stream, RONDO_CAPTURE_THREAD_LOCAL));
        STEP(rondo_stream_copy(e->stream, e->memory, e->pinned, 64, RONDO_COPY_HOST_TO_DEVICE));
        STEP(rondo_stream_fill(e->stream, e->memory, 1, 4, 8));
        STEP(rondo_stream_copy(e->stream, e->pinned, e->memory, 64, RONDO_COPY_DEVICE_TO_HOST));
        STEP(rondo_graph_capture_end(e->graph));
        STEP(rondo_graph_upload(e->graph, e->stream));
        STEP(rondo_graph_replay(e->graph, e->stream));
        STEP(rondo_graph_replay(e->graph, e->other));
        STEP(rondo_graph_dump(e->graph, RONDO_TEXT_JSON, swallow, &dumped));
        STEP(rondo_graph_instantiate(e->graph));
        STEP(rondo_graph_get_stats(e->graph, &stats));
        STEP(rondo_graph_reset(e->graph));
    }
    STEP(rondo_graph_capture_begin(e->graph, e->stream, RONDO_CAPTURE_RELAXED));
    rondo_graph_capture_abort(e->graph);
    STEP(rondo_stream_synchronize(e->stream));
    STEP(rondo_device_synchronize(e->device));
    // Destroyed while it records.
    STEP(rondo_graph_capture_begin(e->graph, e->stream, RONDO_CAPTURE_THREAD_LOCAL));
}

static void embed(const sweep_point *point) {
    (void)point;
    embedding e = {0};
    use_graph(&e);
    rondo_graph_destroy(e.graph);
    rondo_memory_free(e.device, e.memory);
    rondo_memory_free(e.device, e.pinned);
    rondo_stream_destroy(e.other);
    rondo_stream_destroy(e.stream);
    rondo_device_release(e.device);
}

static void scale(const void *arguments, size_t argument_bytes) {
    (void)arguments;
    (void)argument_bytes;
}

static void compile(world *w) {
    static const char text[] = "extern \"C\" __global__ void scale(float *x) { *x *= 2; }";
    void *function = NULL;
    STEP(g_cuda->get_function(w->device, text, NULL, 0, "scale", &function));
    STEP(g_cuda->get_function(w->device, text, NULL, 0, "scale", &function));
    rondo_launch launch = LAUNCH("scale", function, 1, 1, &w->memory, sizeof(w->memory));
    STEP(g_cuda->launch(w->stream, &launch));
}

static void close_world(world *w) {
    if (w->executable != NULL) {
        g_cuda->destroy_executable(w->executable);
    }
    if (w->recorded != NULL) {
        g_cuda->destroy_template(w->recorded);
    }
    if (w->second != NULL) {
        g_cuda->destroy_template(w->second);
    }
    if (w->fork != NULL) {
        g_cuda->destroy_event(w->fork);
    }
    if (w->join != NULL) {
        g_cuda->destroy_event(w->join);
    }
    if (w->stream != NULL) {
        g_cuda->destroy_stream(w->stream);
    }
    if (w->side != NULL) {
        g_cuda->destroy_stream(w->side);
    }
    if (w->memory != NULL) {
        g_cuda->deallocate(w->device, RONDO_MEMORY_DEVICE, w->memory);
    }
    if (w->pinned != NULL) {
        g_cuda->deallocate(w->device, RONDO_MEMORY_PINNED, w->pinned);
    }
    if (w->device != NULL) {
        g_cuda->close_device(w->device);
    }
}

typedef void (*scenario)(world *w);

static void run_round(const sweep_point *point) {
    scenario run = *(const scenario *)point->data;
    world w = {0};
    open_world(&w);
    if (w.pinned != NULL) {
        run(&w);
    }
    close_world(&w);
}

static void set_kernel(void) {
    fake_cuda_set_kernel("scale", scale);
}

static void sweep(const char *name, const sweep_subject *subject) {
    sweep_count count = sweep_on_fake(name, subject);
    assert_true(count.driver_calls > 40 && count.allocations > 3);
}

static void sweep_scenario(const char *name, scenario run) {
    const sweep_subject subject = {.run = run_round, .data = &run, .prepare = set_kernel};
    sweep(name, &subject);
}

TEST(test_cuda_sweep__eager_work) {
    sweep_scenario("eager work", work_eagerly);
}

TEST(test_cuda_sweep__capture_and_replay) {
    sweep_scenario("capture and replay", replay);
}

TEST(test_cuda_sweep__public_graph) {
    const sweep_subject subject = {.run = embed};
    sweep("public graph", &subject);
}

TEST(test_cuda_sweep__compiled_kernels) {
    int32_t version = 0;
    if (rondo__cuda_get_compiler_version(&version) != RONDO_STATUS_OK) {
        print_message("skipped: %s\n", rondo_error_get_last()->message);
        skip();
    }
    sweep_scenario("compiled kernels", compile);
}

TEST_MAIN()
