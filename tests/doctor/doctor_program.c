// A program of the CUDA driver with one fault in its step, which `rondo doctor` is run on:
//
//   doctor_program FAULT [STEPS]
//
// With DOCTOR_PROGRAM_UNTIL it makes so many steps again and again, until there is a file of that
// name.
// DOCTOR_PROGRAM_IMAGE names a file that keeps its device code, so that it is compiled once.
// It knows nothing of Rondo, and finds the driver and NVRTC like any program: by dlopen.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ELEMENTS = 256, BYTES = ELEMENTS * 4, FAILED = 3, IMAGE_MAX = 4 << 20 };

typedef void *handle;
typedef uint64_t address;

// The functions that the program uses; the second name is the driver's.
#define DRIVER_MAP(X)                                                                        \
    X(init, "cuInit", (unsigned flags))                                                      \
    X(get_device, "cuDeviceGet", (int *out, int ordinal))                                    \
    X(retain, "cuDevicePrimaryCtxRetain", (handle * out, int device))                        \
    X(push, "cuCtxPushCurrent_v2", (handle context))                                         \
    X(wait_device, "cuCtxSynchronize", (void))                                               \
    X(allocate, "cuMemAlloc_v2", (address * out, size_t bytes))                              \
    X(release, "cuMemFree_v2", (address memory))                                             \
    X(allocate_host, "cuMemHostAlloc", (void **out, size_t bytes, unsigned flags))           \
    X(release_host, "cuMemFreeHost", (void *memory))                                         \
    X(make_stream, "cuStreamCreate", (handle * out, unsigned flags))                         \
    X(end_stream, "cuStreamDestroy_v2", (handle stream))                                     \
    X(wait_stream, "cuStreamSynchronize", (handle stream))                                   \
    X(query_stream, "cuStreamQuery", (handle stream))                                        \
    X(make_event, "cuEventCreate", (handle * out, unsigned flags))                           \
    X(end_event, "cuEventDestroy_v2", (handle event))                                        \
    X(record, "cuEventRecord", (handle event, handle stream))                                \
    X(wait_event, "cuEventSynchronize", (handle event))                                      \
    X(follow, "cuStreamWaitEvent", (handle stream, handle event, unsigned flags))            \
    X(fill, "cuMemsetD32Async", (address to, unsigned value, size_t count, handle stream))   \
    X(fetch, "cuMemcpyDtoHAsync_v2", (void *to, address from, size_t bytes, handle stream))  \
    X(bring, "cuMemcpyHtoDAsync_v2", (address to, const void *from, size_t bytes, handle s)) \
    X(fetch_now, "cuMemcpyDtoH_v2", (void *to, address from, size_t bytes))                  \
    X(call_host, "cuLaunchHostFunc", (handle stream, void (*function)(void *), void *data))  \
    X(load, "cuModuleLoadData", (handle * out, const void *image))                           \
    X(unload, "cuModuleUnload", (handle module))                                             \
    X(find, "cuModuleGetFunction", (handle * out, handle module, const char *name))          \
    X(launch, "cuLaunchKernel",                                                              \
      (handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,     \
       unsigned bz, unsigned shared, handle stream, void **parameters, void **extra))

#define MEMBER(member, name, parameters) int(*member) parameters;
static struct { DRIVER_MAP(MEMBER) } cu;

#define CHECK(call)                                       \
    do {                                                  \
        if ((call) != 0) {                                \
            (void)fprintf(stderr, "failed: %s\n", #call); \
            exit(FAILED);                                 \
        }                                                 \
    } while (0)

typedef struct world {
    handle module;
    handle add;
    handle scale;
    handle collectives[2];
    int rank;
    handle streams[2];
    handle events[2];
    address memory[3];
    float *pinned;
    float *plain;
    char *image;
} world;

static void load_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)fprintf(stderr, "there is no libcuda.so.1\n");
        exit(FAILED);
    }
#define FIND(member, name, parameters)             \
    {                                              \
        void *found = dlsym(library, name);        \
        memcpy(&cu.member, &found, sizeof(found)); \
        CHECK(found == NULL);                      \
    }
    DRIVER_MAP(FIND)
}

