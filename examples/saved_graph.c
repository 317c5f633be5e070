// A graph that one process records and saves, and another one makes again of the file, with memory
// of its own. On the host, where kernels are C functions; on a GPU they are functions of a module
// that both processes load.
//
//   saved_graph save FILE
//   saved_graph load FILE
//   saved_graph            both
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

enum { NUMBERS = 4 };

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
    for (int i = 0; i < NUMBERS; ++i) {
        a->x[i] = a->x[i] * a->factor + a->term;
    }
}

static void *get_kernel(void) {
    union {
        rondo_host_function function;
        void *address;
    } kernel = {.function = scale};
    return kernel.address;
}

// x = x * 2 + 1, then y = x, then y = y * 3.
static void record(rondo_graph *graph, rondo_stream *stream, float *x, float *y) {
    const scale_arguments layers[] = {{x, 2, 1}, {y, 3, 0}};
    check(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (int i = 0; i < 2; ++i) {
        const rondo_launch launch = {.struct_size = sizeof launch,
                                     .name = "scale",
                                     .function = get_kernel(),
                                     .grid = {1, 1, 1},
                                     .block = {1, 1, 1},
                                     .arguments = &layers[i],
                                     .argument_bytes = sizeof layers[i]};
        check(rondo_stream_launch(stream, &launch));
        if (i == 0) {
            check(
                rondo_stream_copy(stream, y, x, NUMBERS * sizeof *y, RONDO_COPY_DEVICE_TO_DEVICE));
        }
    }
    check(rondo_graph_capture_end(graph));
}

static void work(const char *what, const char *path) {
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    float *x, *y;
    check(rondo_device_open("host", &device));
    check(rondo_stream_create(device, NULL, &stream));
    check(rondo_graph_create(device, &options, &graph));
    check(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, NUMBERS * sizeof *x, (void **)&x));
    check(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, NUMBERS * sizeof *y, (void **)&y));
    // What the file has by name, this process has at these addresses.
    const rondo_graph_symbol symbols[] = {
        {"scale", get_kernel(), 0, RONDO_SYMBOL_FUNCTION},
        {"x", x, NUMBERS * sizeof *x, RONDO_SYMBOL_MEMORY},
        {"y", y, NUMBERS * sizeof *y, RONDO_SYMBOL_MEMORY},
    };
    if (strcmp(what, "save") == 0) {
        record(graph, stream, x, y);
        check(rondo_graph_save(graph, path, symbols, 3));
    } else {
        check(rondo_graph_load(graph, path, symbols, 3));
    }
    for (int i = 0; i < NUMBERS; ++i) {
        x[i] = (float)i;
    }
    check(rondo_graph_replay(graph, stream));
    check(rondo_stream_synchronize(stream));
    printf("%sd: %g %g %g %g\n", what[0] == 's' ? "save" : "loade", (double)y[0], (double)y[1],
           (double)y[2], (double)y[3]);
    const int is_wrong = memcmp(y, (const float[]){3, 9, 15, 21}, NUMBERS * sizeof *y) != 0;
    rondo_graph_destroy(graph);
    rondo_memory_free(device, y);
    rondo_memory_free(device, x);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    if (is_wrong) {
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv) {
    if (argc == 3) {
        work(argv[1], argv[2]);
        return EXIT_SUCCESS;
    }
    work("save", "saved_graph.example");
    work("load", "saved_graph.example");
    (void)remove("saved_graph.example");
    return EXIT_SUCCESS;
}
