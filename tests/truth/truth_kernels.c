// Kernels in executables: what can be patched, and what they say of themselves.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "truth.h"

// ---- patches ----------------------------------------------------------------------------------

typedef struct patched {
    rondo__cu_graph graph;
    rondo__cu_graph_exec exec;
    rondo__cu_graph_node node;
} patched;

// A graph of one kernel: word 0 = word 0 * 2 + 1.
static patched make_kernel(void) {
    patched p = {NULL, NULL, NULL};
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    (void)must(work_on(w.stream, 0, 0, 2, 1), "launch");
    p.graph = end();
    p.exec = instantiate(p.graph);
    p.node = p.graph != NULL ? node_at(p.graph, 0) : NULL;
    return p;
}

static void patch_and_launch(const patched *p, const rondo__cu_kernel_node *params) {
    say("%s", name_of(d.cuGraphExecKernelNodeSetParams(p->exec, p->node, params)));
    launch(p->exec);
    say("%u", read_word(0));
}

static void ask_arguments(void) {
    const patched p = make_kernel();
    const rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    patch_and_launch(&p, &params);
}

static void ask_function(void) {
    const patched p = make_kernel();
    rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    params.function = w.negate;
    patch_and_launch(&p, &params);
}

static void ask_grid(void) {
    const patched p = make_kernel();
    rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    params.grid[1] = 3;
    params.function = w.negate;  // of which only the first block negates
    patch_and_launch(&p, &params);
}

static void ask_large_block(void) {
    const patched p = make_kernel();
    rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    params.block[0] = 2048;
    patch_and_launch(&p, &params);
}

static void ask_no_grid(void) {
    const patched p = make_kernel();
    rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    params.grid[0] = 0;
    patch_and_launch(&p, &params);
}

static void ask_high_grid(void) {
    const patched p = make_kernel();
    rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    params.grid[1] = 65536;
    patch_and_launch(&p, &params);
}

static void ask_shared(void) {
    const patched p = make_kernel();
    rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    params.shared_bytes = 64 << 10;
    patch_and_launch(&p, &params);
}

// What was put on a stream before a patch does what it was.
static void ask_queued(void) {
    const patched p = make_kernel();
    const rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    MUST(work_on(w.stream, 1, 20000, 1, 0));
    MUST(d.cuGraphLaunch(p.exec, w.stream));
    MUST(d.cuGraphExecKernelNodeSetParams(p.exec, p.node, &params));
    MUST(d.cuGraphLaunch(p.exec, w.stream));
    MUST(d.cuStreamSynchronize(w.stream));
    say("%u", read_word(0));
}

static void ask_foreign_node(void) {
    const patched p = make_kernel();
    const patched other = make_kernel();
    const rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    say("%s", name_of(d.cuGraphExecKernelNodeSetParams(p.exec, other.node, &params)));
}

// Nodes of graphs inside the graph, by the handles that the copy has.
static void ask_inside_child(void) {
    const patched inner = make_kernel();
    const rondo__cu_graph outer = new_graph();
    const rondo__cu_kernel_node params = describe_work(0, 0, 10, 20);
    rondo__cu_graph_node child = NULL;
    rondo__cu_graph copy = NULL;
    MUST(d.cuGraphAddChildGraphNode(&child, outer, NULL, 0, inner.graph));
    MUST(d.cuGraphChildGraphNodeGetGraph(child, &copy));
    const patched p = {outer, instantiate(outer), node_at(copy, 0)};
    patch_and_launch(&p, &params);
    say("%s", name_of(d.cuGraphNodeSetEnabled(p.exec, p.node, 0)));
    write_word(0, 5);
    launch(p.exec);
    say("%u", read_word(0));
}

// ---- what a node says -------------------------------------------------------------------------

static void ask_parameter_list(void) {
    size_t offset = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < 4; ++i) {
        MUST(d.cuFuncGetParamInfo(w.work, i, &offset, &bytes));
        say("%zu at %zu", bytes, offset);
    }
    say("then %s", name_of(d.cuFuncGetParamInfo(w.work, 4, &offset, &bytes)));
}

