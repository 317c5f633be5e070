// Graphs from files in a new process (rondo_graph_load): so many graphs of so many kernels, chains
// with branches, beside what the driver takes to instantiate them and what a capture takes.
//
//   build/bench/graph_files save DEVICE FILE [--nodes 200] [--graphs 256]
//   build/bench/graph_files load DEVICE FILE [--nodes 200] [--graphs 256] [--threads 1]
//
// `save` records one graph for each number of nodes and writes FILE.0, FILE.1, ...; `load`, in
// another process, makes them all of memory of its own, by so many threads, checks a result, and
// reports the wall time of them all, and the median of a load and of the instantiation in it.
//
// Goal: 1 ms a graph of 200 nodes; larger ones the instantiation times 1.2.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <time.h>

#include "bench.h"
#include "rondo/update.h"

enum { NUMBERS = 1024, GRAPHS_MAX = 1024, THREADS_MAX = 64, PATH_BYTES = 512 };

static const char text[] =
    "extern \"C\" __global__ void add(unsigned *x, unsigned n, unsigned term) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) { x[i] += term; }\n"
    "}\n";

typedef struct arguments {
    unsigned *x;
    unsigned n, term;
} arguments;

static void run_add(void *data) {
    const arguments *given = data;
    for (unsigned i = 0; i < given->n; ++i) {
        given->x[i] += given->term;
    }
}

typedef struct bench {
    const char *path;
    size_t node_count, graph_count, thread_count;
    pthread_mutex_t lock;
    size_t next;  // graph to be loaded; guarded by lock
    rondo_device *device;
    rondo_stream *stream, *side;
    rondo_event *fork, *join;
    unsigned *x;
    rondo_graph_symbol symbols[2];
    rondo_graph *graphs[GRAPHS_MAX];
    double loads_ms[GRAPHS_MAX], driver_ms[GRAPHS_MAX];
} bench;

static double get_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void launch(const bench *b, rondo_stream *stream, size_t at, unsigned term) {
    const arguments given = {.x = b->x + at % NUMBERS, .n = 1, .term = term};
    const rondo_launch wanted = {.struct_size = sizeof wanted,
                                 .name = "add",
                                 .function = b->symbols[0].address,
                                 .grid = {1, 1, 1},
                                 .block = {32, 1, 1},
                                 .arguments = &given,
                                 .argument_bytes = sizeof given};
    must(rondo_stream_launch(stream, &wanted));
}