static char *compile(size_t *out_bytes) {
    static const char text[] =
        "extern \"C\" __global__ void add(float *x, int value) { x[threadIdx.x] += value; }\n"
        "extern \"C\" __global__ void scale(float *x, int value) { x[threadIdx.x] *= value; }\n"
        "extern \"C\" __global__ void ncclSum(float *x, int value) { x[threadIdx.x] += value; }\n"
        "extern \"C\" __global__ void ncclMax(float *x, int value) { x[threadIdx.x] -= value; }\n";
    static const char *const names[] = {"nvrtcCreateProgram", "nvrtcCompileProgram",
                                        "nvrtcGetCUBINSize", "nvrtcGetCUBIN"};
    const char *options[] = {getenv("DOCTOR_PROGRAM_ARCH") != NULL ? getenv("DOCTOR_PROGRAM_ARCH")
                                                                   : "--gpu-architecture=sm_75"};
    void *library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
    void *found[4] = {NULL};
    for (int i = 0; i < 4; i++) {
        found[i] = library != NULL ? dlsym(library, names[i]) : NULL;
        CHECK(found[i] == NULL);
    }
    handle program = NULL;
    size_t bytes = 0;
    int (*create)(handle *, const char *, const char *, int, const char *const *,
                  const char *const *) = NULL;
    int (*build)(handle, int, const char *const *) = NULL;
    int (*get_size)(handle, size_t *) = NULL;
    int (*get)(handle, char *) = NULL;
    memcpy(&create, &found[0], sizeof(create));
    memcpy(&build, &found[1], sizeof(build));
    memcpy(&get_size, &found[2], sizeof(get_size));
    memcpy(&get, &found[3], sizeof(get));
    CHECK(create(&program, text, "step.cu", 0, NULL, NULL));
    CHECK(build(program, 1, options));
    CHECK(get_size(program, &bytes));
    char *image = malloc(bytes);
    CHECK(image == NULL);
    CHECK(get(program, image));
    *out_bytes = bytes;
    return image;
}

// From the file, or compiled and kept there.
static char *get_image(void) {
    const char *path = getenv("DOCTOR_PROGRAM_IMAGE");
    size_t bytes = 0;
    FILE *file = path != NULL ? fopen(path, "rb") : NULL;
    char *image = NULL;
    if (file != NULL) {
        image = calloc(1, IMAGE_MAX);
        CHECK(image == NULL || fread(image, 1, IMAGE_MAX, file) == 0);
        (void)fclose(file);
        return image;
    }
    image = compile(&bytes);
    file = path != NULL ? fopen(path, "wb") : NULL;
    if (file != NULL) {
        CHECK(fwrite(image, 1, bytes, file) != bytes);
        CHECK(fclose(file));
    }
    return image;
}

static void start(world *w) {
    handle context = NULL;
    int device = 0;
    load_driver();
    CHECK(cu.init(0));
    CHECK(cu.get_device(&device, 0));
    CHECK(cu.retain(&context, device));
    CHECK(cu.push(context));
    w->image = get_image();
    CHECK(cu.load(&w->module, w->image));
    CHECK(cu.find(&w->add, w->module, "add"));
    CHECK(cu.find(&w->scale, w->module, "scale"));
    CHECK(cu.find(&w->collectives[0], w->module, "ncclSum"));
    CHECK(cu.find(&w->collectives[1], w->module, "ncclMax"));
    for (int i = 0; i < 2; i++) {
        CHECK(cu.make_stream(&w->streams[i], 1));
        CHECK(cu.make_event(&w->events[i], 2));
    }
    for (int i = 0; i < 3; i++) {
        CHECK(cu.allocate(&w->memory[i], BYTES));
    }
    void *pinned = NULL;
    CHECK(cu.allocate_host(&pinned, BYTES, 0));
    w->pinned = pinned;
    w->plain = calloc(1, BYTES);
    CHECK(w->plain == NULL);
}

static void launch(handle function, address memory, int value, unsigned grid, handle stream) {
    struct {
        address memory;
        int value;
        int padding;
    } arguments = {memory, value, 0};
    size_t bytes = 12;
    void *extra[] = {(void *)1, &arguments, (void *)2, &bytes, NULL};
    CHECK(cu.launch(function, grid, 1, 1, ELEMENTS, 1, 1, 0, stream, NULL, extra));
}

static void do_nothing(void *data) {
    (void)data;
}

// ---- the faults, each in the middle of a step -------------------------------------------------

static void wait_for_device(world *w, int step) {
    (void)w, (void)step;
    CHECK(cu.wait_device());
}

static void wait_for_stream(world *w, int step) {
    (void)step;
    CHECK(cu.wait_stream(w->streams[0]));
}

static void wait_for_event(world *w, int step) {
    (void)step;
    CHECK(cu.record(w->events[0], w->streams[0]));
    CHECK(cu.wait_event(w->events[0]));
}