static void say_lists(rondo__cu_graph graph) {
    rondo__cu_kernel_node params;
    memset(&params, 0, sizeof params);
    if (graph == NULL) {
        return;
    }
    MUST(d.cuGraphKernelNodeGetParams(node_at(graph, 0), &params));
    say("%s%s", params.parameters != NULL ? "parameters" : "no parameters",
        params.extra != NULL ? ", extra" : ", no extra");
}

static void ask_parameters(void) {
    say_lists(make_kernel().graph);
}

static void ask_extra(void) {
    struct {
        rondo__cu_address word;
        uint32_t us, a, b;
    } arguments = {.word = word_at(0), .a = 3, .b = 4};
    size_t bytes = 20;
    void *extra[] = {RONDO__CU_LAUNCH_BUFFER_POINTER, &arguments, RONDO__CU_LAUNCH_BUFFER_SIZE,
                     &bytes, RONDO__CU_LAUNCH_END};
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    MUST(d.cuLaunchKernel(w.work, 1, 1, 1, 1, 1, 1, 0, w.stream, NULL, extra));
    say_lists(end());
}

// As NCCL launches: a parameter of 4096 bytes, of which the call brings the first.
static void ask_short_extra(void) {
    struct {
        rondo__cu_address word;
        uint32_t value, rest;
    } arguments = {.word = word_at(0), .value = 9};
    size_t bytes = sizeof arguments;
    void *extra[] = {RONDO__CU_LAUNCH_BUFFER_POINTER, &arguments, RONDO__CU_LAUNCH_BUFFER_SIZE,
                     &bytes, RONDO__CU_LAUNCH_END};
    rondo__cu_kernel_node params;
    memset(&params, 0, sizeof params);
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    say("%s", name_of(d.cuLaunchKernel(w.wide, 1, 1, 1, 1, 1, 1, 0, w.stream, NULL, extra)));
    const rondo__cu_graph graph = end();
    launch(instantiate(graph));
    MUST(d.cuGraphKernelNodeGetParams(node_at(graph, 0), &params));
    say("%u", read_word(0));
    for (void **pair = params.extra; pair != NULL && *pair != RONDO__CU_LAUNCH_END; pair += 2) {
        if (*pair == RONDO__CU_LAUNCH_BUFFER_SIZE) {
            say("%zu bytes", *(const size_t *)pair[1]);
        }
    }
}

static const rondo__cu_launch_attribute overlap = {
    .id = RONDO__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value = {.is_allowed = 1}};

static rondo__cu_graph record_pair(bool is_overlapping) {
    const rondo__cu_launch_attribute none = {.id = 0};
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    (void)must(work_on(w.stream, 0, 0, 2, 1), "launch");
    (void)must(work_with(w.stream, w.work, is_overlapping ? overlap : none, 1, 0, 2, 1), "launch");
    return end();
}

static void ask_overlap_attribute(void) {
    const rondo__cu_graph graph = record_pair(true);
    rondo__cu_launch_attribute_value value;
    say("%s", name_of(d.cuGraphKernelNodeGetAttribute(
                  node_at(graph, 1), RONDO__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                  &value)));
}

static void ask_overlap_edge(void) {
    const rondo__cu_graph graph = record_pair(true);
    rondo__cu_graph_node from[2], to[2];
    rondo__cu_edge_data data[2];
    size_t count = 2;
    MUST(d.cuGraphGetEdges_v2(graph, from, to, data, &count));
    say("%zu edge, %s", count, data[0].type == 1 ? "programmatic" : "full");
}

static void ask_overlap_change(void) {
    const rondo__cu_graph_exec exec = instantiate(record_pair(true));
    say_update(exec, record_pair(false));
}

static void ask_priority_attribute(void) {
    rondo__cu_launch_attribute_value value = {.priority = 77};
    rondo__cu_stream urgent = NULL;
    rondo__cu_graph graph = NULL;
    MUST(d.cuStreamCreateWithPriority(&urgent, RONDO__CU_STREAM_NON_BLOCKING, -1));
    MUST(d.cuStreamBeginCapture(urgent, RONDO__CU_CAPTURE_MODE_RELAXED));
    MUST(work_on(urgent, 0, 0, 2, 1));
    MUST(d.cuStreamEndCapture(urgent, &graph));
    keep_graph(graph);
    MUST(d.cuGraphKernelNodeGetAttribute(node_at(graph, 0), RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                         &value));
    say("%d", value.priority);
    MUST(d.cuStreamDestroy(urgent));
}

