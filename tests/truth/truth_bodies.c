// Conditional nodes and their bodies.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "truth.h"

enum { IF = RONDO__CU_CONDITIONAL_IF, WHILE = RONDO__CU_CONDITIONAL_WHILE, MANY = 1024 };

enum { CHOICE = 16 };  // the word that the conditions look at

// A graph with an IF whose body is recorded meanwhile; its end is end_body.
typedef struct conditional {
    rondo__cu_graph graph;
    rondo__cu_graph_node node;
    rondo__cu_graph bodies[2];
    uint64_t handle;
} conditional;

static conditional begin_if(unsigned body_count) {
    conditional c = {.graph = new_graph()};
    c.node = add_condition(c.graph, IF, body_count, CHOICE, &c.handle, c.bodies);
    if (c.node != NULL) {
        (void)must(begin_in(c.bodies[0]), "begin in a body");
    }
    return c;
}

static void end_body(void) {
    rondo__cu_graph same = NULL;
    (void)must(d.cuStreamEndCapture(w.stream, &same), "end of a body");
}

static conditional make_if(uint32_t a) {
    const conditional c = begin_if(1);
    (void)must(work_on(w.stream, 0, 0, a, 1), "launch");
    end_body();
    return c;
}

static void ask_if(void) {
    const rondo__cu_graph_exec exec = instantiate(make_if(2).graph);
    launch(exec);
    say("%u", read_word(0));
    write_word(CHOICE, 0);
    launch(exec);
    say("%u", read_word(0));
}

static void ask_else(void) {
    const conditional c = begin_if(2);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    end_body();
    MUST(begin_in(c.bodies[1]));
    MUST(work_on(w.stream, 0, 0, 10, 0));
    end_body();
    const rondo__cu_graph_exec exec = instantiate(c.graph);
    launch(exec);
    say("%u", read_word(0));
    write_word(CHOICE, 0);
    launch(exec);
    say("%u", read_word(0));
}

static conditional make_while(void) {
    conditional c = {.graph = new_graph()};
    c.node = add_condition(c.graph, WHILE, 1, CHOICE, &c.handle, c.bodies);
    if (c.node != NULL && must(begin_in(c.bodies[0]), "begin in a body")) {
        (void)must(work_on(w.stream, 0, 0, 2, 1), "launch");
        (void)must(work_on(w.stream, CHOICE, 0, 1, UINT32_MAX), "launch");  // - 1
        (void)must(set_condition(w.stream, c.handle, CHOICE), "launch of the condition");
        end_body();
    }
    return c;
}

static void ask_while(void) {
    const rondo__cu_graph_exec exec = instantiate(make_while().graph);
    write_word(CHOICE, 5);
    launch(exec);
    say("%u", read_word(0));
}

static void ask_many_bodies(void) {
    static rondo__cu_graph bodies[MANY];
    const rondo__cu_graph graph = new_graph();
    if (add_condition(graph, RONDO__CU_CONDITIONAL_SWITCH, MANY, CHOICE, NULL, bodies) == NULL) {
        return;
    }
    for (uint32_t i = 0; i < MANY; ++i) {
        MUST(begin_in(bodies[i]));
        MUST(work_on(w.stream, 0, 0, 0, i));
        end_body();
    }
    const rondo__cu_graph_exec exec = instantiate(graph);
    write_word(CHOICE, MANY - 1);
    launch(exec);
    say("%u", read_word(0));
    write_word(CHOICE, MANY);
    write_word(0, 5);
    launch(exec);
    say("past the last %u", read_word(0));
}

// IFs within IFs.
static void ask_depth(void) {
    enum { DEPTH = 64 };
    const rondo__cu_graph graph = new_graph();
    rondo__cu_graph inner = graph;
    for (int level = 0; level < DEPTH; ++level) {
        rondo__cu_graph body = NULL;
        if (add_condition(inner, IF, 1, CHOICE, NULL, &body) == NULL) {
            return;
        }
        inner = body;
    }
    MUST(begin_in(inner));
    MUST(work_on(w.stream, 0, 0, 2, 1));
    end_body();
    launch(instantiate(graph));
    say("%u", read_word(0));
}

// ---- what may not stand in a body -------------------------------------------------------------

