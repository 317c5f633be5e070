// Fills and copies, nodes that are switched off, memory that belongs to graphs.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "truth.h"

enum { ROWS = 4, PITCH_BYTES = 64 };

static const char *const pageable_text = "11112222";

// ---- fills ------------------------------------------------------------------------------------

typedef struct memory_graph {
    rondo__cu_graph graph;
    rondo__cu_graph_exec exec;
    rondo__cu_graph_node node;
} memory_graph;

static memory_graph complete(rondo__cu_graph graph) {
    memory_graph made = {graph, instantiate(graph), NULL};
    made.node = graph != NULL ? node_at(graph, 0) : NULL;
    return made;
}

static memory_graph make_fill(rondo__cu_fill_node params) {
    rondo__cu_graph_node node = NULL;
    const rondo__cu_graph graph = new_graph();
    (void)must(d.cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, w.context), "add a fill");
    return complete(graph);
}

static rondo__cu_result patch_fill(const memory_graph *made, rondo__cu_fill_node params) {
    return d.cuGraphExecMemsetNodeSetParams(made->exec, made->node, &params, w.context);
}

static void say_filled(rondo__cu_fill_node params) {
    const memory_graph made = make_fill(params);
    launch(made.exec);
    say("%08x", read_word(0));
}

static void ask_uncut_byte(void) {
    say_filled(describe_fill(0, 0x1234567c, 1, 4));
}

static void ask_uncut_half(void) {
    say_filled(describe_fill(0, 0x00030200, 2, 2));
}

static void ask_uncut_patch(void) {
    const memory_graph made = make_fill(describe_fill(0, 5, 1, 4));
    say("%s", name_of(patch_fill(&made, describe_fill(0, 0x1234567c, 1, 4))));
    launch(made.exec);
    say("%08x", read_word(0));
    say("%s", name_of(patch_fill(&made, describe_fill(0, 0x00030200, 2, 2))));
    launch(made.exec);
    say("%08x", read_word(0));
}

static void ask_captured_fill(void) {
    rondo__cu_fill_node params;
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(d.cuMemsetD8Async(word_at(0), 0x7c, 4, w.stream));
    const memory_graph made = complete(end());
    MUST(d.cuGraphMemsetNodeGetParams(made.node, &params));
    launch(made.exec);
    say("value %x, size %u, width %zu, height %zu; %08x", params.value, params.element_bytes,
        params.width, params.height, read_word(0));
}

static void ask_fill_patched(void) {
    const memory_graph made = make_fill(describe_fill(0, 5, 4, 8));
    say("%s", name_of(patch_fill(&made, describe_fill(1, 0x09, 1, 2))));
    launch(made.exec);
    say("%x %x", read_word(0), read_word(1));
}

static void ask_fill_width_zero(void) {
    const memory_graph made = make_fill(describe_fill(0, 5, 4, 8));
    say("%s", name_of(patch_fill(&made, describe_fill(0, 5, 4, 0))));
}

static void ask_fill_element(void) {
    const memory_graph made = make_fill(describe_fill(0, 5, 4, 8));
    say("%s", name_of(patch_fill(&made, describe_fill(0, 5, 3, 8))));
}

static rondo__cu_address get_gone(void) {
    rondo__cu_address gone = 0;
    if (must(d.cuMemAlloc(&gone, (size_t)4 << 20), "take memory")) {
        (void)must(d.cuMemFree(gone), "free memory");
    }
    return gone;
}

static void ask_fill_gone(void) {
    const memory_graph made = make_fill(describe_fill(0, 5, 4, 8));
    rondo__cu_fill_node params = describe_fill(0, 6, 4, 8);
    params.destination = get_gone();
    say("%s", name_of(patch_fill(&made, params)));
    launch(made.exec);
    say("%u", read_word(0));
}

static rondo__cu_fill_node describe_rows(void) {
    rondo__cu_fill_node params = describe_fill(0, 3, 1, 16);
    params.pitch_bytes = PITCH_BYTES;
    params.height = ROWS;
    return params;
}

