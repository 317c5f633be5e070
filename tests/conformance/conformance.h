// conformance.h — one suite for every backend: what rondo/device.h and rondo/graph.h promise.
//
// Each case is a cmocka test that gets the context as its state. Cases that issue work come in
// three modes: eager; captured (recorded, shown not to have run, replayed once); replayed
// (recorded, then replayed several times). The same work must give the same bytes in each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/control.h"
#include "rondo/device.h"
#include "rondo/graph.h"
#include "rondo/inspect.h"
#include "rondo/log.h"
#include "rondo/status.h"
#include "support/test.h"

typedef enum suite_mode { SUITE_EAGER, SUITE_CAPTURED, SUITE_REPLAYED } suite_mode;

typedef struct suite_context {
    rondo_device *device;
    rondo_stream *stream;
    bool is_host;
    bool is_cuda;    // also where it is fake
    bool is_null;    // it records, and runs nothing
    bool is_fake;    // cuda:0 is tests/support/fake_cuda: kernels run as C functions
    bool is_prompt;  // work has happened when its call returns: the fake, and the emulated GPU
    // Kernels: a C function on the host, a CUfunction on CUDA.
    void *affine;  // suite_affine_arguments: x[i] = x[i] * factor + term
    void *spin;    // suite_spin_arguments
} suite_context;

// A case and the mode it runs in.
typedef struct suite_case {
    suite_context *context;
    suite_mode mode;
} suite_case;

// Skips the case on the device that runs nothing. A case that looks at results in threads of its
// own says so at its beginning: no other thread than its first skips it.
void suite_need_execution(const suite_context *context);

void suite_free_rest(suite_context *context);

static inline suite_context *suite_get_context(void **state) {
    return ((suite_case *)*state)->context;
}

// SUITE_CASE(name) { ... } is a case, with `context` and `state`; SUITE_CASE_IN_MODES(name) { ... }
// one that runs in each mode; SUITE_CASE_EXECUTED(name) { ... } one that begins with
// suite_need_execution.
typedef struct suite_entry {
    const char *name;
    void (*function)(void **state);
    bool has_modes;
    const char *file;
    int line;
    struct suite_entry *next;
} suite_entry;

// All cases, by file and line.
extern suite_entry *suite_entries;
void suite_add(suite_entry *entry);

#define SUITE_ENTRY(what, modes, needs)                                                     \
    static void what(void **state, suite_context *context);                                 \
    static void what##__run(void **state) {                                                 \
        suite_context *context = suite_get_context(state);                                  \
        if (needs) {                                                                        \
            suite_need_execution(context);                                                  \
        }                                                                                   \
        what(state, context);                                                               \
        suite_free_rest(context);                                                           \
    }                                                                                       \
    __attribute__((constructor)) static void what##__add(void) {                            \
        static suite_entry entry = {#what, what##__run, (modes), __FILE__, __LINE__, NULL}; \
        suite_add(&entry);                                                                  \
    }                                                                                       \
    static void what(__attribute__((unused)) void **state,                                  \
                     __attribute__((unused)) suite_context *context)
#define SUITE_CASE(what) SUITE_ENTRY(what, false, false)
#define SUITE_CASE_EXECUTED(what) SUITE_ENTRY(what, false, true)
#define SUITE_CASE_IN_MODES(what) SUITE_ENTRY(what, true, false)

