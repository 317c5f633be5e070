// support/fake/fake_cuda_state.h — what the two files of the fake driver share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cuda/driver/cuda_abi.h"
#include "emulated/emulated_run.h"
#include "support/fake/fake_cuda.h"

enum {
    FAKE_CALL_NAMES_MAX = 192,
    FAKE_KERNELS_MAX = 64,
    FAKE_CONTEXTS_MAX = 8,
    FAKE_DEVICES_MAX = 8,
    FAKE_DEPENDENCIES_MAX = 128,
    FAKE_ARGUMENTS_MAX = 4096,
    FAKE_ATTRIBUTES_MAX = 4,
    FAKE_SHARED_MAX = 232448,  // bytes of dynamic shared memory, where more than 48 KB are allowed
    FAKE_CONDITIONS_MAX = 4096,  // handles; older ones are taken anew
};

// What the driver knows and Rondo does not use.
enum {
    FAKE_CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE = 13,
    FAKE_CU_INSTANTIATE_USE_NODE_PRIORITY = 8,
    FAKE_CU_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5,
};

// A text that "compiled" begins so (fake_cuda_install.c).
#define FAKE_MAGIC "fake:"

typedef enum fake_kind {
    FAKE_MEMORY,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_MODULE,
    FAKE_GRAPH,
    FAKE_EXEC,
    FAKE_USER_OBJECT,
} fake_kind;

typedef struct fake_object {
    fake_kind kind;
    rondo__cu_context context;  // current when it was made
    struct fake_object *previous;
    struct fake_object *next;
} fake_object;

typedef struct fake_memory {
    fake_object object;
    void *bytes;
    size_t byte_count;
    bool is_host;
    uint64_t id;  // of the allocation
} fake_memory;

typedef struct fake_user_object {
    fake_object object;
    void *pointer;
    rondo__cu_host_function destroy;
    unsigned int reference_count;
} fake_user_object;

typedef struct fake_kernel_entry {
    const char *name;
    fake_cuda_kernel kernel;
    // Of a module's own, in place of `kernel`: what fake_pointwise.c or fake_select.c runs, or
    // compiled code.
    const struct fake_module *module;
    const char *text;
    emulated_kernel code;
    bool has_large_shared;  // was allowed more dynamic shared memory than all may have
    struct fake_kernel_entry *next;
} fake_kernel_entry;

typedef struct fake_module {
    fake_object object;
    char *text;                  // that was "compiled"
    void *code;                  // that was compiled (tests/emulated); NULL: none
    fake_kernel_entry *kernels;  // that were asked for
} fake_module;

typedef struct fake_node {
    int type;  // RONDO__CU_GRAPH_NODE_*
    size_t dependencies[FAKE_DEPENDENCIES_MAX];
    size_t dependency_count;
    const fake_kernel_entry *kernel;
    unsigned int shape[7];  // grid, block, shared bytes
    unsigned char arguments[FAKE_ARGUMENTS_MAX];
    size_t argument_bytes;
    bool has_parameters;  // launched with a parameter array, not with packed arguments
    const void *source;   // copies
    void *destination;    // copies and fills; the memory of a node that allocates or frees
    int source_type;      // copies: RONDO__CU_MEMORY_TYPE_* as the call said, for both ends;
                          // of a node that allocates: the device
    int destination_type;
    size_t count;                            // bytes, or elements of a fill; of a row
    size_t height;                           // rows; 0 is 1
    size_t source_pitch, destination_pitch;  // bytes from row to row
    // Of a fill; a node's is not cut to the element. Of memory: may other processes reach it?
    unsigned int value;
    unsigned int element_bytes;
    rondo__cu_host_function function;
    void *user_data;
    struct fake_event *event;  // external event nodes
    struct fake_graph *child;  // child graph nodes; owned
    bool is_programmatic;      // launched to overlap with what it depends on
    // The other attributes of its launch.
    rondo__cu_launch_attribute attributes[FAKE_ATTRIBUTES_MAX];
    size_t attribute_count;
    size_t identity;   // unique in the process, also the handle
    size_t original;   // of the node that this one was copied from
    bool is_disabled;  // of an executable
    // Conditional nodes (fake_cuda_conditional.c).
    uint64_t condition;
    int conditional_type;
    rondo__cu_graph *bodies;  // allocated; each a fake_graph of the node's own
    size_t body_count;
} fake_node;