static void say_instantiation(rondo__cu_graph graph) {
    say("instantiation %s", name_of(try_instantiate(graph, 0, NULL, NULL)));
}

static void ask_host_function(void) {
    const conditional c = begin_if(1);
    say("%s", name_of(d.cuLaunchHostFunc(w.stream, do_nothing, NULL)));
    end_body();
    say_instantiation(c.graph);
}

static void ask_event(void) {
    const rondo__cu_event event = new_event(0);
    const conditional c = begin_if(1);
    say("%s", name_of(d.cuEventRecordWithFlags(event, w.stream, RONDO__CU_EVENT_RECORD_EXTERNAL)));
    end_body();
    say_instantiation(c.graph);
}

static void ask_event_wait(void) {
    const rondo__cu_event event = new_event(0);
    const conditional c = begin_if(1);
    say("%s", name_of(d.cuStreamWaitEvent(w.stream, event, RONDO__CU_EVENT_WAIT_EXTERNAL)));
    end_body();
    say_instantiation(c.graph);
}

static void ask_memory(void) {
    rondo__cu_address address = 0;
    const conditional c = begin_if(1);
    say("%s", name_of(d.cuMemAllocAsync(&address, 4096, w.stream)));
    say("%s", name_of(d.cuMemFreeAsync(address, w.stream)));
    end_body();
    say_instantiation(c.graph);
}

static void ask_pageable(void) {
    uint32_t *pageable = malloc(64);
    const conditional c = begin_if(1);
    say("%s", name_of(d.cuMemcpyDtoHAsync(pageable, word_at(0), 4, w.stream)));
    end_body();
    say_instantiation(c.graph);
    free(pageable);
}

static void ask_pinned(void) {
    const conditional c = begin_if(1);
    say("%s", name_of(d.cuMemcpyDtoHAsync(w.pinned, word_at(0), 4, w.stream)));
    MUST(d.cuMemsetD32Async(word_at(4), 3, 1, w.stream));
    end_body();
    say_instantiation(c.graph);
}

static void ask_overlap(void) {
    const rondo__cu_launch_attribute overlap = {
        .id = RONDO__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        .value = {.is_allowed = 1}};
    const conditional c = begin_if(1);
    MUST(work_on(w.stream, 4, 0, 2, 1));
    MUST(work_with(w.stream, w.work, overlap, 0, 0, 2, 1));
    end_body();
    say_instantiation(c.graph);
}

static void ask_unused_handle(void) {
    const rondo__cu_graph graph = new_graph();
    uint64_t handle = 0;
    int32_t result = -1;
    MUST(d.cuGraphConditionalHandleCreate(&handle, graph, w.context, 0, 0));
    MUST(begin_in(graph));
    MUST(work_on(w.stream, 0, 0, 2, 1));
    end_body();
    const rondo__cu_result code = try_instantiate(graph, 0, &result, NULL);
    say("%s, result %d", name_of(code), result);
}

// ---- copies, executables, updates and patches -------------------------------------------------

static void ask_copies(void) {
    const conditional c = make_if(2);
    rondo__cu_graph clone = NULL;
    rondo__cu_graph_node child = NULL;
    say("clone %s", name_of(d.cuGraphClone(&clone, c.graph)));
    keep_graph(clone);
    say("child %s", name_of(d.cuGraphAddChildGraphNode(&child, new_graph(), NULL, 0, c.graph)));
}

static void ask_second(void) {
    const conditional c = make_if(2);
    say("%s", name_of(try_instantiate(c.graph, 0, NULL, NULL)));
    say("%s", name_of(try_instantiate(c.graph, 0, NULL, NULL)));
}

static void ask_update(void) {
    const rondo__cu_graph_exec exec = instantiate(make_if(2).graph);
    say_update(exec, make_if(10).graph);
    launch(exec);
    say("%u", read_word(0));
}

static void ask_update_kind(void) {
    say_update(instantiate(make_if(2).graph), make_while().graph);
}

