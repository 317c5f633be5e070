// What the cases share: kernels for each backend, memory, modes, gates.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <time.h>

#include "conformance/conformance.h"
#include "support/fake/fake_cuda.h"
#include "support/peek.h"
#include "support/short_forms.h"

// ---- kernels ----------------------------------------------------------------------------------

typedef struct spin_arguments {
    uint64_t nanoseconds;
} spin_arguments;

static const char cuda_source[] =
    "extern \"C\" __global__ void affine(unsigned *x, unsigned count, unsigned factor,\n"
    "                                    unsigned term) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < count) { x[i] = x[i] * factor + term; }\n"
    "}\n"
    "extern \"C\" __global__ void spin(unsigned long long nanoseconds) {\n"
    "    unsigned long long start, now;\n"
    "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(start));\n"
    "    do {\n"
    "        asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now));\n"
    "    } while (now - start < nanoseconds);\n"
    "}\n";

static void run_affine(void *data) {
    const suite_affine_arguments *arguments = data;
    for (uint32_t i = 0; i < arguments->count; ++i) {
        arguments->x[i] = arguments->x[i] * arguments->factor + arguments->term;
    }
}

uint64_t suite_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void run_spin(void *data) {
    uint64_t end = suite_now_ns() + ((const spin_arguments *)data)->nanoseconds;
    while (suite_now_ns() < end) {
    }
}

rondo_launch suite_describe_affine(const suite_context *context,
                                   const suite_affine_arguments *arguments) {
    return LAUNCH("affine", context->affine, (arguments->count + 127) / 128, 128, arguments,
                  offsetof(suite_affine_arguments, term) + sizeof(uint32_t));
}

rondo_status suite_affine(suite_context *context, rondo_stream *stream, uint32_t *x, uint32_t count,
                          uint32_t factor, uint32_t term) {
    const suite_affine_arguments arguments = {
        .x = x, .count = count, .factor = factor, .term = term};
    const rondo_launch launch = suite_describe_affine(context, &arguments);
    return rondo_stream_launch(stream, &launch);
}

rondo_status suite_spin(suite_context *context, rondo_stream *stream, uint32_t microseconds) {
    spin_arguments arguments = {.nanoseconds = (uint64_t)microseconds * 1000};
    rondo_launch launch = LAUNCH("spin", context->spin, 1, 1, &arguments, sizeof arguments);
    return rondo_stream_launch(stream, &launch);
}

rondo_status suite_linger(suite_context *context, rondo_stream *stream, uint32_t microseconds) {
    return suite_spin(context, stream, suite_is_swept ? microseconds / 100 : microseconds);
}

// ---- opening ----------------------------------------------------------------------------------

void suite_close(suite_context *context) {
    rondo_stream_destroy(context->stream);
    rondo_device_release(context->device);
}

static void fake_affine(const void *arguments, size_t argument_bytes) {
    suite_affine_arguments copy = {0};
    memcpy(&copy, arguments, argument_bytes < sizeof copy ? argument_bytes : sizeof copy);
    run_affine(&copy);
}

static void fake_spin(const void *arguments, size_t argument_bytes) {
    spin_arguments copy = {0};
    memcpy(&copy, arguments, argument_bytes < sizeof copy ? argument_bytes : sizeof copy);
    // The call waits for it, so it makes nothing late, and a sweep has it thousands of times.
    copy.nanoseconds /= suite_is_swept ? 10 : 1;
    run_spin(&copy);
}

void suite_set_fake_kernel(suite_context *context, const char *name,
                           void (*kernel)(const void *arguments, size_t argument_bytes)) {
    if (context->is_fake) {
        fake_cuda_set_kernel(name, kernel);
    }
}

static void start_fake(suite_context *context) {
    context->is_fake = true;
    context->is_prompt = true;
    setenv("RONDO_CACHE_DIR", "", 1);
    fake_cuda_reset(NULL);
    suite_set_fake_kernel(context, "affine", fake_affine);
    suite_set_fake_kernel(context, "spin", fake_spin);
    fake_cuda_install();
    fake_cuda_install_compiler();
}