// A graph; an executable is a copy of one.
typedef struct fake_graph {
    fake_object object;
    fake_node *nodes;
    size_t node_count;
    size_t node_capacity;
    fake_user_object **user_objects;
    size_t user_object_count;
    const struct fake_graph *source;  // of an executable
    unsigned long long flags;         // of an executable
    bool has_live_memory;             // of its allocating nodes
    bool is_body;                     // belongs to a conditional node
    uint32_t number;                  // as CUPTI has it: of executables, too
    uint32_t first_index;             // as CUPTI counts nodes of the executable that this is in
    bool is_gone;  // freed by the end of its broken capture, though the node will free it again
} fake_graph;

typedef struct fake_stream {
    fake_object object;
    // The capture this stream takes part in: the origin stream of it, NULL when none.
    struct fake_stream *origin;
    size_t dependencies[FAKE_DEPENDENCIES_MAX];  // what the next node waits for
    size_t dependency_count;
    rondo__cu_graph_node frontier[FAKE_DEPENDENCIES_MAX];  // lent to callers: the same as handles
    // Of the origin only.
    fake_graph *graph;
    uint64_t capture_id;
    int mode;
    pthread_t thread;
    bool is_broken;
    bool is_dangling;  // records into a body whose node was freed
    bool is_blocking;  // the legacy stream waits for it, and it for that
    int priority;      // as the driver counts: the lower comes first
} fake_stream;

typedef struct fake_event {
    fake_object object;
    bool is_recorded;
    bool is_orphan;       // recorded in a capture that has ended
    fake_stream *origin;  // not NULL: recorded in that capture
    size_t dependencies[FAKE_DEPENDENCIES_MAX];
    size_t dependency_count;
    bool has_time;
    uint64_t time_ns;      // of the last record
    uint64_t lazy_number;  // the item that is that record (fake_cuda_lazy.c); 0: none
} fake_event;

typedef struct fake_call_count {
    const char *name;
    size_t count;
} fake_call_count;

typedef struct fake_state {
    pthread_mutex_t lock;
    fake_cuda_options options;
    fake_object *objects;       // all but user objects
    fake_object *user_objects;  // apart, as each recorded host function has one
    int retain_counts[FAKE_DEVICES_MAX];
    bool peers[FAKE_DEVICES_MAX][FAKE_DEVICES_MAX];  // work of the first uses memory of the second
    char contexts[FAKE_DEVICES_MAX];                 // their addresses are the context handles
    fake_call_count calls[FAKE_CALL_NAMES_MAX];
    size_t call_name_count;
    size_t call_count;
    long fail_countdown;
    rondo__cu_result fail_code;
    const char *failed_call;
    char violations[4096];
    fake_kernel_entry kernels[FAKE_KERNELS_MAX];
    size_t kernel_count;
    size_t node_identity;
    uint32_t condition_values[FAKE_CONDITIONS_MAX];
    bool condition_is_set[FAKE_CONDITIONS_MAX];
    size_t condition_count;
    const fake_graph *condition_graphs[FAKE_CONDITIONS_MAX];  // of handles that no node has taken
    struct fake_hidden *hidden;  // memory of nodes, of which no call knows the address
    bool is_pool_shared;         // what nodes take may be shared with other processes
    size_t reserved_bytes;       // of the device, for executables: gone ones leave them to new ones
    uint64_t last_capture_id;    // survives resets, as ids are never used twice
    uint64_t last_memory_id;     // the same
    uint32_t last_graph_number;
} fake_state;

typedef struct fake_thread {
    rondo__cu_context contexts[FAKE_CONTEXTS_MAX];
    int depth;
    int capture_mode;  // as cuThreadExchangeStreamCaptureMode keeps it
} fake_thread;

// Who wants to hear what the device does: the fake CUPTI. NULL: nobody.
typedef struct fake_watcher {
    // A call puts work on a stream.
    void (*launch)(void);
    // Work of that call was done. graph_node: its graph's number and its index there; 0: of none.
    void (*work)(const fake_node *node, uint64_t graph_node, uint64_t begin_ns, uint64_t end_ns);
} fake_watcher;
extern const fake_watcher *g_fake_watcher;
extern _Thread_local int g_fake_body_depth;  // of conditional nodes; what runs now is in as many