static void ask_patch(void) {
    const conditional c = make_if(2);
    const rondo__cu_graph_exec exec = instantiate(c.graph);
    const rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    const rondo__cu_graph_node node = node_at(c.bodies[0], 0);
    say("%s", name_of(d.cuGraphExecKernelNodeSetParams(exec, node, &params)));
    launch(exec);
    say("%u", read_word(0));
    say("%s", name_of(d.cuGraphNodeSetEnabled(exec, node, 0)));
    write_word(0, 5);
    launch(exec);
    say("%u", read_word(0));
}

static void ask_switch(void) {
    const conditional c = make_if(2);
    const rondo__cu_graph_exec exec = instantiate(c.graph);
    say("%s", name_of(d.cuGraphNodeSetEnabled(exec, c.node, 0)));
}

static void ask_unjoined(void) {
    rondo__cu_graph_node last = NULL;
    rondo__cu_graph_node node = NULL;
    rondo__cu_graph same = NULL;
    const rondo__cu_event event = new_event(RONDO__CU_EVENT_DISABLE_TIMING);
    rondo__cu_node_params params = {.type = RONDO__CU_GRAPH_NODE_CONDITIONAL};
    uint64_t handle = 0;
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    const rondo__cu_graph graph = get_recorded(w.stream, &last);
    MUST(d.cuGraphConditionalHandleCreate(&handle, graph, w.context, 0, 0));
    MUST(set_condition(w.stream, handle, CHOICE));
    MUST(d.cuEventRecord(event, w.stream));
    MUST(d.cuStreamWaitEvent(w.other, event, 0));
    (void)get_recorded(w.other, &last);
    params.value.conditional.handle = handle;
    params.value.conditional.type = IF;
    params.value.conditional.body_count = 1;
    params.value.conditional.context = w.context;
    MUST(d.cuGraphAddNode(&node, graph, &last, NULL, 1, &params));
    MUST(
        d.cuStreamUpdateCaptureDependencies(w.other, &node, 1, RONDO__CU_CAPTURE_SET_DEPENDENCIES));
    say("end %s", name_of(d.cuStreamEndCapture(w.stream, &same)));
    keep_graph(same);
}

const truth_question truth_bodies[] = {
    {"b1", "an IF: taken, and not taken", ask_if, "3; 3", NULL},
    {"618", "an IF with two bodies: the first, the second", ask_else, "3; 30", NULL},
    {"b2", "a WHILE that turns 5 times", ask_while, "63", NULL},
    {"637", "a SWITCH with 1024 bodies: the last, and past it", ask_many_bodies,
     "1023; past the last 5", NULL},
    {"606", "64 IFs within each other", ask_depth, "3", NULL},
    {"602", "a host function in a body", ask_host_function, "ok; instantiation INVALID_VALUE",
     NULL},
    {"603", "an external record in a body", ask_event, "ok; instantiation INVALID_VALUE", NULL},
    {"604", "an external wait in a body", ask_event_wait, "ok; instantiation INVALID_VALUE", NULL},
    {"624", "memory taken and freed in a body", ask_memory, "ok; ok; instantiation INVALID_VALUE",
     NULL},
    {"601", "a copy to pageable memory in a body", ask_pageable, "ok; instantiation INVALID_VALUE",
     NULL},
    {"b3", "a copy to pinned memory and a fill in a body", ask_pinned, "ok; instantiation ok",
     NULL},
    {"625", "kernels that overlap in a body", ask_overlap, "instantiation ok", NULL},
    {"608", "a handle that no node takes", ask_unused_handle, "INVALID_VALUE, result 5", NULL},
    {"610", "copies of a graph with an IF", ask_copies, "clone NOT_SUPPORTED; child NOT_SUPPORTED",
     NULL},
    {"628", "executables of a graph with an IF", ask_second, "ok; NOT_SUPPORTED", NULL},
    {"612", "update of a kernel in a body", ask_update, "ok/Success; 11", NULL},
    {"614", "update from an IF to a WHILE", ask_update_kind,
     "GRAPH_EXEC_UPDATE_FAILURE/NotSupported", NULL},
    {"615", "patch and switch of a kernel in a body", ask_patch, "ok; 30; ok; 5", NULL},
    {"b4", "an IF is switched off", ask_switch, "INVALID_VALUE", NULL},
    {"2006b", "the end of a capture with a fork that ends in an IF", ask_unjoined, "end ok", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