// ---- updates of launch attributes -------------------------------------------------------------

static rondo__cu_graph record_with(rondo__cu_function function, int id,
                                   rondo__cu_launch_attribute_value value) {
    const rondo__cu_launch_attribute attribute = {.id = id, .value = value};
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    (void)must(work_with(w.stream, function, attribute, 0, 0, 2, 1), "launch");
    return end();
}

// All its other bytes are 0.
static rondo__cu_launch_attribute_value make_value(uint32_t first, uint32_t others) {
    rondo__cu_launch_attribute_value value;
    memset(&value, 0, sizeof value);
    value.cluster[0] = first;
    value.cluster[1] = others;
    value.cluster[2] = others;
    return value;
}

static void change_attribute(int id, int32_t former, int32_t next) {
    const rondo__cu_graph_exec exec =
        instantiate(record_with(w.work, id, make_value((uint32_t)former, 0)));
    const rondo__cu_graph graph = record_with(w.work, id, make_value((uint32_t)next, 0));
    if (exec != NULL && graph != NULL) {
        say_update(exec, graph);
    }
}

static void ask_priority_change(void) {
    change_attribute(RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY, 0, -1);
}

static void ask_domain_change(void) {
    change_attribute(RONDO__CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 0, 1);
}

static void ask_cooperative_change(void) {
    change_attribute(RONDO__CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0, 1);
}

static void change_cluster(uint32_t former, uint32_t next) {
    if (w.cluster == NULL) {
        say("this GPU has no clusters");
        return;
    }
    const int id = RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    const rondo__cu_graph_exec exec =
        instantiate(record_with(w.cluster, id, make_value(former, 1)));
    const rondo__cu_graph graph = record_with(w.cluster, next > 0 ? id : 0, make_value(next, 1));
    if (exec == NULL || graph == NULL) {
        return;
    }
    launch(exec);
    say("cluster %u", read_word(0));
    say_update(exec, graph);
    launch(exec);
    say("cluster %u", read_word(0));
}

static void ask_cluster_up(void) {
    change_cluster(2, 4);
}

static void ask_cluster_down(void) {
    change_cluster(4, 2);
}

static void ask_cluster_gone(void) {
    change_cluster(2, 0);
}

// ---- kernels that the device may patch ----------------------------------------------------------

enum { DEVICE_UPDATABLE = 13 };

static rondo__cu_graph record_updatable(void) {
    return record_with(w.work, DEVICE_UPDATABLE, make_value(1, 0));
}

static void ask_updatable_second(void) {
    const rondo__cu_graph graph = record_updatable();
    say("%s", name_of(try_instantiate(graph, 0, NULL, NULL)));
    say("%s", name_of(try_instantiate(graph, 0, NULL, NULL)));
}

static void ask_updatable_update(void) {
    const rondo__cu_graph_exec exec = instantiate(record_updatable());
    say_update(exec, record_updatable());
}

static void ask_updatable_from_plain(void) {
    const rondo__cu_graph_exec exec = make_kernel().exec;
    say_update(exec, record_updatable());
}

// One more question on such graphs is not asked: driver 580 crashed at it.
static void ask_updatable_clone(void) {
    rondo__cu_graph clone = NULL;
    say("%s", name_of(d.cuGraphClone(&clone, record_updatable())));
    keep_graph(clone);
}

// ---- device memory ----------------------------------------------------------------------------