extern fake_state g_fake;
extern const fake_node *g_fake_running;  // what the device does
extern _Thread_local fake_thread g_fake_thread;

// Every call begins with enter, which counts it, takes the lock and yields the planned failure, and
// ends with leave.
rondo__cu_result fake_enter(const char *name);
rondo__cu_result fake_leave(rondo__cu_result code);

// What events take as their time (fake_cuda_set_clock).
uint64_t fake_now_ns(void);
RONDO_PRINTF(1, 2) void fake_violation(const char *format, ...);
void *fake_new_object(fake_kind kind, size_t bytes);
void fake_free_object(void *address);
bool fake_is_alive(const void *address, fake_kind kind);
bool fake_has_context(const char *name);
// The device of a context; -1: none.
int fake_get_device(rondo__cu_context context);
// The memory that holds the address; NULL when there is none.
fake_memory *fake_find_memory(const void *address);
// Notes a violation when the stream is of another context than the current one, or the memory of
// one that the stream's cannot reach.
void fake_check_selected(const fake_stream *stream, const char *name);
void fake_check_reach(const fake_stream *stream, const void *address, const char *name);
// The same for a kernel with a text: its module, and the memory that its arguments name.
void fake_check_launch(const fake_stream *stream, const fake_node *work);
// Launches, and whatever begins, ends and looks at a capture, take the context of their stream: so
// does driver 580 (CUDA 13). An older one here wants it current, and says so without harm.
bool fake_may_launch(rondo__cu_stream handle, const char *name);
// The stream behind a handle; NULL and the code when it is dead. Special handles never record here.
fake_stream *fake_get_stream(rondo__cu_stream handle, const char *name, rondo__cu_result *out_code);
int fake_get_capture_status(const fake_stream *stream);  // RONDO__CU_CAPTURE_STATUS_*
// The stream's next node will depend on these indices, too.
void fake_add_dependencies(fake_stream *stream, const size_t *dependencies, size_t count);
// Of a graph (NULL: eager work) the node with this index.
void fake_run_node(const fake_node *node, const fake_graph *graph, size_t index);
// All nodes that are not switched off.
void fake_run_nodes(const fake_graph *graph);
void fake_skip_nodes(const fake_graph *graph);  // of a body that is not taken
// Records the work or runs it, and leaves; `work` is filled in but for its place in a graph.
rondo__cu_result fake_submit(rondo__cu_stream handle, const char *name, const fake_node *work);
void fake_free_graph(fake_graph *graph);
void fake_copy_graph(const fake_graph *graph, fake_graph *copy);
// An object of this kind that is not dead; otherwise NULL and a violation.
fake_graph *fake_get_graph(void *handle, fake_kind kind, const char *name);
fake_node *fake_find_node(rondo__cu_graph_node handle);
// The same in one graph or executable.
fake_node *fake_find_in_graph(const fake_graph *graph, rondo__cu_graph_node handle);
// Appends a node to the graph. Its place depends on these indices.
fake_node *fake_append_node(fake_graph *graph, const size_t *dependencies, size_t count);
// Makes the node do what `work` does, at its place.
void fake_fill_node(fake_node *node, const fake_node *work);
// Takes a kernel and its arguments; false: it cannot be launched so.
bool fake_take_launch(fake_node *work, rondo__cu_function function, const unsigned int shape[7],
                      void **parameters, void **extra);
// What every kernel takes that is launched with a parameter array: an address and three words.
enum { FAKE_PARAMETERS = 4, FAKE_PARAMETERS_MAX = 128 };
void fake_pack_parameters(fake_node *node, void **parameters);

// A lazy GPU (fake_cuda_lazy.c). A call begins; work, a launch of a graph, a record or a
// wait is put on a stream that does not record: true where it is kept for later.
void fake_lazy_enter(const char *name);
bool fake_lazy_takes(rondo__cu_stream handle, const fake_stream *stream, const fake_node *work);
bool fake_lazy_takes_graph(rondo__cu_stream handle, const fake_stream *stream,
                           const fake_graph *exec);