bool suite_is_required(const char *device_name) {
    const char *entry = getenv("RONDO_REQUIRE");
    while (entry != NULL && *entry != '\0') {
        size_t length = strcspn(entry, ",");
        if (length > 0 && strncmp(device_name, entry, length) == 0) {
            return true;
        }
        entry += length + (entry[length] == ',');
    }
    return false;
}

static bool is_null;           // the device runs nothing
static pthread_t case_thread;  // the one that runs the cases

// tests/emulated runs work when it is put on a stream, so that a gate would wait for itself.
static bool is_emulated(rondo_device *device) {
    rondo_device_info info = {.struct_size = sizeof info};
    return rondo_device_get_info(device, &info) == RONDO_STATUS_OK &&
           strncmp(info.description, "Emulated GPU", strlen("Emulated GPU")) == 0;
}

rondo_status suite_open(const char *name, suite_context *out_context) {
    suite_context context = {0};
    case_thread = pthread_self();
    is_null = strncmp(name, "null", 4) == 0;
    context.is_null = is_null;
    if (is_null) {
        peek_install_null();
    }
    if (strcmp(name, "fake") == 0) {
        start_fake(&context);
        name = "cuda:0";
    }
    rondo_status status = rondo_device_open(name, &context.device);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    context.is_host = rondo_device_is_host(context.device);
    context.is_prompt = context.is_prompt || is_emulated(context.device);
    context.is_cuda = !context.is_host && !is_null;
    if (!context.is_cuda) {
        union {
            rondo_host_function function;
            void *address;
        } affine = {.function = run_affine}, spin = {.function = run_spin};
        context.affine = affine.address;
        context.spin = spin.address;
    } else {
        status = peek_compile(context.device, cuda_source, "affine", &context.affine);
        if (status == RONDO_STATUS_OK) {
            status = peek_compile(context.device, cuda_source, "spin", &context.spin);
        }
    }
    if (status == RONDO_STATUS_OK) {
        // Loads what a device loads once, so that cases may count objects.
        (void)!rondo_device_supports(context.device, RONDO_FEATURE_WHILE);
        status = rondo_stream_create(context.device, NULL, &context.stream);
    }
    if (status != RONDO_STATUS_OK) {
        suite_close(&context);
        return status;
    }
    *out_context = context;
    return RONDO_STATUS_OK;
}

void suite_skip(const char *reason) {
    if (!pthread_equal(pthread_self(), case_thread)) {
        return;
    }
    print_message("skipped: %s\n", reason);
    skip();
}

void suite_need(suite_context *context, rondo_feature feature) {
    if (rondo_device_supports(context->device, feature) != RONDO_STATUS_OK) {
        suite_skip(rondo_error_get_last()->message);
    }
}

void suite_need_children(const suite_context *context) {
    if (context->is_null) {
        suite_skip("the device has no graphs inside graphs");
    }
}

void suite_need_execution(const suite_context *context) {
    if (context->is_null) {
        suite_skip("the device runs nothing");
    }
}

// ---- lists ------------------------------------------------------------------------------------

suite_entry *suite_entries;

static bool is_before(const suite_entry *one, const suite_entry *other) {
    const int files = strcmp(one->file, other->file);
    return files != 0 ? files < 0 : one->line < other->line;
}

// Sorted, so that the order does not depend on the linker.
void suite_add(suite_entry *entry) {
    suite_entry **link = &suite_entries;
    while (*link != NULL && is_before(*link, entry)) {
        link = &(*link)->next;
    }
    entry->next = *link;
    *link = entry;
}

// ---- checks -----------------------------------------------------------------------------------

bool suite_is_swept;

int suite_rounds(int full, int swept) {
    return suite_is_swept ? swept : full;
}

void (*suite_status_hook)(rondo_status status, rondo_status expected, const char *call);

// The record names a call that a program can know: of Rondo, of the driver or of the system.
static bool names_public_call(const rondo_error *error) {
    static const char *const beginnings[] = {"rondo_", "cu", "nvrtc", "a recorded call", "malloc"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; ++i) {
        if (strncmp(error->call, beginnings[i], strlen(beginnings[i])) == 0) {
            return strncmp(error->call, "rondo__", 7) != 0;
        }
    }
    return false;
}