// Fails the test with the error record when `call` does not give OK.
#define ASSERT_OK(call) suite_assert_status((call), RONDO_STATUS_OK, #call, __FILE__, __LINE__)
// Fails the test when `call` does not give the status of this name.
#define ASSERT_STATUS(call, status_name) \
    suite_assert_status((call), RONDO_STATUS_##status_name, #call, __FILE__, __LINE__)
void suite_assert_status(rondo_status status, rondo_status expected, const char *call,
                         const char *file, int line);
// Called with every status that a case asserts, before the assertion; NULL: nobody is interested.
extern void (*suite_status_hook)(rondo_status status, rondo_status expected, const char *call);
// Fails when the latest error record does not contain `text`.
#define ASSERT_MESSAGE_HAS(text) suite_assert_message((text), __FILE__, __LINE__)
void suite_assert_message(const char *text, const char *file, int line);

// How often a case does over again what it shows by doing it often: `full` times, or `swept` where
// tests/sweep runs the case once for each of its driver calls and allocations.
int suite_rounds(int full, int swept);
extern bool suite_is_swept;

// Skips the case, with the reason, on devices that lack the feature.
void suite_need(suite_context *context, rondo_feature feature);
// The same on devices that have no graphs inside graphs. What a case needs it says before it begins
// a capture: a skipped case leaves everything as it stands.
void suite_need_children(const suite_context *context);
// The same where a case has found out by itself.
void suite_skip(const char *reason);

// On the fake device kernels are C functions: what a launch of the kernel `name` runs there. Does
// nothing on other devices. Call it before peek_compile.
void suite_set_fake_kernel(suite_context *context, const char *name,
                           void (*kernel)(const void *arguments, size_t argument_bytes));

// ---- work -------------------------------------------------------------------------------------

// x[i] = x[i] * factor + term, for i < count. Does not commute, so order shows.
rondo_status suite_affine(suite_context *context, rondo_stream *stream, uint32_t *x, uint32_t count,
                          uint32_t factor, uint32_t term);
typedef struct suite_affine_arguments {
    uint32_t *x;
    uint32_t count;
    uint32_t factor;
    uint32_t term;
} suite_affine_arguments;
// That launch, which borrows the arguments.
rondo_launch suite_describe_affine(const suite_context *context,
                                   const suite_affine_arguments *arguments);
// Keeps the stream busy for about so long.
rondo_status suite_spin(suite_context *context, rondo_stream *stream, uint32_t microseconds);
uint64_t suite_now_ns(void);  // of the clock that it reads

// The same where only an order may depend on it: short in tests/sweep.
rondo_status suite_linger(suite_context *context, rondo_stream *stream, uint32_t microseconds);

// Memory that fails the test when there is none. At the end of a case what it has not freed is.
uint32_t *suite_allocate(suite_context *context, rondo_memory_kind kind, size_t count);
void suite_free(suite_context *context, rondo_memory_kind kind, void *address);
rondo_stream *suite_create_stream(suite_context *context);
rondo_event *suite_create_event(suite_context *context, uint32_t flags);
rondo_graph *suite_create_graph(suite_context *context, bool keeps_template);

// Collects what rondo_graph_dump writes; takes nothing from the heap.
typedef struct suite_text {
    size_t length;
    char bytes[1 << 16];
} suite_text;
bool suite_append_text(void *text, const char *bytes, size_t count);  // a rondo_write_function

// Objects that do not come from the public calls, which the sweep of failures (tests/sweep) knows
// by itself: destroyed by it when the case stops before suite_forget(object).
void suite_remember(void (*destroy)(void *object), void *object);
void suite_forget(void *object);
void suite_destroy_remembered(void);

// Sets, or reads back, device memory, and waits.
void suite_set(suite_context *context, uint32_t *device_address, uint32_t value, size_t count);
// Skips the case on the device that runs nothing.
uint32_t suite_get(suite_context *context, const uint32_t *device_address, size_t index);

// Fails when the device memory holds another value. Not looked at on the device that runs nothing,
// where a case passes by its statuses and structure; one that has no others needs execution.
#define ASSERT_VALUE(context, device_address, index, expected)                               \
    suite_assert_value((context), (device_address), (index), (uint32_t)(expected), __FILE__, \
                       __LINE__)
void suite_assert_value(suite_context *context, const uint32_t *device_address, size_t index,
                        uint32_t expected, const char *file, int line);

// RONDO_REQUIRE lists the device, or the beginning of its name: that it is missing is a failure.
bool suite_is_required(const char *device_name);

// The suite's context on a device; to be closed.
rondo_status suite_open(const char *name, suite_context *out_context);
void suite_close(suite_context *context);

// Issues work that starts from scratch (so that it may run any number of times) in the given mode
// and waits. In the captured modes `canary`, which the work overwrites, must not change before the
// first replay.
void suite_run(suite_case *run, rondo_status (*issue)(suite_context *, rondo_stream *, void *),
               void *data, uint32_t *canary);

// A host function that holds its stream until the gate is opened. Make it before anything else: it
// skips the case on the fake device, whose streams have no thread of their own to hold.
typedef struct suite_gate suite_gate;
suite_gate *suite_gate_create(suite_context *context);
rondo_status suite_gate_enter(suite_gate *gate, rondo_stream *stream);
void suite_gate_open(suite_gate *gate);
void suite_gate_destroy(suite_gate *gate);
// Opens the gates that a case which failed has left closed.
void suite_gate_open_all(void);
// The longest that a gate holds its stream in seconds, 0 for any time (the default), and whether
// one gave way.
// Where a call fails the library may have to wait for a stream that it would only have asked.
extern uint32_t suite_gate_patience_s;
extern volatile bool suite_gate_gave_way;