static void ask_rows_value(void) {
    const memory_graph made = make_fill(describe_rows());
    rondo__cu_fill_node params = describe_rows();
    params.value = 4;
    say("%s", name_of(patch_fill(&made, params)));
    launch(made.exec);
    say("%x", read_word((ROWS - 1) * PITCH_BYTES / 4));
}

static void ask_rows_destination(void) {
    const memory_graph made = make_fill(describe_rows());
    rondo__cu_fill_node params = describe_rows();
    params.destination = word_at(256);
    say("%s", name_of(patch_fill(&made, params)));
    launch(made.exec);
    say("%x", read_word(256 + (ROWS - 1) * PITCH_BYTES / 4));
}

static void ask_rows_shape(void) {
    const memory_graph made = make_fill(describe_rows());
    rondo__cu_fill_node params = describe_rows();
    params.height = ROWS - 1;
    say("height %s", name_of(patch_fill(&made, params)));
    params = describe_rows();
    params.width = 12;
    say("width %s", name_of(patch_fill(&made, params)));
    params = describe_rows();
    params.pitch_bytes = 2 * PITCH_BYTES;
    say("pitch %s", name_of(patch_fill(&made, params)));
    params = describe_rows();
    params.element_bytes = 2;
    params.width = 8;
    say("element %s", name_of(patch_fill(&made, params)));
}

static void ask_rows_update(void) {
    const memory_graph made = make_fill(describe_rows());
    rondo__cu_fill_node params = describe_rows();
    params.height = ROWS - 1;
    say_update(made.exec, make_fill(params).graph);
}

// ---- copies -----------------------------------------------------------------------------------

static memory_graph record_copy(rondo__cu_result code) {
    (void)must(code, "copy");
    return complete(end());
}

static rondo__cu_copy_node read_copy(const memory_graph *made) {
    rondo__cu_copy_node params;
    memset(&params, 0, sizeof params);
    (void)must(d.cuGraphMemcpyNodeGetParams(made->node, &params), "params");
    return params;
}

static rondo__cu_result patch_copy(const memory_graph *made, const rondo__cu_copy_node *params) {
    return d.cuGraphExecMemcpyNodeSetParams(made->exec, made->node, params, w.context);
}

static void say_types(const memory_graph *made) {
    const rondo__cu_copy_node params = read_copy(made);
    say("%d to %d", params.source.memory_type, params.destination.memory_type);
}

static void ask_copy_types(void) {
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    memory_graph made = record_copy(d.cuMemcpyHtoDAsync(word_at(0), w.pinned, 4, w.stream));
    say_types(&made);
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    made = record_copy(d.cuMemcpyDtoHAsync(w.pinned, word_at(0), 4, w.stream));
    say_types(&made);
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    made = record_copy(d.cuMemcpyDtoDAsync(word_at(4), word_at(0), 4, w.stream));
    say_types(&made);
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    made = record_copy(d.cuMemcpyAsync(word_at(4), word_at(0), 4, w.stream));
    say_types(&made);
}

static void ask_copy_gone(void) {
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    const memory_graph made = record_copy(d.cuMemcpyHtoDAsync(word_at(0), w.pinned, 4, w.stream));
    rondo__cu_copy_node params = read_copy(&made);
    params.destination.device = get_gone();
    say("%s", name_of(patch_copy(&made, &params)));
    launch(made.exec);
    say("%u", read_word(0));
}

static void ask_copy_patched(void) {
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    const memory_graph made = record_copy(d.cuMemcpyDtoDAsync(word_at(4), word_at(0), 8, w.stream));
    rondo__cu_copy_node params = read_copy(&made);
    params.destination.device = word_at(8);
    params.width_bytes = 4;
    write_word(0, 33);
    say("%s", name_of(patch_copy(&made, &params)));
    launch(made.exec);
    say("%u %u %u", read_word(4), read_word(8), read_word(9));
}

static void ask_copy_pageable(void) {
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    const memory_graph made = record_copy(d.cuMemcpyHtoDAsync(word_at(0), w.pinned, 4, w.stream));
    rondo__cu_copy_node params = read_copy(&made);
    uint32_t *pageable = malloc(64);
    if (pageable == NULL) {
        return;
    }
    pageable[0] = 99;
    params.source.host = pageable;
    say("%s", name_of(patch_copy(&made, &params)));
    pageable[0] = 100;
    launch(made.exec);
    say("%u", read_word(0));
    free(pageable);
}

