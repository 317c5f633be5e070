// Graphs by hand: nodes behind dependencies that were set, launch attributes, and clones.
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <string.h>

#include "truth.h"

// ---- nodes behind dependencies that were set --------------------------------------------------

static bool stand_behind(rondo__cu_graph_node *nodes, size_t count) {
    return must(d.cuStreamUpdateCaptureDependencies(w.stream, nodes, count,
                                                    RONDO__CU_CAPTURE_SET_DEPENDENCIES),
                "cuStreamUpdateCaptureDependencies");
}

static void say_edges(rondo__cu_graph graph) {
    rondo__cu_graph_node from[8], to[8];
    rondo__cu_edge_data data[8];
    size_t count = 8, programmatic = 0;
    MUST(d.cuGraphGetEdges_v2(graph, from, to, data, &count));
    for (size_t i = 0; i < count; ++i) {
        programmatic += data[i].type == 1 ? 1 : 0;
    }
    say("%zu edges, %zu programmatic", count, programmatic);
}

// Two kernels beside each other, and what comes behind the first, or behind both.
static void ask_set(const rondo__cu_launch_attribute *attribute, size_t behind) {
    static const rondo__cu_launch_attribute none = {.id = 0};
    rondo__cu_graph_node nodes[2];
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    for (size_t i = 0; i < 2; ++i) {
        if (!stand_behind(NULL, 0)) {
            return;
        }
        MUST(work_on(w.stream, i, 0, 2, 1));
        (void)get_recorded(w.stream, &nodes[i]);
    }
    if (!stand_behind(nodes, behind)) {
        return;
    }
    MUST(work_with(w.stream, w.work, attribute != NULL ? *attribute : none, 2, 0, 2, 1));
    (void)get_recorded(w.stream, &nodes[0]);
    if (behind == 1) {
        // The end comes behind all of them.
        rondo__cu_graph_node all[] = {nodes[0], nodes[1]};
        (void)stand_behind(all, 2);
    }
    const rondo__cu_graph graph = end();
    say_edges(graph);
    launch(instantiate(graph));
    say("%u %u %u", read_word(0), read_word(1), read_word(2));
}

static const rondo__cu_launch_attribute overlap = {
    .id = RONDO__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value = {.is_allowed = 1}};

static void ask_set_full(void) {
    ask_set(NULL, 2);
}

static void ask_set_overlap(void) {
    ask_set(&overlap, 1);
}

static void ask_set_overlap_both(void) {
    ask_set(&overlap, 2);
}

static void ask_set_events(void) {
    const rondo__cu_event event = new_event(RONDO__CU_EVENT_DISABLE_TIMING);
    const rondo__cu_event other = new_event(RONDO__CU_EVENT_DISABLE_TIMING);
    rondo__cu_graph_node kernel = NULL, last = NULL;
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    (void)get_recorded(w.stream, &kernel);
    if (!stand_behind(NULL, 0)) {
        return;
    }
    MUST(d.cuStreamWaitEvent(w.stream, event, RONDO__CU_EVENT_WAIT_EXTERNAL));
    (void)get_recorded(w.stream, &last);
    rondo__cu_graph_node both[] = {kernel, last};
    if (!stand_behind(both, 2)) {
        return;
    }
    MUST(d.cuEventRecordWithFlags(other, w.stream, RONDO__CU_EVENT_RECORD_EXTERNAL));
    const rondo__cu_graph graph = end();
    say("%zu nodes", count_nodes(graph));
    say_edges(graph);
    launch(instantiate(graph));
    say("%u; then %s", read_word(0), name_of(d.cuEventQuery(other)));
}

// ---- launch attributes ------------------------------------------------------------------------

static void ask_attribute(rondo__cu_function function, rondo__cu_launch_attribute attribute) {
    rondo__cu_launch_attribute_value value;
    memset(&value, 0, sizeof value);
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    const rondo__cu_result code = work_with(w.stream, function, attribute, 0, 0, 2, 1);
    say("%s", name_of(code));
    if (code != RONDO__CU_SUCCESS) {
        say("%s", state_of(w.stream));
        return;
    }
    const rondo__cu_graph graph = end();
    MUST(d.cuGraphKernelNodeGetAttribute(node_at(graph, 0), attribute.id, &value));
    say("%d", value.is_allowed);
    launch(instantiate(graph));
    say("%u", read_word(0));
}

static void ask_cooperative(void) {
    ask_attribute(w.work, (rondo__cu_launch_attribute){.id = RONDO__CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                       .value = {.is_cooperative = 1}});
}

static void ask_priority(int32_t level) {
    ask_attribute(w.work, (rondo__cu_launch_attribute){.id = RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                                       .value = {.priority = level}});
}