void fake_lazy_record(const fake_stream *stream, fake_event *event);
void fake_lazy_wait(const fake_stream *stream, const fake_event *event);
// Somebody waits: what stands on a stream, or up to an event's record, runs.
void fake_lazy_run_all(void);
void fake_lazy_run_stream(const fake_stream *stream);
void fake_lazy_run_event(const fake_event *event);
void fake_lazy_forget(const fake_event *event);  // which is destroyed
void fake_lazy_drop(void);                       // everything

// The library's element-wise kernels, by their text (fake_pointwise.c).
bool fake_pointwise_is_known(const char *text);
void fake_pointwise_run(const char *text, const void *arguments, size_t argument_bytes);

// Those that pick elements, by their names and compiler options (fake_select.c).
bool fake_select_is_known(const char *name, const char *text);
void fake_select_run(const char *name, const char *text, const void *arguments,
                     size_t argument_bytes);

extern const fake_kernel_entry fake_condition_kernel;
void fake_run_conditional(const fake_node *node);
void fake_copy_bodies(fake_node *copy);  // of a node copied byte for byte
void fake_free_bodies(fake_node *node);
bool fake_has_unfit_body(const fake_graph *graph);
// Marks the node and all that it depends on.
void fake_mark_ancestors(const fake_graph *graph, size_t node, bool *marks);
bool fake_is_device_updatable(const fake_graph *graph);
bool fake_has_unused_condition(const fake_graph *graph);
void fake_forget_conditions(const fake_graph *graph);
// Neither memory of the driver's nor of a node's.
bool fake_is_pageable(const void *address);
void fake_free_hidden(void);
// The memory at a copy's end is the processor's.
bool fake_is_host_end(const void *address, int memory_type);
// A launch of this shape is one that a device can do.
bool fake_is_launchable(const unsigned int shape[7], const fake_kernel_entry *kernel);
// A graph without nodes of which there is only one: those of memory, and conditional ones.
bool fake_may_be_copied(const fake_graph *graph);
fake_graph *fake_clone_graph(const fake_graph *graph);
void fake_release_user_object(fake_user_object *object, unsigned int count);
// True when a capture forbids this thread an unsafe call; breaks that capture.
bool fake_break_unsafe(const char *name);
// True when work on the legacy stream meets a capture; breaks that capture.
bool fake_break_blocking(void);

#define ENTER(name)                           \
    rondo__cu_result code = fake_enter(name); \
    if (code != RONDO__CU_SUCCESS) {          \
        return fake_leave(code);              \
    }
#define NEED_CONTEXT(name)                                  \
    if (!fake_has_context(name)) {                          \
        return fake_leave(RONDO__CU_ERROR_INVALID_CONTEXT); \
    }

#define GET_STREAM(name)                                               \
    rondo__cu_result stream_code = RONDO__CU_SUCCESS;                  \
    fake_stream *stream = fake_get_stream(handle, name, &stream_code); \
    if (stream == NULL) {                                              \
        return fake_leave(stream_code);                                \
    }

#define GET_GRAPH(handle, kind, name)                       \
    fake_graph *graph = fake_get_graph(handle, kind, name); \
    if (graph == NULL) {                                    \
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);   \
    }

// `node`: what the handle is of.
#define GET_NODE(name, wanted_type)                       \
    const fake_node *node = fake_find_node(handle);       \
    if (node == NULL || node->type != (wanted_type)) {    \
        fake_violation("%s with a wrong node", name);     \
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE); \
    }

// FAKE_CUDA_IS_LIBRARY: the functions are what a libcuda exports.
#ifdef FAKE_CUDA_IS_LIBRARY
#define FAKE_CUDA_EXPORT(exported) __asm__(exported) __attribute__((visibility("default")))
#else
#define FAKE_CUDA_EXPORT(exported)
#endif
#define RONDO__CUDA_SYMBOL(need, name, version, exported, arguments) \
    rondo__cu_result fake_##name arguments FAKE_CUDA_EXPORT(exported);
#include "backend/cuda/driver/cuda_symbols.h"
#include "support/driver_symbols.h"
#undef RONDO__CUDA_SYMBOL