static void ask_copy_read_anew(void) {
    uint32_t *pageable = malloc(64);
    if (pageable == NULL) {
        return;
    }
    pageable[0] = 99;
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    const memory_graph made = record_copy(d.cuMemcpyHtoDAsync(word_at(0), pageable, 4, w.stream));
    pageable[0] = 100;
    launch(made.exec);
    say("%u", read_word(0));
    pageable[0] = 101;
    launch(made.exec);
    say("%u", read_word(0));
    free(pageable);
}

static void ask_copy_turned(void) {
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    const memory_graph made = record_copy(d.cuMemcpyHtoDAsync(word_at(0), w.pinned, 4, w.stream));
    rondo__cu_copy_node params = read_copy(&made);
    params.source.memory_type = RONDO__CU_MEMORY_TYPE_DEVICE;
    params.source.device = word_at(4);
    params.source.host = NULL;
    say("%s", name_of(patch_copy(&made, &params)));
}

static void ask_update_pageable(void) {
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    const memory_graph made = record_copy(d.cuMemcpyHtoDAsync(word_at(0), w.pinned, 4, w.stream));
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(d.cuMemcpyHtoDAsync(word_at(0), pageable_text, 4, w.stream));
    say_update(made.exec, end());
}

static rondo__cu_copy_node describe_copy_rows(size_t from) {
    rondo__cu_copy_node params;
    memset(&params, 0, sizeof params);
    params.source = (rondo__cu_copy_end){.memory_type = RONDO__CU_MEMORY_TYPE_DEVICE,
                                         .device = word_at(from),
                                         .pitch_bytes = PITCH_BYTES};
    params.destination = (rondo__cu_copy_end){.memory_type = RONDO__CU_MEMORY_TYPE_DEVICE,
                                              .device = word_at(512),
                                              .pitch_bytes = PITCH_BYTES};
    params.width_bytes = 16;
    params.height = ROWS;
    params.depth = 1;
    return params;
}

static memory_graph record_copy_rows(size_t from) {
    const rondo__cu_copy_node params = describe_copy_rows(from);
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    return record_copy(d.cuMemcpy3DAsync(&params, w.stream));
}

static void ask_copy_rows(void) {
    const memory_graph made = record_copy_rows(0);
    rondo__cu_copy_node params = read_copy(&made);
    params.source.device = word_at(256);
    say("%s", name_of(patch_copy(&made, &params)));
    say_update(made.exec, record_copy_rows(256).graph);
}

// ---- nodes that are switched off --------------------------------------------------------------

static void say_switched(const memory_graph *made, size_t index) {
    say("%s", name_of(d.cuGraphNodeSetEnabled(made->exec, node_at(made->graph, index), 0)));
}

static void ask_switches(void) {
    const rondo__cu_event event = new_event(0);
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    MUST(d.cuMemcpyDtoDAsync(word_at(4), word_at(0), 8, w.stream));
    MUST(d.cuMemsetD32Async(word_at(8), 3, 4, w.stream));
    MUST(d.cuLaunchHostFunc(w.stream, do_nothing, NULL));
    MUST(d.cuEventRecordWithFlags(event, w.stream, RONDO__CU_EVENT_RECORD_EXTERNAL));
    const memory_graph made = complete(end());
    say_switched(&made, 0);
    say_switched(&made, 1);
    say_switched(&made, 2);
    say_switched(&made, 3);
    say_switched(&made, 4);
}

static void ask_switch_rows(void) {
    memory_graph made = make_fill(describe_rows());
    say_switched(&made, 0);
    made = record_copy_rows(0);
    say_switched(&made, 0);
}

static void ask_switch_after_update(void) {
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    const memory_graph made = complete(end());
    unsigned is_on = 7;
    MUST(d.cuGraphNodeSetEnabled(made.exec, made.node, 0));
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(work_on(w.stream, 0, 0, 10, 20));
    say_update(made.exec, end());
    launch(made.exec);
    MUST(d.cuGraphNodeGetEnabled(made.exec, made.node, &is_on));
    say("%u, %s", read_word(0), is_on != 0 ? "on" : "off");
}