static void read_back(world *w, int step) {
    (void)step;
    CHECK(cu.fetch(w->pinned, w->memory[0], 4, w->streams[0]));
    CHECK(cu.wait_stream(w->streams[0]));
}

static void query(world *w, int step) {
    (void)step;
    (void)cu.query_stream(w->streams[0]);
}

static void copy_pageable(world *w, int step) {
    (void)step;
    CHECK(cu.bring(w->memory[1], w->plain, BYTES, w->streams[0]));
}

static void allocate(world *w, int step) {
    (void)w, (void)step;
    address memory = 0;
    CHECK(cu.allocate(&memory, BYTES));
    CHECK(cu.release(memory));
}

static void allocate_host(world *w, int step) {
    (void)w, (void)step;
    void *memory = NULL;
    CHECK(cu.allocate_host(&memory, BYTES, 0));
    CHECK(cu.release_host(memory));
}

static void load_module(world *w, int step) {
    (void)step;
    handle module = NULL;
    CHECK(cu.load(&module, w->image));
    CHECK(cu.unload(module));
}

static void make_stream(world *w, int step) {
    (void)w, (void)step;
    handle stream = NULL;
    CHECK(cu.make_stream(&stream, 1));
    CHECK(cu.end_stream(stream));
}

static void call_host(world *w, int step) {
    (void)step;
    CHECK(cu.call_host(w->streams[0], do_nothing, NULL));
}

static void use_legacy(world *w, int step) {
    (void)step;
    launch(w->add, w->memory[1], 1, 1, NULL);
}

static void fork_streams(world *w, bool is_joined) {
    CHECK(cu.record(w->events[0], w->streams[0]));
    CHECK(cu.follow(w->streams[1], w->events[0], 0));
    launch(w->add, w->memory[1], 1, 1, w->streams[1]);
    if (is_joined) {
        CHECK(cu.record(w->events[1], w->streams[1]));
        CHECK(cu.follow(w->streams[0], w->events[1], 0));
    }
}

static void fork_only(world *w, int step) {
    (void)step;
    fork_streams(w, false);
}

static void fork_and_join(world *w, int step) {
    (void)step;
    fork_streams(w, true);
}

static void count_steps(world *w, int step) {
    launch(w->add, w->memory[1], step, 1, w->streams[0]);
}

static void move_memory(world *w, int step) {
    launch(w->add, w->memory[step % 2], 1, 1, w->streams[0]);
}

static void change_grid(world *w, int step) {
    launch(w->add, w->memory[1], 1, step % 5 == 4 ? 2 : 1, w->streams[0]);
}

static void run_collectives(world *w, int step) {
    (void)step;
    launch(w->collectives[w->rank], w->memory[1], 1, 1, w->streams[0]);
    launch(w->collectives[1 - w->rank], w->memory[1], 1, 1, w->streams[0]);
}

static void none(world *w, int step) {
    (void)w, (void)step;
}

static const struct {
    const char *name;
    void (*run)(world *w, int step);
} faults[] = {
    {"none", none},
    {"wait-device", wait_for_device},
    {"wait-stream", wait_for_stream},
    {"wait-event", wait_for_event},
    {"read-back", read_back},
    {"query", query},
    {"pageable-copy", copy_pageable},
    {"allocate", allocate},
    {"host-memory", allocate_host},
    {"load-module", load_module},
    {"make-stream", make_stream},
    {"host-function", call_host},
    {"legacy-stream", use_legacy},
    {"unjoined-fork", fork_only},
    {"joined-fork", fork_and_join},
    {"counter", count_steps},
    {"moving-address", move_memory},
    {"changing-shape", change_grid},
    {"ranks", run_collectives},
    {"equal-ranks", run_collectives},
};

// ---- ranges -----------------------------------------------------------------------------------

// As the header-only NVTX does it: the library of the environment fills the functions in.
typedef void (*any_function)(void);
static any_function g_range_functions[16];
static any_function *g_range_table[16];

static int get_range_functions(int module, any_function ***out_table, unsigned *out_count) {
    for (int i = 0; i < 16; i++) {
        g_range_table[i] = &g_range_functions[i];
    }
    *out_table = g_range_table;
    *out_count = module == 1 ? 16 : 0;
    return 1;
}

static const void *get_range_table(uint32_t number) {
    static const struct {
        size_t bytes;
        int (*get)(int, any_function ***, unsigned *);
    } table = {sizeof(table), get_range_functions};
    return number == 1 ? &table : NULL;
}