void suite_assert_status(rondo_status status, rondo_status expected, const char *call,
                         const char *file, int line) {
    if (suite_status_hook != NULL) {
        suite_status_hook(status, expected, call);
    }
    if (is_null && status == RONDO_STATUS_UNSUPPORTED && expected != status) {
        suite_skip(rondo_error_get_last()->message);
    }
    if (status != expected) {
        print_error("%s\n  gave %s, not %s", call, rondo_status_get_name(status),
                    rondo_status_get_name(expected));
        if (status != RONDO_STATUS_OK) {
            const rondo_error *error = rondo_error_get_last();
            print_error(": %s: %s%s%s", error->call, error->message,
                        error->driver_name[0] != '\0' ? ", " : "", error->driver_name);
        }
        print_error("\n");
        _fail(file, line);
    }
    if (status != RONDO_STATUS_OK && rondo_error_get_last()->status == status &&
        !names_public_call(rondo_error_get_last())) {
        print_error("%s\n  failed in \"%s\", which no program knows: %s\n", call,
                    rondo_error_get_last()->call, rondo_error_get_last()->message);
        _fail(file, line);
    }
}

void suite_assert_message(const char *text, const char *file, int line) {
    if (strstr(rondo_error_get_last()->message, text) == NULL) {
        print_error("\"%s\" does not say \"%s\"\n", rondo_error_get_last()->message, text);
        _fail(file, line);
    }
}

// ---- objects ----------------------------------------------------------------------------------

enum { BLOCKS_MAX = 1024 };
static void *blocks[BLOCKS_MAX];  // that are allocated; guarded by blocks_lock
static size_t block_count;
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t *suite_allocate(suite_context *context, rondo_memory_kind kind, size_t count) {
    void *address = NULL;
    ASSERT_OK(rondo_memory_allocate(context->device, kind, count * sizeof(uint32_t), &address));
    assert_non_null(address);
    assert_int_equal((uintptr_t)address % 256, 0);
    pthread_mutex_lock(&blocks_lock);
    const bool has_room = block_count < BLOCKS_MAX;
    if (has_room) {
        blocks[block_count++] = address;
    }
    pthread_mutex_unlock(&blocks_lock);
    assert_true(has_room);
    return address;
}

void suite_free(suite_context *context, rondo_memory_kind kind, void *address) {
    (void)kind;  // what the case allocated; the library knows it
    pthread_mutex_lock(&blocks_lock);
    for (size_t i = 0; i < block_count; ++i) {
        if (blocks[i] == address) {
            blocks[i] = blocks[--block_count];
        }
    }
    pthread_mutex_unlock(&blocks_lock);
    rondo_memory_free(context->device, address);
}

void suite_free_rest(suite_context *context) {
    while (block_count > 0) {
        suite_free(context, RONDO_MEMORY_DEVICE, blocks[block_count - 1]);
    }
}

rondo_stream *suite_create_stream(suite_context *context) {
    rondo_stream *stream;
    ASSERT_OK(rondo_stream_create(context->device, NULL, &stream));
    return stream;
}

rondo_event *suite_create_event(suite_context *context, uint32_t flags) {
    rondo_event *event;
    ASSERT_OK(rondo_event_create(context->device, flags, &event));
    return event;
}

rondo_graph *suite_create_graph(suite_context *context, bool keeps_template) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.keep = keeps_template ? RONDO_KEEP_TEMPLATE : RONDO_KEEP_EXECUTABLE;
    options.label = "suite";
    rondo_graph *graph;
    ASSERT_OK(rondo_graph_create(context->device, &options, &graph));
    return graph;
}

bool suite_append_text(void *user_data, const char *bytes, size_t count) {
    suite_text *text = user_data;
    assert_true(count < sizeof text->bytes - text->length);
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
    return true;
}

enum { REMEMBERED_MAX = 16 };

static struct {
    void (*destroy)(void *object);
    void *object;
} remembered[REMEMBERED_MAX];
static size_t remembered_count;

void suite_remember(void (*destroy)(void *object), void *object) {
    assert_true(remembered_count < REMEMBERED_MAX);
    remembered[remembered_count].destroy = destroy;
    remembered[remembered_count].object = object;
    ++remembered_count;
}