// word 0 = 1: a slow * 2 + 1, work elsewhere that is off, * 3: 9, unless that came too early.
static memory_graph record_switched(bool is_fill) {
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    (void)must(work_on(w.stream, 0, 20000, 2, 1), "launch");
    (void)must(
        is_fill ? d.cuMemsetD32Async(word_at(8), 3, 4, w.stream) : work_on(w.stream, 8, 0, 3, 0),
        "what is switched off");
    (void)must(work_on(w.stream, 0, 0, 3, 0), "launch");
    const memory_graph made = complete(end());
    (void)must(d.cuGraphNodeSetEnabled(made.exec, node_at(made.graph, 1), 0), "switch");
    return made;
}

// Until the slow kernels of such launches have run, which nothing else waits for.
static void outlast_slow_kernels(void) {
    MUST(work_on(w.stream, 1, 200000, 1, 0));
    MUST(d.cuStreamSynchronize(w.stream));
}

static void say_order(bool is_fill) {
    const memory_graph made = record_switched(is_fill);
    bool is_lost = false;
    for (int i = 0; i < 5; ++i) {
        write_word(0, 1);
        launch(made.exec);
        is_lost = is_lost || read_word(0) != 9;
    }
    outlast_slow_kernels();
    say("order %s", is_lost ? "lost" : "kept");
}

static void ask_switched_fill(void) {
    say_order(true);
}

static void ask_switched_kernel(void) {
    say_order(false);
}

static void ask_who_waits(void) {
    const memory_graph made = record_switched(true);
    launch(made.exec);
    MUST(d.cuCtxSynchronize());
    const uint32_t waited = read_word(0);
    outlast_slow_kernels();
    say("%s", waited == read_word(0) ? "waited for" : "runs on behind it");
}

// ---- memory of graphs -------------------------------------------------------------------------

static memory_graph record_memory(bool frees, uint32_t added) {
    rondo__cu_address address = 0;
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    (void)must(d.cuMemAllocAsync(&address, 4096, w.stream), "cuMemAllocAsync");
    (void)must(d.cuMemcpyDtoDAsync(address, word_at(0), 4, w.stream), "copy");
    (void)must(d.cuMemcpyDtoDAsync(word_at(1), address, 4, w.stream), "copy");
    (void)must(work_on(w.stream, 1, 0, 1, added), "launch");
    if (frees) {
        (void)must(d.cuMemFreeAsync(address, w.stream), "cuMemFreeAsync");
    }
    const rondo__cu_graph graph = end();
    return (memory_graph){graph, NULL, graph != NULL ? node_at(graph, 0) : NULL};
}

static void ask_memory_nodes(void) {
    const memory_graph made = record_memory(true, 5);
    int first = 0;
    int last = 0;
    MUST(d.cuGraphNodeGetType(node_at(made.graph, 0), &first));
    MUST(d.cuGraphNodeGetType(node_at(made.graph, 4), &last));
    launch(instantiate(made.graph));
    say("types %d and %d; %u", first, last, read_word(1));
}

static void ask_memory_twice(void) {
    const memory_graph made = record_memory(false, 5);
    rondo__cu_graph_exec exec = NULL;
    MUST(try_instantiate(made.graph, 0, NULL, &exec));
    say("%s", name_of(d.cuGraphLaunch(exec, w.stream)));
    say("%s", name_of(d.cuGraphLaunch(exec, w.stream)));
    MUST(d.cuStreamSynchronize(w.stream));
}

static void ask_memory_auto_free(void) {
    const memory_graph made = record_memory(false, 5);
    rondo__cu_graph_exec exec = NULL;
    MUST(try_instantiate(made.graph, RONDO__CU_INSTANTIATE_AUTO_FREE_ON_LAUNCH, NULL, &exec));
    say("%s", name_of(d.cuGraphLaunch(exec, w.stream)));
    say("%s", name_of(d.cuGraphLaunch(exec, w.stream)));
    MUST(d.cuStreamSynchronize(w.stream));
}