static void ask_priority_high(void) {
    ask_priority(-2);
}

static void ask_priority_beyond(void) {
    ask_priority(-100);
}

static void ask_priority_low(void) {
    ask_priority(1);
}

static void ask_eager_attributes(void) {
    say("%s",
        name_of(work_with(w.stream, w.work,
                          (rondo__cu_launch_attribute){.id = RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                                       .value = {.priority = -2}},
                          0, 0, 2, 1)));
    say("%s",
        name_of(work_with(w.stream, w.work,
                          (rondo__cu_launch_attribute){.id = RONDO__CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                       .value = {.is_cooperative = 1}},
                          0, 0, 2, 1)));
    say("%u", read_word(0));
}

// Two attributes at once.
static void ask_pair(rondo__cu_function function, const rondo__cu_launch_attribute *other) {
    rondo__cu_launch_attribute attributes[] = {
        {.id = RONDO__CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.is_cooperative = 1}}, *other};
    rondo__cu_kernel_node params = describe_work(0, 0, 2, 1);
    const rondo__cu_launch_config config = {.grid = {2, 1, 1},
                                            .block = {1, 1, 1},
                                            .stream = w.stream,
                                            .attributes = attributes,
                                            .attribute_count = 2};
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    const rondo__cu_result code = d.cuLaunchKernelEx(&config, function, params.parameters, NULL);
    say("%s, %s", name_of(code), state_of(w.stream));
}

static void ask_cooperative_clusters(void) {
    if (w.cluster == NULL) {
        say("this GPU has no clusters");
        return;
    }
    ask_pair(w.cluster,
             &(rondo__cu_launch_attribute){.id = RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                           .value = {.cluster = {2, 1, 1}}});
}

static void ask_cooperative_priority(void) {
    ask_pair(w.work, &(rondo__cu_launch_attribute){.id = RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                                   .value = {.priority = 1}});
}

static void ask_cluster_grid(void) {
    if (w.cluster == NULL) {
        say("this GPU has no clusters");
        return;
    }
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(work_with(w.stream, w.cluster,
                   (rondo__cu_launch_attribute){.id = RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                                .value = {.cluster = {2, 1, 1}}},
                   0, 0, 0, 0));
    const rondo__cu_graph graph = end();
    const rondo__cu_graph_exec exec = instantiate(graph);
    rondo__cu_kernel_node params = describe_work(0, 0, 0, 0);
    params.function = w.cluster;
    params.grid[0] = 3;
    say("%s", name_of(d.cuGraphExecKernelNodeSetParams(exec, node_at(graph, 0), &params)));
    params.grid[0] = 4;
    say("%s", name_of(d.cuGraphExecKernelNodeSetParams(exec, node_at(graph, 0), &params)));
    launch(exec);
    say("cluster %u", read_word(0));
}

static void ask_cooperative_body(void) {
    rondo__cu_graph bodies[1];
    uint64_t handle = 0;
    int32_t result = 0;
    const rondo__cu_graph graph = new_graph();
    write_word(8, 1);
    (void)add_condition(graph, 0, 1, 8, &handle, bodies);
    MUST(begin_in(bodies[0]));
    say("%s",
        name_of(work_with(w.stream, w.work,
                          (rondo__cu_launch_attribute){.id = RONDO__CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                       .value = {.is_cooperative = 1}},
                          0, 0, 2, 1)));
    rondo__cu_graph same = NULL;
    MUST(d.cuStreamEndCapture(w.stream, &same));
    say("instantiation %s", name_of(try_instantiate(graph, 0, &result, NULL)));
}

// ---- clones -----------------------------------------------------------------------------------

static rondo__cu_graph clone_of(rondo__cu_graph graph) {
    rondo__cu_graph clone = NULL;
    (void)must(d.cuGraphClone(&clone, graph), "cuGraphClone");
    return clone;
}

// Forks and joins, so that nodes could be listed in more than one order.
static rondo__cu_graph record_fork(void) {
    const rondo__cu_event event = new_event(RONDO__CU_EVENT_DISABLE_TIMING);
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    (void)must(work_on(w.stream, 0, 0, 2, 1), "launch");
    (void)must(d.cuEventRecord(event, w.stream), "record");
    (void)must(d.cuStreamWaitEvent(w.other, event, 0), "wait");
    (void)must(work_on(w.other, 1, 0, 2, 1), "launch");
    (void)must(work_on(w.stream, 2, 0, 2, 1), "launch");
    (void)must(work_on(w.other, 1, 0, 3, 0), "launch");
    (void)must(d.cuEventRecord(event, w.other), "record");
    (void)must(d.cuStreamWaitEvent(w.stream, event, 0), "wait");
    (void)must(work_on(w.stream, 3, 0, 2, 1), "launch");
    return end();
}

