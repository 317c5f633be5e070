// backend/cuda/graph/cuda_conditional.c — conditional nodes on CUDA.
//
// A conditional node looks at a handle, a number that only a kernel can set. So each node comes
// with a launch of a tiny kernel that sets it from the predicate in device memory; a while has one
// more at the end of its body:
//
//      ... -> [condition(handle, predicate)] -> [while handle] -> ...
//                                                  body: ... -> [condition(handle, predicate)]
//
// The body graphs belong to the node and are recorded by cuStreamBeginCaptureToGraph.
//
// CUDA 12.3 knows IF with one body, and WHILE. IF with two bodies and SWITCH came with 12.8;
// before, they are a row of IFs. All handles are set before the first of them, so that a body which
// writes the predicate does not choose anew:
//
//      -> [condition(h0, p == 0)] -> [condition(h1, p == 1)] -> [if h0] -> [if h1] ->
//
// Kernels may set handles through cudaGraphSetConditional, which the driver itself provides when it
// loads a module. The kernel is kept as PTX, so that this needs no NVRTC.
//
// Source: CUDA Programming Guide, "Conditional Graph Nodes"; Driver API, Graph Management.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_conditional.h"

#include "backend/cuda/compile/cuda_module.h"
#include "backend/cuda/driver/cuda_launch.h"
#include "backend/cuda/graph/cuda_body.h"
#include "backend/cuda/graph/cuda_frontier.h"
#include "base/error.h"
#include "base/memory.h"

enum { DRIVER_WITH_SWITCH = 12080 };

// How the kernel makes the handle's value of the predicate's.
enum { CONDITION_VALUE = 0, CONDITION_EQUAL = 1, CONDITION_NOT_EQUAL = 2 };

// condition(handle, predicate, how, wanted)
static const char condition_text[] =
    ".version 7.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);\n"
    ".visible .entry rondo_condition (.param .u64 handle, .param .u64 predicate,\n"
    "                                 .param .u32 how, .param .u32 wanted)\n"
    "{\n"
    "    .reg .pred %p<4>;\n"
    "    .reg .b32 %r<8>;\n"
    "    .reg .b64 %rd<4>;\n"
    "    ld.param.u64 %rd1, [handle];\n"
    "    ld.param.u64 %rd2, [predicate];\n"
    "    ld.param.u32 %r1, [how];\n"
    "    ld.param.u32 %r2, [wanted];\n"
    "    cvta.to.global.u64 %rd3, %rd2;\n"
    "    ld.volatile.global.u32 %r3, [%rd3];\n"
    "    setp.eq.u32 %p1, %r3, %r2;\n"
    "    selp.u32 %r4, 1, 0, %p1;\n"
    "    selp.u32 %r5, 0, 1, %p1;\n"
    "    setp.eq.u32 %p2, %r1, 1;\n"
    "    selp.u32 %r6, %r4, %r3, %p2;\n"
    "    setp.eq.u32 %p3, %r1, 2;\n"
    "    selp.u32 %r7, %r5, %r6, %p3;\n"
    "    {\n"
    "    .param .b64 first;\n"
    "    st.param.b64 [first+0], %rd1;\n"
    "    .param .b32 second;\n"
    "    st.param.b32 [second+0], %r7;\n"
    "    call.uni cudaGraphSetConditional, (first, second);\n"
    "    }\n"
    "    ret;\n"
    "}\n";

typedef struct condition_arguments {
    uint64_t handle;
    rondo__cu_address predicate;
    uint32_t how;
    uint32_t wanted;
} condition_arguments;

// A node and one of its bodies.
typedef struct branch_place {
    rondo__cu_graph_node node;
    rondo__cu_graph body;
} branch_place;

typedef struct open_conditional {
    rondo__conditional head;
    uint64_t capture;         // serial of the parent's; 0: the program's own
    uint64_t handle;          // of the first node
    branch_place branches[];  // by branch
} open_conditional;

static rondo__cu_address address_of(const void *pointer) {
    return (rondo__cu_address)(uintptr_t)pointer;
}

// ---- what there is ----------------------------------------------------------------------------