static void ask_memory_second(void) {
    const memory_graph made = record_memory(true, 5);
    say("%s", name_of(try_instantiate(made.graph, 0, NULL, NULL)));
    say("%s", name_of(try_instantiate(made.graph, 0, NULL, NULL)));
}

static void ask_memory_copies(void) {
    const memory_graph made = record_memory(true, 5);
    rondo__cu_graph clone = NULL;
    rondo__cu_graph_node child = NULL;
    say("clone %s", name_of(d.cuGraphClone(&clone, made.graph)));
    keep_graph(clone);
    say("child %s", name_of(d.cuGraphAddChildGraphNode(&child, new_graph(), NULL, 0, made.graph)));
}

static void ask_memory_update(void) {
    const rondo__cu_graph_exec exec = instantiate(record_memory(true, 5).graph);
    launch(exec);
    say_update(exec, record_memory(true, 6).graph);
    launch(exec);
    say("%u", read_word(1));
}

static void ask_memory_address(void) {
    rondo__cu_address address = 0;
    unsigned type = 0;
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(d.cuMemAllocAsync(&address, 4096, w.stream));
    say("%s",
        name_of(d.cuPointerGetAttribute(&type, RONDO__CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)));
    MUST(d.cuMemcpyDtoDAsync(word_at(1), address, 4, w.stream));
    MUST(d.cuMemFreeAsync(address, w.stream));
    const memory_graph made = complete(end());
    launch(made.exec);
    say("launched %s",
        name_of(d.cuPointerGetAttribute(&type, RONDO__CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)));
}

static void ask_memory_foreign_free(void) {
    rondo__cu_address address = 0;
    MUST(d.cuMemAllocAsync(&address, 4096, w.stream));
    MUST(d.cuStreamSynchronize(w.stream));
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    say("%s", name_of(d.cuMemFreeAsync(address, w.stream)));
    say("%s", state_of(w.stream));
    const rondo__cu_graph graph = end();
    say("%zu nodes", graph != NULL ? count_nodes(graph) : 0);
    MUST(d.cuMemFreeAsync(address, w.stream));
    MUST(d.cuStreamSynchronize(w.stream));
}

// ---- executables ------------------------------------------------------------------------------

static void ask_flags(void) {
    uint64_t flags = 77;
    rondo__cu_graph_exec exec = NULL;
    const memory_graph made = make_fill(describe_fill(0, 5, 4, 8));
    say("8 %s", name_of(try_instantiate(made.graph, 8, NULL, &exec)));
    MUST(d.cuGraphExecGetFlags(exec, &flags));
    say("reads %u", (unsigned)flags);
    say("9 %s", name_of(try_instantiate(made.graph, 9, NULL, &exec)));
    MUST(d.cuGraphExecGetFlags(exec, &flags));
    say("reads %u", (unsigned)flags);
}

static void ask_graph_gone(void) {
    rondo__cu_graph graph = NULL;
    MUST(d.cuStreamBeginCapture(w.stream, RONDO__CU_CAPTURE_MODE_RELAXED));
    MUST(work_on(w.stream, 0, 0, 2, 1));
    MUST(d.cuStreamEndCapture(w.stream, &graph));
    const rondo__cu_graph_exec exec = instantiate(graph);
    MUST(d.cuGraphDestroy(graph));
    launch(exec);
    say("%u", read_word(0));
}