enum { RANGE_PUSH = 9, RANGE_POP = 11 };

static void start_ranges(void) {
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
    void *found = library != NULL ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
    int (*start)(const void *(*)(uint32_t)) = NULL;
    memcpy(&start, &found, sizeof(start));
    CHECK(found == NULL || start(get_range_table) != 1);
    CHECK(g_range_functions[RANGE_PUSH] == NULL || g_range_functions[RANGE_POP] == NULL);
}

static void push_range(const char *name) {
    (void)((int (*)(const char *))g_range_functions[RANGE_PUSH])(name);
}

static void pop_range(void) {
    (void)((int (*)(void))g_range_functions[RANGE_POP])();
}

static void run_steps(world *w, void (*fault)(world *, int), int steps) {
    for (int step = 0; step < steps; step++) {
        CHECK(cu.bring(w->memory[0], w->pinned, BYTES, w->streams[0]));
        launch(w->add, w->memory[0], 1, 1, w->streams[0]);
        fault(w, step);
        launch(w->scale, w->memory[0], 2, 1, w->streams[0]);
        launch(w->add, w->memory[2], 3, 1, w->streams[0]);
        CHECK(cu.fetch(w->pinned, w->memory[0], BYTES, w->streams[0]));
        CHECK(cu.wait_stream(w->streams[0]));
    }
}

// A named step with a named part, in which it waits.
static void run_ranges(world *w) {
    start_ranges();
    for (int step = 0; step < 40; step++) {
        push_range("whole step");
        launch(w->add, w->memory[0], 1, 1, w->streams[0]);
        push_range("look");
        CHECK(cu.wait_stream(w->streams[0]));
        pop_range();
        launch(w->scale, w->memory[0], 2, 1, w->streams[0]);
        CHECK(cu.fetch(w->pinned, w->memory[0], BYTES, w->streams[0]));
        CHECK(cu.wait_device());
        pop_range();
        // By far the longest way between two works is the one between two steps.
        (void)usleep(5000);
    }
}

// Until a signal comes.
static void run_endlessly(world *w) {
    enum { SECONDS_MAX = 60 };
    run_steps(w, none, 40);
    (void)puts("running");
    (void)fflush(stdout);
    (void)alarm(SECONDS_MAX);
    for (;;) {
        (void)pause();
    }
}

static void *run_thread(void *data) {
    world *w = data;
    handle context = NULL;
    CHECK(cu.retain(&context, 0));
    CHECK(cu.push(context));
    run_steps(w, none, 20);
    return NULL;
}

// How it ends, when it is not well.
static void end(const char *way, world *w, char **argv) {
    if (strcmp(way, "abort") == 0) {
        abort();
    } else if (strcmp(way, "killed") == 0) {
        (void)raise(SIGKILL);
    } else if (strcmp(way, "crash") == 0) {
        (void)raise(SIGSEGV);
    } else if (strcmp(way, "status") == 0) {
        _exit(5);
    } else if (strcmp(way, "fork") == 0) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) != child || status != 0);
    } else if (strcmp(way, "exec") == 0) {
        (void)execl("/proc/self/exe", argv[0], "none", "40", (char *)NULL);
        exit(FAILED);
    } else if (strcmp(way, "threads") == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, run_thread, w));
        CHECK(pthread_join(thread, NULL));
    } else if (strcmp(way, "none") != 0) {
        (void)fprintf(stderr, "no such fault: %s\n", way);
        exit(FAILED);
    }
}

int main(int argc, char **argv) {
    static world w;
    const char *fault = argc > 1 ? argv[1] : "none";
    const int steps = argc > 2 ? atoi(argv[2]) : 40;
    const bool has_ranks = strstr(fault, "ranks") != NULL;
    const pid_t other = has_ranks ? fork() : 0;
    w.rank = strcmp(fault, "ranks") == 0 && other == 0;
    start(&w);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (strcmp(faults[i].name, fault) == 0) {
            const char *until = getenv("DOCTOR_PROGRAM_UNTIL");
            int status = 0;
            do {
                run_steps(&w, faults[i].run, steps);
            } while (until != NULL && access(until, F_OK) != 0);
            CHECK(other > 0 && (waitpid(other, &status, 0) != other || status != 0));
            return 0;
        }
    }
    if (strcmp(fault, "ranges") == 0) {
        run_ranges(&w);
        return 0;
    }
    if (strcmp(fault, "endless") == 0) {
        run_endlessly(&w);
    }
    run_steps(&w, none, steps);
    end(fault, &w, argv);
    return 0;
}