static rondo_status get_condition(rondo__cuda_device *device, rondo__cu_function *out_function) {
    pthread_mutex_lock(&device->lock);
    *out_function = device->condition;
    pthread_mutex_unlock(&device->lock);
    if (*out_function != NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__cuda_load_ptx(device, condition_text, "rondo_condition", out_function));
    pthread_mutex_lock(&device->lock);
    device->condition = *out_function;
    pthread_mutex_unlock(&device->lock);
    return RONDO_STATUS_OK;
}

void rondo__cuda_prepare_conditions(rondo__cuda_device *device) {
    if ((device->api->capabilities & RONDO__CUDA_CAN_CONDITIONALS) == 0) {
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__cu_function function = NULL;
    (void)get_condition(device, &function);
    rondo__error_restore(&saved);
}

rondo_status rondo__cuda_check_feature(rondo_device *device_, rondo_feature feature) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    const rondo__cuda_api *api = device->api;
    if (feature == RONDO_FEATURE_HOST_IN_BODY) {
        return RONDO_FAIL_AS(
            "rondo_device_supports", UNSUPPORTED,
            "there are no host functions inside conditional bodies on CUDA; launch a "
            "kernel there, or call the function before or after the scope");
    }
    if ((api->capabilities & RONDO__CUDA_CAN_CONDITIONALS) == 0) {
        return RONDO_FAIL_AS(
            "rondo_device_supports", UNSUPPORTED,
            "the NVIDIA driver (CUDA %d.%d) has no conditional nodes, which came "
            "with CUDA 12.3; update it, or call rondo_control_if, _switch or _while "
            "outside a capture: there the host decides",
            api->driver_version / 1000, api->driver_version % 1000 / 10);
    }
    rondo__cu_function function = NULL;
    return get_condition(device, &function);
}

// ---- recording the node -----------------------------------------------------------------------

static rondo_status launch_condition(rondo_stream *stream, uint64_t handle, const void *predicate,
                                     uint32_t how, uint32_t wanted) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__cu_function function = NULL;
    RETURN_IF_ERROR(get_condition(device, &function));
    condition_arguments arguments = {
        .handle = handle, .predicate = address_of(predicate), .how = how, .wanted = wanted};
    rondo_launch launch = {.struct_size = sizeof launch,
                           .name = "rondo_condition",
                           .function = function,
                           .grid = {1, 1, 1},
                           .block = {1, 1, 1},
                           .arguments = &arguments,
                           .argument_bytes = sizeof(arguments)};
    return rondo__cuda_launch(stream, &launch);
}

// The graph that the stream records into.
static rondo_status get_graph(rondo_stream *stream, rondo__cu_graph *out_graph) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    int state = RONDO__CU_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    *out_graph = NULL;
    rondo__cu_result code = device->api->cuStreamGetCaptureInfo(rondo__cuda_native_stream(stream),
                                                                &state, &id, out_graph, NULL, NULL);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_STREAM_FAIL(stream, code, "cuStreamGetCaptureInfo",
                                       "cannot ask what the stream records");
    }
    if (state != RONDO__CU_CAPTURE_STATUS_ACTIVE) {
        return RONDO_FAIL_AS("rondo_scope_begin", STATE, "stream %u does not record",
                             (unsigned)stream->number);
    }
    rondo__cuda_note_inner(device, id);
    return RONDO_STATUS_OK;
}

static rondo_status create_handle(rondo__cuda_device *device, rondo__cu_graph graph,
                                  uint64_t *out_handle) {
    rondo__cu_result code =
        device->api->cuGraphConditionalHandleCreate(out_handle, graph, device->context, 0, 0);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphConditionalHandleCreate",
                                "cannot make the condition of a node");
    }
    return RONDO_STATUS_OK;
}