// Asked first: later there is memory that other executables have left.
static void ask_destroyed_bytes(void) {
    size_t before = 0, with = 0, after = 0, total = 0;
    rondo__cu_graph_exec exec = NULL;
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    for (int i = 0; i < 5000; ++i) {
        MUST(work_on(w.stream, 0, 0, 1, 0));
    }
    const rondo__cu_graph graph = end();
    MUST(d.cuMemGetInfo(&before, &total));
    MUST(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(d.cuGraphUpload(exec, w.stream));
    MUST(d.cuStreamSynchronize(w.stream));
    MUST(d.cuMemGetInfo(&with, &total));
    MUST(d.cuGraphExecDestroy(exec));
    MUST(d.cuMemGetInfo(&after, &total));
    say("%s; destroyed: %s", with < before ? "takes memory" : "takes none",
        after > with ? "gives back" : "gives none back");
}

const truth_question truth_kernels[] = {
    {"807", "device memory of an executable of 5000 nodes", ask_destroyed_bytes,
     "takes memory; destroyed: gives none back", NULL},
    {"k6", "a kernel's arguments are patched", ask_arguments, "ok; 30", NULL},
    {"k1", "a patch names another kernel", ask_function, "ok; 4294967294", NULL},
    {"k2", "a patch changes grid and kernel", ask_grid, "ok; 4294967294", NULL},
    {"104", "a patch to a block of 2048 threads", ask_large_block, "INVALID_VALUE; 3", NULL},
    {"106", "a patch to a grid of 0", ask_no_grid, "INVALID_VALUE; 3", NULL},
    {"k3", "a patch to a grid of 65536 in y", ask_high_grid, "INVALID_VALUE; 3", NULL},
    {"107", "a patch to 64 KiB of shared memory", ask_shared, "INVALID_VALUE; 3", NULL},
    {"115", "a replay that was queued before a patch", ask_queued, "50", NULL},
    {"k4", "a patch by a node of another graph", ask_foreign_node, "INVALID_VALUE", NULL},
    {"218", "patch and switch of a node in a child graph", ask_inside_child, "ok; 30; ok; 5", NULL},
    {"127", "parameters of a kernel, and one past the last", ask_parameter_list,
     "8 at 0; 4 at 8; 4 at 12; 4 at 16; then INVALID_VALUE", NULL},
    {"k5", "a node launched with a parameter list gives back", ask_parameters,
     "parameters, no extra", NULL},
    {"125", "a node launched with packed arguments gives back", ask_extra, "no parameters, extra",
     NULL},
    {"2012", "16 packed bytes for a parameter of 4096", ask_short_extra, "ok; 9; 16 bytes", NULL},
    {"703", "the attribute that lets a kernel overlap, read from its node", ask_overlap_attribute,
     "INVALID_VALUE", NULL},
    {"k7", "the edge of a kernel that may overlap", ask_overlap_edge, "1 edge, programmatic", NULL},
    {"704", "update from a programmatic to a full edge", ask_overlap_change,
     "GRAPH_EXEC_UPDATE_FAILURE/TopologyChanged", NULL},
    {"546", "priority -1 of a captured stream, read from the node", ask_priority_attribute, "-1",
     NULL},
    {"110", "update to another priority", ask_priority_change, "ok/Success", NULL},
    {"113", "update to another memory domain", ask_domain_change, "ok/Success", NULL},
    {"112", "update to a cooperative kernel", ask_cooperative_change,
     "GRAPH_EXEC_UPDATE_FAILURE/AttributesChanged", NULL},
    {"111", "update from clusters of 2 to 4", ask_cluster_up, "cluster 2; ok/Success; cluster 2",
     NULL},
    {"2001a", "update from clusters of 4 to 2", ask_cluster_down,
     "cluster 4; ok/Success; cluster 4", NULL},
    {"2001b", "update from clusters of 2 to none", ask_cluster_gone,
     "cluster 2; ok/Success; cluster 2", NULL},
    {"301", "executables of a graph with a device-updatable kernel", ask_updatable_second,
     "ok; NOT_SUPPORTED", NULL},
    {"304", "update of a device-updatable kernel by its like", ask_updatable_update,
     "NOT_SUPPORTED/Success", NULL},
    {"304b", "update of a plain kernel by a device-updatable one", ask_updatable_from_plain,
     "NOT_SUPPORTED/Success", NULL},
    {"302", "a clone of a graph with a device-updatable kernel", ask_updatable_clone,
     "NOT_SUPPORTED", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