const truth_question truth_memory[] = {
    {"2011a", "a fill node of bytes with the value 1234567c", ask_uncut_byte, "7e7e7e7c", NULL},
    {"2011b", "a fill node of two bytes with the value 00030200", ask_uncut_half, "02030200", NULL},
    {"2011c", "the same two as patches", ask_uncut_patch, "ok; 7e7e7e7c; ok; 02030200", NULL},
    {"m1", "a captured fill of bytes", ask_captured_fill,
     "value 7c, size 1, width 4, height 1; 7c7c7c7c", NULL},
    {"m8", "a fill's place, value, size and width are patched", ask_fill_patched, "ok; 1 909",
     NULL},
    {"m9", "a fill is patched to memory that was freed", ask_fill_gone, "INVALID_VALUE; 5", NULL},
    {"203", "a fill is patched to a width of 0", ask_fill_width_zero, "INVALID_VALUE", NULL},
    {"m2", "a fill is patched to elements of 3 bytes", ask_fill_element, "INVALID_VALUE", NULL},
    {"205", "the value of a fill of 4 rows is patched", ask_rows_value, "ok; 4040404", NULL},
    {"2004a", "the place of a fill of 4 rows is patched", ask_rows_destination, "ok; 3030303",
     NULL},
    {"2004b", "the shape of a fill of 4 rows is patched", ask_rows_shape,
     "height INVALID_VALUE; width INVALID_VALUE; pitch INVALID_VALUE; element INVALID_VALUE", NULL},
    {"205b", "update of a fill of 4 rows to 3", ask_rows_update,
     "GRAPH_EXEC_UPDATE_FAILURE/ParametersChanged", NULL},
    {"2003", "what captured copies say of their ends (1 host, 2 device, 4 unified)", ask_copy_types,
     "1 to 2; 2 to 1; 2 to 2; 4 to 4", NULL},
    {"m3", "a copy's destination and width are patched", ask_copy_patched, "ok; 1 33 1", NULL},
    {"m10", "a copy's destination is patched to memory that was freed", ask_copy_gone,
     "INVALID_VALUE; 7", NULL},
    {"208", "a copy's source is patched from pinned to pageable memory", ask_copy_pageable,
     "ok; 100", NULL},
    {"210", "a replay reads its pageable source anew", ask_copy_read_anew, "100; 101", NULL},
    {"207", "a copy is patched from host-to-device to device-to-device", ask_copy_turned,
     "INVALID_VALUE", NULL},
    {"223", "update from a pinned to a pageable source", ask_update_pageable, "ok/Success", NULL},
    {"209", "another source of a copy of 4 rows, by patch and by update", ask_copy_rows,
     "INVALID_VALUE; GRAPH_EXEC_UPDATE_FAILURE/ParametersChanged", NULL},
    {"213", "switching off kernel, copy, fill, host function, event", ask_switches,
     "ok; ok; ok; INVALID_VALUE; INVALID_VALUE", NULL},
    {"2004c", "switching off a fill and a copy of 4 rows", ask_switch_rows, "ok; ok", NULL},
    {"216", "update of an executable with a kernel that is off", ask_switch_after_update,
     "ok/Success; 1, off", NULL},
    {"229", "a kernel behind a fill that is off, behind a slow one", ask_switched_fill,
     "order lost", NULL},
    {"229b", "its slow one, when the context has been waited for", ask_who_waits,
     "runs on behind it", "the fake driver's work is done when a launch returns"},
    {"229c", "a kernel behind a kernel that is off, behind a slow one", ask_switched_kernel,
     "order kept", NULL},
    {"m5", "memory taken and freed in a capture", ask_memory_nodes, "types 10 and 11; 6", NULL},
    {"401", "two launches of a graph that frees nothing", ask_memory_twice, "ok; INVALID_VALUE",
     NULL},
    {"m6", "the same, instantiated to free at each launch", ask_memory_auto_free, "ok; ok", NULL},
    {"403", "executables of a graph with memory nodes", ask_memory_second, "ok; NOT_SUPPORTED",
     NULL},
    {"406", "copies of a graph with memory nodes", ask_memory_copies,
     "clone NOT_SUPPORTED; child NOT_SUPPORTED", NULL},
    {"408", "update of a graph with memory nodes", ask_memory_update, "ok/Success; 7", NULL},
    {"427", "the type of a node's memory, before and after a launch", ask_memory_address,
     "INVALID_VALUE; launched INVALID_VALUE", NULL},
    {"414", "a capture frees memory from before it", ask_memory_foreign_free,
     "INVALID_VALUE; capture lives; 0 nodes", NULL},
    {"814", "instantiation with node priorities (8), and also to free (9)", ask_flags,
     "8 ok; reads 0; 9 ok; reads 1", NULL},
    {"m7", "an executable whose graph is destroyed", ask_graph_gone, "3", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