// Adds one node behind the stream's frontier, which is one node already.
static rondo_status add_node(rondo_stream *stream, rondo__cu_graph graph,
                             rondo__cu_node_params *params, rondo__cu_graph_node *out_node) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__node_handle before = 0;
    size_t count = 0;
    RETURN_IF_ERROR(rondo__cuda_get_frontier(stream, &before, 1, &count));
    rondo__cu_graph_node dependency = (rondo__cu_graph_node)before;
    rondo__cu_graph_node node = NULL;
    rondo__cu_result code =
        device->api->cuGraphAddNode(&node, graph, &dependency, NULL, count < 1 ? count : 1, params);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_STREAM_FAIL(stream, code, "cuGraphAddNode",
                                       "cannot record a conditional node");
    }
    *out_node = node;
    code = device->api->cuStreamUpdateCaptureDependencies(rondo__cuda_native_stream(stream), &node,
                                                          1, RONDO__CU_CAPTURE_SET_DEPENDENCIES);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_STREAM_FAIL(stream, code, "cuStreamUpdateCaptureDependencies",
                                       "cannot go on behind a conditional node");
    }
    return RONDO_STATUS_OK;
}

// Lets dumps name the node and list its bodies. row_index: the branch that it is, of a row.
static rondo_status keep_note(rondo__cuda_device *device, const open_conditional *open, bool is_row,
                              uint32_t row_index) {
    const branch_place *places = &open->branches[row_index];
    const uint32_t place_count = is_row ? 1 : open->head.branch_count;
    rondo__cuda_note *note =
        rondo__calloc(1, sizeof(*note) + place_count * sizeof(note->bodies[0]));
    if (note == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    note->node = places[0].node;
    note->kind = is_row ? RONDO_SCOPE_IF : open->head.kind;
    note->row_count = is_row ? open->head.branch_count : 0;
    note->row_index = row_index;
    note->row_kind = open->head.kind;
    note->predicate = open->head.predicate;
    note->branch_count = place_count;
    for (uint32_t i = 0; i < place_count; i++) {
        note->bodies[i].head.device = &device->head;
        note->bodies[i].native = places[i].body;
    }
    if (!rondo__cuda_keep_note(device, open->capture, note)) {
        rondo__free(note);  // of a capture that no graph began: no call will read it
    }
    return RONDO_STATUS_OK;
}

// One node that has all bodies.
static rondo_status add_whole(rondo_stream *parent, rondo__cu_graph graph, open_conditional *open) {
    static const int types[] = {
        [RONDO_SCOPE_IF] = RONDO__CU_CONDITIONAL_IF,
        [RONDO_SCOPE_IF_ELSE] = RONDO__CU_CONDITIONAL_IF,
        [RONDO_SCOPE_SWITCH] = RONDO__CU_CONDITIONAL_SWITCH,
        [RONDO_SCOPE_WHILE] = RONDO__CU_CONDITIONAL_WHILE,
    };
    rondo__cuda_device *device = rondo__cuda_device_of(parent->device);
    const rondo__conditional *head = &open->head;
    RETURN_IF_ERROR(create_handle(device, graph, &open->handle));
    RETURN_IF_ERROR(launch_condition(
        parent, open->handle, head->predicate,
        head->kind == RONDO_SCOPE_SWITCH ? CONDITION_VALUE : CONDITION_NOT_EQUAL, 0));
    rondo__cu_node_params params = {.type = RONDO__CU_GRAPH_NODE_CONDITIONAL,
                                    .value.conditional = {.handle = open->handle,
                                                          .type = types[head->kind],
                                                          .body_count = head->branch_count,
                                                          .context = device->context}};
    rondo__cu_graph_node node = NULL;
    RETURN_IF_ERROR(add_node(parent, graph, &params, &node));
    for (uint32_t i = 0; i < head->branch_count; i++) {
        open->branches[i] =
            (branch_place){.node = node, .body = params.value.conditional.bodies[i]};
    }
    return keep_note(device, open, false, 0);
}

// A row of IFs, one for each branch.
static rondo_status add_row(rondo_stream *parent, rondo__cu_graph graph, open_conditional *open,
                            uint64_t *handles) {
    rondo__cuda_device *device = rondo__cuda_device_of(parent->device);
    const rondo__conditional *head = &open->head;
    bool is_switch = head->kind == RONDO_SCOPE_SWITCH;
    for (uint32_t i = 0; i < head->branch_count; i++) {
        RETURN_IF_ERROR(create_handle(device, graph, &handles[i]));
        // The "then" of an if runs for every number but 0, the "else" for 0.
        RETURN_IF_ERROR(launch_condition(
            parent, handles[i], head->predicate,
            is_switch || i == 1 ? CONDITION_EQUAL : CONDITION_NOT_EQUAL, is_switch ? i : 0));
    }
    for (uint32_t i = 0; i < head->branch_count; i++) {
        rondo__cu_node_params params = {.type = RONDO__CU_GRAPH_NODE_CONDITIONAL,
                                        .value.conditional = {.handle = handles[i],
                                                              .type = RONDO__CU_CONDITIONAL_IF,
                                                              .body_count = 1,
                                                              .context = device->context}};
        RETURN_IF_ERROR(add_node(parent, graph, &params, &open->branches[i].node));
        open->branches[i].body = params.value.conditional.bodies[0];
        RETURN_IF_ERROR(keep_note(device, open, true, i));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_add_conditional(rondo_stream *parent, rondo_scope_kind kind,
                                         const void *predicate, uint32_t branch_count,
                                         rondo__conditional **out_conditional) {
    rondo__cuda_device *device = rondo__cuda_device_of(parent->device);
    *out_conditional = NULL;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    uint64_t *handles = NULL;
    open_conditional *open =
        rondo__calloc(1, sizeof(*open) + branch_count * sizeof(open->branches[0]));
    if (open == NULL) {
        goto leave;
    }
    open->head = (rondo__conditional){.device = parent->device,
                                      .kind = kind,
                                      .predicate = predicate,
                                      .branch_count = branch_count};
    open->capture = ((rondo__cuda_stream *)parent)->capture;
    rondo__cu_graph graph = NULL;
    status = get_graph(parent, &graph);
    if (status != RONDO_STATUS_OK) {
        goto free_open;
    }
    bool is_row = (kind == RONDO_SCOPE_IF_ELSE || kind == RONDO_SCOPE_SWITCH) &&
                  device->api->driver_version < DRIVER_WITH_SWITCH;
    if (is_row) {
        handles = rondo__calloc(branch_count, sizeof(*handles));
        status = handles != NULL ? add_row(parent, graph, open, handles) : RONDO_STATUS_NO_MEMORY;
    } else {
        status = add_whole(parent, graph, open);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_open;
    }
    open->head.last_node = (rondo__node_handle)open->branches[branch_count - 1].node;
    *out_conditional = &open->head;
    goto leave;

free_open:
    rondo__free(open);
leave:
    rondo__free(handles);
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// ---- recording the bodies ---------------------------------------------------------------------

rondo_status rondo__cuda_begin_body(rondo__conditional *conditional, uint32_t branch,
                                    rondo_stream *body, rondo__node_handle *out_node,
                                    uint32_t *out_index) {
    const open_conditional *open = (const open_conditional *)conditional;
    rondo__cuda_device *device = rondo__cuda_device_of(conditional->device);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status =
        rondo__cuda_begin_body_capture(body, open->branches[branch].body, open->capture);
    *out_node = (rondo__node_handle)open->branches[branch].node;
    // In a row each branch is the only body of a node of its own.
    *out_index = open->branches[branch].node == open->branches[0].node ? branch : 0;
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_end_body(rondo__conditional *conditional, uint32_t branch,
                                  rondo_stream *body) {
    (void)branch;
    const open_conditional *open = (const open_conditional *)conditional;
    rondo_status status = RONDO_STATUS_OK;
    if (conditional->kind == RONDO_SCOPE_WHILE) {
        status =
            launch_condition(body, open->handle, conditional->predicate, CONDITION_NOT_EQUAL, 0);
    }
    // Where both fail, the end knows the first cause.
    rondo_error first;
    rondo__error_save(&first);
    rondo_status end_status = rondo__cuda_end_body_capture(body);
    if (end_status == RONDO_STATUS_OK && status != RONDO_STATUS_OK) {
        rondo__error_restore(&first);
        return status;
    }
    return end_status;
}

void rondo__cuda_release_conditional(rondo__conditional *conditional) {
    rondo__free(conditional);
}