static void ask_clone_order(void) {
    const rondo__cu_graph graph = record_fork();
    const rondo__cu_graph clone = clone_of(graph);
    const size_t count = count_nodes(graph);
    size_t same = 0;
    keep_graph(clone);
    for (size_t i = 0; i < count; ++i) {
        rondo__cu_graph_node found = NULL;
        MUST(d.cuGraphNodeFindInClone(&found, node_at(graph, i), clone));
        same += found == node_at(clone, i) ? 1 : 0;
    }
    say("%zu nodes, %zu in the same place", count, same);
}

static void ask_clone_runs(void) {
    const rondo__cu_graph graph = record_fork();
    const rondo__cu_graph clone = clone_of(graph);
    keep_graph(clone);
    const rondo__cu_graph_exec one = instantiate(graph), other = instantiate(clone);
    const rondo__cu_kernel_node params = describe_work(0, 0, 10, 0);
    rondo__cu_graph_node first = NULL;
    MUST(d.cuGraphNodeFindInClone(&first, node_at(graph, 0), clone));
    say("patch %s", name_of(d.cuGraphExecKernelNodeSetParams(other, first, &params)));
    launch(one);
    say("%u", read_word(0));
    launch(other);
    say("%u", read_word(0));
}

static int g_freed;

static void count_freed(void *data) {
    (void)data;
    ++g_freed;
}

static void ask_clone_objects(void) {
    rondo__cu_user_object object = NULL;
    rondo__cu_graph graph = NULL;
    rondo__cu_graph_node last = NULL;
    g_freed = 0;
    MUST(d.cuUserObjectCreate(&object, &g_freed, count_freed, 1,
                              RONDO__CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(work_on(w.stream, 0, 0, 2, 1));
    MUST(d.cuGraphRetainUserObject(get_recorded(w.stream, &last), object, 1,
                                   RONDO__CU_GRAPH_USER_OBJECT_MOVE));
    MUST(d.cuStreamEndCapture(w.stream, &graph));
    const rondo__cu_graph clone = clone_of(graph);
    MUST(d.cuGraphDestroy(graph));
    MUST(d.cuCtxSynchronize());
    say("kept: %s", g_freed == 0 ? "yes" : "no");
    MUST(d.cuGraphDestroy(clone));
}

const truth_question truth_made[] = {
    {"h1", "a kernel behind two that were set", ask_set_full, "2 edges, 0 programmatic; 3 3 3",
     NULL},
    {"h2", "a kernel that may overlap, behind one that was set", ask_set_overlap,
     "1 edges, 1 programmatic; 3 3 3", NULL},
    {"h3", "a kernel that may overlap, behind two that were set", ask_set_overlap_both,
     "2 edges, 2 programmatic; 3 3 3", NULL},
    {"h4", "an external wait and an external record behind nodes that were set", ask_set_events,
     "3 nodes; 2 edges, 0 programmatic; 3; then ok", NULL},
    {"h5", "a cooperative kernel is recorded, read and run", ask_cooperative, "ok; 1; 3", NULL},
    {"h6", "a kernel of priority -2 is recorded, read and run", ask_priority_high, "ok; -2; 3",
     NULL},
    {"h7", "a kernel of priority -100", ask_priority_beyond, "ok; -5; 3", NULL},
    {"h8", "a kernel of priority 1", ask_priority_low, "ok; 0; 3", NULL},
    {"h9", "kernels with a priority, and cooperative, outside a capture", ask_eager_attributes,
     "ok; ok; 7", NULL},
    {"h14", "a kernel with clusters of 2 is patched to a grid of 3, and of 4", ask_cluster_grid,
     "INVALID_CLUSTER_SIZE; ok; cluster 2", NULL},
    {"h15", "a kernel that is cooperative and has clusters", ask_cooperative_clusters,
     "ok, capture lives", NULL},
    {"h16", "a kernel that is cooperative and has a priority", ask_cooperative_priority,
     "ok, capture lives", NULL},
    {"h10", "a cooperative kernel in a body", ask_cooperative_body, "ok; instantiation ok", NULL},
    {"h11", "the order of a clone's nodes", ask_clone_order, "5 nodes, 5 in the same place", NULL},
    {"h12", "executables of a graph and of its clone, one patched", ask_clone_runs,
     "patch ok; 3; 30", NULL},
    {"h13", "a user object of a graph that is gone, and its clone", ask_clone_objects, "kept: yes",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
