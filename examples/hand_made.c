// A graph that is made node by node: work of several kinds, a choice that is taken during the
// replay, code that only knows streams in between, and a clone that is patched apart. On the host,
// where kernels are C functions.
//
//   hand_made
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

typedef struct numbers {
    uint32_t is_large;  // decides
    float x, y;
} numbers;

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

typedef struct look_arguments {
    numbers *n;
    float limit;
} look_arguments;

static void look(void *arguments) {
    const look_arguments *a = arguments;
    a->n->is_large = a->n->x > a->limit ? 1 : 0;
}

static void halve(void *arguments) {
    numbers *n = *(numbers **)arguments;
    n->x /= 2;
}

static void add_one(void *arguments) {
    numbers *n = *(numbers **)arguments;
    n->y = n->x + 1;
}

static rondo_status halve_body(rondo_stream *stream, void *n) {
    return rondo_stream_call_host(stream, "halve", halve, &n, sizeof n);
}

// As a library would put its work on a stream.
static rondo_status add_step(rondo_stream *stream, void *n) {
    return rondo_stream_call_host(stream, "add_one", add_one, &n, sizeof n);
}

static rondo_work describe_look(const look_arguments *arguments) {
    return (rondo_work){.struct_size = sizeof(rondo_work),
                        .kind = RONDO_NODE_HOST,
                        .name = "look",
                        .function = look,
                        .arguments = arguments,
                        .argument_bytes = sizeof *arguments};
}

static rondo_status halve_and_look(rondo_stream *stream, void *n) {
    const look_arguments arguments = {n, 10};
    const rondo_status status = halve_body(stream, n);
    return status == RONDO_STATUS_OK
               ? rondo_stream_call_host(stream, "look", look, &arguments, sizeof arguments)
               : status;
}

// look -> while x is large { x / 2; look } -> y = x + 1 -> done
static void build(rondo_graph *graph, numbers *n, rondo_event *done) {
    static const rondo_body_function bodies[] = {halve_and_look};
    const look_arguments arguments = {n, 10};
    const rondo_work first = describe_look(&arguments);
    const rondo_work loop = {.struct_size = sizeof loop,
                             .kind = RONDO_NODE_CONDITIONAL,
                             .scope = RONDO_SCOPE_WHILE,
                             .predicate = &n->is_large,
                             .bodies = bodies,
                             .body_count = 1,
                             .user_data = n};
    const rondo_work record = {
        .struct_size = sizeof record, .kind = RONDO_NODE_EVENT_RECORD, .event = done};
    rondo_node looking, looping, last;
    size_t count;
    check(rondo_graph_build_begin(graph));
    check(rondo_graph_add_node(graph, NULL, 0, &first, &looking));
    check(rondo_graph_add_node(graph, &looking, 1, &loop, &looping));
    check(rondo_graph_add_step(graph, &looping, 1, add_step, n, &last, 1, &count));
    check(rondo_graph_add_node(graph, &last, 1, &record, NULL));
    check(rondo_graph_capture_end(graph));
}

// x is looked at in two ways: by a graph, and by its clone with another limit.
static void look_twice(rondo_device *device, rondo_stream *stream, numbers *n) {
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    look_arguments arguments = {n, 10};
    const rondo_work work = describe_look(&arguments);
    rondo_graph *graph, *other;
    rondo_node node;
    check(rondo_graph_create(device, &options, &graph));
    check(rondo_graph_build_begin(graph));
    check(rondo_graph_add_node(graph, NULL, 0, &work, NULL));
    check(rondo_graph_capture_end(graph));
    check(rondo_graph_clone(graph, "other limit", &other));
    check(rondo_graph_get_node_handle(other, 0, &node));
    arguments.limit = 100;
    check(rondo_graph_patch_node(other, node, &work));
    n->x = 50;
    rondo_graph *const both[] = {graph, other};
    for (int i = 0; i < 2; ++i) {
        check(rondo_graph_replay(both[i], stream));
        check(rondo_stream_synchronize(stream));
        printf("50 is %s\n", n->is_large != 0 ? "above the limit" : "below the clone's");
    }
    rondo_graph_destroy(other);
    rondo_graph_destroy(graph);
}

int main(void) {
    static const float starts[] = {3, 40, 1000};
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_event *done;
    void *memory;
    check(rondo_device_open("host", &device));
    check(rondo_stream_create(device, NULL, &stream));
    check(rondo_event_create(device, RONDO_EVENT_EXTERNAL, &done));
    check(rondo_graph_create(device, NULL, &graph));
    check(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, sizeof(numbers), &memory));
    numbers *n = memory;
    build(graph, n, done);
    for (int i = 0; i < 3; ++i) {
        n->x = starts[i];
        check(rondo_graph_replay(graph, stream));
        check(rondo_event_synchronize(done));
        printf("%g: halved to %g, and one more is %g\n", (double)starts[i], (double)n->x,
               (double)n->y);
    }
    look_twice(device, stream, n);
    rondo_graph_destroy(graph);
    rondo_event_destroy(done);
    rondo_stream_destroy(stream);
    rondo_memory_free(device, memory);
    rondo_device_release(device);
    return 0;
}