void suite_forget(void *object) {
    for (size_t i = 0; i < remembered_count; ++i) {
        if (remembered[i].object == object) {
            --remembered_count;
            memmove(&remembered[i], &remembered[i + 1],
                    (remembered_count - i) * sizeof remembered[0]);
            return;
        }
    }
}

void suite_destroy_remembered(void) {
    while (remembered_count > 0) {
        --remembered_count;
        remembered[remembered_count].destroy(remembered[remembered_count].object);
    }
}

void suite_set(suite_context *context, uint32_t *device_address, uint32_t value, size_t count) {
    ASSERT_OK(rondo_stream_fill(context->stream, device_address, value, 4, count));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
}

uint32_t suite_get(suite_context *context, const uint32_t *device_address, size_t index) {
    uint32_t value = 0;
    suite_need_execution(context);
    ASSERT_OK(rondo_stream_copy(context->stream, &value, device_address + index, sizeof value,
                                RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    return value;
}

void suite_assert_value(suite_context *context, const uint32_t *device_address, size_t index,
                        uint32_t expected, const char *file, int line) {
    if (!context->is_null) {
        _assert_int_equal(suite_get(context, device_address, index), expected, file, line);
    }
}

// ---- modes ------------------------------------------------------------------------------------

void suite_run(suite_case *run, rondo_status (*issue)(suite_context *, rondo_stream *, void *),
               void *data, uint32_t *canary) {
    suite_context *context = run->context;
    suite_need_execution(context);
    rondo_stream *stream = suite_create_stream(context);
    if (run->mode == SUITE_EAGER) {
        ASSERT_OK(issue(context, stream, data));
        ASSERT_OK(rondo_stream_synchronize(stream));
        rondo_stream_destroy(stream);
        return;
    }
    suite_set(context, canary, 0xcafe, 1);
    rondo_graph *graph = suite_create_graph(context, false);
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(issue(context, stream, data));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_VALUE(context, canary, 0, 0xcafe);
    ASSERT_OK(rondo_graph_upload(graph, stream));
    for (int i = 0; i < (run->mode == SUITE_REPLAYED ? 5 : 1); ++i) {
        ASSERT_OK(rondo_graph_replay(graph, stream));
    }
    ASSERT_OK(rondo_stream_synchronize(stream));
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

// ---- gates ------------------------------------------------------------------------------------

struct suite_gate {
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool is_open;
    suite_gate *next;  // among all
};

static suite_gate *gates;  // made and not destroyed; of the thread that runs the cases

suite_gate *suite_gate_create(suite_context *context) {
    suite_need_execution(context);
    if (context->is_prompt) {
        skip();
    }
    suite_gate *gate = calloc(1, sizeof *gate);
    assert_non_null(gate);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->change, NULL);
    gate->next = gates;
    gates = gate;
    return gate;
}

uint32_t suite_gate_patience_s;
volatile bool suite_gate_gave_way;

static void pass_gate(void *data) {
    suite_gate *gate = *(suite_gate **)data;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += (time_t)suite_gate_patience_s;
    pthread_mutex_lock(&gate->lock);
    while (!gate->is_open) {
        if (suite_gate_patience_s == 0) {
            pthread_cond_wait(&gate->change, &gate->lock);
        } else if (pthread_cond_timedwait(&gate->change, &gate->lock, &end) != 0) {
            gate->is_open = true;
            suite_gate_gave_way = true;
        }
    }
    pthread_mutex_unlock(&gate->lock);
}

rondo_status suite_gate_enter(suite_gate *gate, rondo_stream *stream) {
    return rondo_stream_call_host(stream, "gate", pass_gate, &gate, sizeof gate);
}

void suite_gate_open(suite_gate *gate) {
    pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->change);
    pthread_mutex_unlock(&gate->lock);
}

void suite_gate_open_all(void) {
    for (suite_gate *gate = gates; gate != NULL; gate = gate->next) {
        suite_gate_open(gate);
    }
}

void suite_gate_destroy(suite_gate *gate) {
    suite_gate **link = &gates;
    while (*link != NULL && *link != gate) {
        link = &(*link)->next;
    }
    *link = *link != NULL ? gate->next : NULL;
    pthread_cond_destroy(&gate->change);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}
