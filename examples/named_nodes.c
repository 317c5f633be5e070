// Nodes of a graph found by their label, looked at, patched and switched off: an engine that was
// handed a graph changes one of its layers without recording it anew. On the host, where kernels
// are C functions.
//
//   named_nodes
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

typedef struct scale_arguments {
    float *x;
    float factor, term;
} scale_arguments;

static void scale(void *arguments) {
    const scale_arguments *a = arguments;
    *a->x = *a->x * a->factor + a->term;
}

static rondo_launch describe(const scale_arguments *arguments) {
    union {
        rondo_host_function function;
        void *address;
    } kernel = {.function = scale};
    return (rondo_launch){.struct_size = sizeof(rondo_launch),
                          .name = "scale",
                          .function = kernel.address,
                          .grid = {1, 1, 1},
                          .block = {1, 1, 1},
                          .arguments = arguments,
                          .argument_bytes = sizeof *arguments};
}

// Two layers: x = x * 2 + 1, x = x * 3.
static void record(rondo_graph *graph, rondo_stream *stream, float *x) {
    const scale_arguments layers[] = {{x, 2, 1}, {x, 3, 0}};
    static const char *const labels[] = {"layer0", "layer1"};
    check(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (int i = 0; i < 2; ++i) {
        const rondo_launch launch = describe(&layers[i]);
        check(rondo_label_push(stream, labels[i]));
        check(rondo_stream_launch(stream, &launch));
        check(rondo_label_pop(stream));
    }
    check(rondo_graph_capture_end(graph));
}

static float replay(rondo_graph *graph, rondo_stream *stream, float *x) {
    *x = 1;
    check(rondo_graph_replay(graph, stream));
    check(rondo_stream_synchronize(stream));
    return *x;
}

// Turns the factor of a layer into another, whatever else its kernel was given.
static void set_factor(rondo_graph *graph, rondo_node node, float factor) {
    rondo_node_state now = {.struct_size = sizeof now};
    scale_arguments arguments;
    check(rondo_graph_read_node(graph, node, &now));
    memcpy(&arguments, now.arguments, sizeof arguments);
    arguments.factor = factor;
    const rondo_launch launch = describe(&arguments);
    const rondo_work work = {
        .struct_size = sizeof work, .kind = RONDO_NODE_KERNEL, .launch = &launch};
    check(rondo_graph_patch_node(graph, node, &work));
}

// Steps of three launches, of which the middle one is left out in every second step.
static float step(rondo_stepper *stepper, rondo_stream *stream, float *x, int count) {
    const scale_arguments arguments = {x, 1, 1};
    const rondo_launch launch = describe(&arguments);
    const rondo_work work = {
        .struct_size = sizeof work, .kind = RONDO_NODE_KERNEL, .launch = &launch};
    *x = 0;
    for (int i = 0; i < count; ++i) {
        check(rondo_stepper_begin(stepper, stream));
        check(rondo_stepper_put(stepper, &work));
        check(i % 2 == 0 ? rondo_stepper_put(stepper, &work) : rondo_stepper_skip(stepper, &work));
        check(rondo_stepper_put(stepper, &work));
        check(rondo_stepper_end(stepper));
    }
    check(rondo_stream_synchronize(stream));
    return *x;
}

static rondo_status put_one(rondo_stream *stream, void *user_data) {
    const scale_arguments arguments = {user_data, 1, 1};
    const rondo_launch launch = describe(&arguments);
    return rondo_stream_launch(stream, &launch);
}

// What a cache of graphs knows.
static size_t show_keys(rondo_device *device, rondo_stream *stream, float *x) {
    static const int lengths[] = {16, 32, 16};
    rondo_graph_cache *cache;
    rondo_cache_key keys[4];
    size_t count;
    check(rondo_graph_cache_create(device, NULL, &cache));
    for (int i = 0; i < 3; ++i) {
        check(rondo_graph_cache_run(cache, &lengths[i], sizeof(int), stream, put_one, x, NULL));
    }
    check(rondo_graph_cache_list_keys(cache, keys, 4, &count));
    for (size_t i = 0; i < count && i < 4; ++i) {
        int length;
        rondo_graph_cache_entry entry = {.struct_size = sizeof entry};
        memcpy(&length, keys[i].bytes, sizeof length);
        check(rondo_graph_cache_get_entry(cache, keys[i].bytes, keys[i].byte_count, &entry));
        printf("length %d: %llu runs\n", length, (unsigned long long)entry.run_count);
    }
    check(rondo_stream_synchronize(stream));
    rondo_graph_cache_destroy(cache);
    return count;
}

int main(void) {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_stepper *stepper;
    rondo_node node, last;
    size_t count;
    static float x;
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    check(rondo_device_open("host", &device));
    check(rondo_stream_create(device, NULL, &stream));
    check(rondo_graph_create(device, &options, &graph));
    check(rondo_stepper_create(device, NULL, &stepper));
    record(graph, stream, &x);
    const float before = replay(graph, stream, &x);
    check(rondo_graph_find_nodes(graph, "layer0", &node, 1, &count));
    set_factor(graph, node, 10);
    const float patched = replay(graph, stream, &x);
    check(rondo_graph_get_node_handle(graph, 1, &last));
    const rondo_patch off = {.node = last, .toggle = RONDO_TOGGLE_DISABLE};
    check(rondo_graph_patch(graph, &off, 1));
    const float without = replay(graph, stream, &x);
    const float steps = step(stepper, stream, &x, 6);
    printf("as recorded %g, layer0 patched %g, layer1 switched off %g, six steps %g\n",
           (double)before, (double)patched, (double)without, (double)steps);
    const size_t keys = show_keys(device, stream, &x);

    rondo_stepper_destroy(stepper);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return count == 1 && before == 9 && patched == 33 && without == 11 && steps == 15 && keys == 2
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}