// A chain, with a branch of two nodes at each tenth.
static void record(const bench *b, rondo_graph *graph, unsigned term) {
    must(rondo_graph_capture_begin(graph, b->stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (size_t i = 0; i < b->node_count; ++i) {
        const bool has_branch = i % 10 == 5 && i + 3 < b->node_count;
        if (has_branch) {
            must(rondo_event_record(b->fork, b->stream));
            must(rondo_stream_wait_event(b->side, b->fork));
            launch(b, b->side, i + 1, term);
            launch(b, b->side, i + 2, term);
            must(rondo_event_record(b->join, b->side));
        }
        launch(b, b->stream, i, term);
        if (has_branch) {
            must(rondo_stream_wait_event(b->stream, b->join));
            i += 2;
        }
    }
    must(rondo_graph_capture_end(graph));
}

static rondo_graph *create(const bench *b) {
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    rondo_graph *graph;
    must(rondo_graph_create(b->device, &options, &graph));
    return graph;
}

static void save(const bench *b) {
    double *times = make_values(b->graph_count);
    for (size_t i = 0; i < b->graph_count; ++i) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s.%zu", b->path, i);
        rondo_graph *graph = create(b);
        const double start = get_ms();
        record(b, graph, (unsigned)i + 1);
        times[i] = get_ms() - start;
        must(rondo_graph_save(graph, path, b->symbols, 2));
        rondo_graph_destroy(graph);
    }
    printf("captured and instantiated: median %.3f ms a graph\n",
           get_median(times, b->graph_count));
    free(times);
}

static void check(bench *b) {
    unsigned *values = calloc(NUMBERS, sizeof *values);
    unsigned expected = 0;
    for (size_t i = 0; i < b->graph_count; ++i) {
        must(rondo_graph_replay(b->graphs[i], b->stream));
        expected += (unsigned)i + 1;
    }
    must(rondo_stream_copy(b->stream, values, b->x, NUMBERS * sizeof *values,
                           RONDO_COPY_DEVICE_TO_HOST));
    must(rondo_stream_synchronize(b->stream));
    const size_t count = b->node_count < NUMBERS ? b->node_count : NUMBERS;
    for (size_t i = 0; i < count; ++i) {
        if (b->node_count <= NUMBERS && values[i] != expected) {
            fprintf(stderr, "number %zu is %u, not %u\n", i, values[i], expected);
            exit(2);
        }
    }
    free(values);
}

static void load_one(bench *b, size_t i) {
    char path[PATH_BYTES];
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    snprintf(path, sizeof path, "%s.%zu", b->path, i);
    b->graphs[i] = create(b);
    const double start = get_ms();
    must(rondo_graph_load(b->graphs[i], path, b->symbols, 2));
    b->loads_ms[i] = get_ms() - start;
    must(rondo_graph_get_stats(b->graphs[i], &stats));
    b->driver_ms[i] = (double)stats.instantiate_ns * 1e-6;
}

static void *load_some(void *data) {
    bench *b = data;
    for (;;) {
        pthread_mutex_lock(&b->lock);
        const size_t i = b->next++;
        pthread_mutex_unlock(&b->lock);
        if (i >= b->graph_count) {
            return NULL;
        }
        load_one(b, i);
    }
}

static int load(bench *b) {
    pthread_t threads[THREADS_MAX];
    const double start = get_ms();
    for (size_t i = 1; i < b->thread_count; ++i) {
        if (pthread_create(&threads[i], NULL, load_some, b) != 0) {
            fprintf(stderr, "no thread\n");
            exit(2);
        }
    }
    (void)load_some(b);
    for (size_t i = 1; i < b->thread_count; ++i) {
        pthread_join(threads[i], NULL);
    }
    const double each = (get_ms() - start) / (double)b->graph_count;
    check(b);
    const double median = get_median(b->loads_ms, b->graph_count);
    const double driver = get_median(b->driver_ms, b->graph_count);
    printf(
        "loaded %zu graphs of %zu nodes by %zu threads in %.3f ms a graph: median of a load "
        "%.3f ms, of it the driver's instantiation %.3f ms\n",
        b->graph_count, b->node_count, b->thread_count, each, median, driver);
    return each <= 1.0 || each <= 1.2 * driver ? 0 : 1;
}

int main(int argc, char **argv) {
    static bench b = {.node_count = 200,
                      .graph_count = 256,
                      .thread_count = 1,
                      .lock = PTHREAD_MUTEX_INITIALIZER};
    for (int i = 4; i + 1 < argc; i += 2) {
        size_t *number = strcmp(argv[i], "--nodes") == 0     ? &b.node_count
                         : strcmp(argv[i], "--threads") == 0 ? &b.thread_count
                                                             : &b.graph_count;
        *number = strtoull(argv[i + 1], NULL, 10);
    }
    if (argc < 4 || b.graph_count < 1 || b.graph_count > GRAPHS_MAX || b.thread_count < 1 ||
        b.thread_count > THREADS_MAX) {
        fprintf(
            stderr,
            "usage: graph_files save|load DEVICE FILE [--nodes N] [--graphs N] [--threads N]\n");
        return 2;
    }
    b.path = argv[3];
    must(rondo_device_open(argv[2], &b.device));
    must(rondo_stream_create(b.device, NULL, &b.stream));
    must(rondo_stream_create(b.device, NULL, &b.side));
    must(rondo_event_create(b.device, 0, &b.fork));
    must(rondo_event_create(b.device, 0, &b.join));
    must(
        rondo_memory_allocate(b.device, RONDO_MEMORY_DEVICE, NUMBERS * sizeof *b.x, (void **)&b.x));
    must(rondo_stream_fill(b.stream, b.x, 0, 4, NUMBERS));
    must(rondo_stream_synchronize(b.stream));
    b.symbols[0] = (rondo_graph_symbol){"add", get_kernel(b.device, text, "add", run_add), 0,
                                        RONDO_SYMBOL_FUNCTION};
    b.symbols[1] = (rondo_graph_symbol){"x", b.x, NUMBERS * sizeof *b.x, RONDO_SYMBOL_MEMORY};
    int status = 0;
    if (strcmp(argv[1], "save") == 0) {
        save(&b);
    } else {
        status = load(&b);
    }
    for (size_t i = 0; i < b.graph_count; ++i) {
        rondo_graph_destroy(b.graphs[i]);
    }
    rondo_memory_free(b.device, b.x);
    rondo_event_destroy(b.join);
    rondo_event_destroy(b.fork);
    rondo_stream_destroy(b.side);
    rondo_stream_destroy(b.stream);
    rondo_device_release(b.device);
    return status;
}
