// Updates: which orders and shapes of graphs are the same to the driver.
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>

#include "truth.h"

static rondo__cu_graph_node add_kernel(rondo__cu_graph graph, const rondo__cu_graph_node *before,
                                       size_t count, size_t word, uint32_t a, uint32_t b) {
    const rondo__cu_kernel_node params = describe_work(word, 0, a, b);
    rondo__cu_graph_node node = NULL;
    (void)must(d.cuGraphAddKernelNode(&node, graph, before, count, &params), "add a kernel");
    return node;
}

static rondo__cu_graph_node add_fill(rondo__cu_graph graph, size_t word) {
    const rondo__cu_fill_node params = describe_fill(word, 5, 4, 1);
    rondo__cu_graph_node node = NULL;
    (void)must(d.cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, w.context), "add a fill");
    return node;
}

static rondo__cu_graph make_two(bool is_fill_first) {
    const rondo__cu_graph graph = new_graph();
    if (is_fill_first) {
        (void)add_fill(graph, 8);
    }
    (void)add_kernel(graph, NULL, 0, 0, 2, 1);
    if (!is_fill_first) {
        (void)add_fill(graph, 8);
    }
    return graph;
}

static void ask_order_of_nodes(void) {
    say_update(instantiate(make_two(false)), make_two(true));
}

// A kernel behind a kernel and a fill, which its list has in this or the other order.
static rondo__cu_graph make_join(bool is_turned) {
    const rondo__cu_graph graph = new_graph();
    rondo__cu_graph_node before[2];
    before[is_turned] = add_kernel(graph, NULL, 0, 0, 2, 1);
    before[!is_turned] = add_fill(graph, 8);
    (void)add_kernel(graph, before, 2, 4, 2, 1);
    return graph;
}

static void ask_order_of_dependencies(void) {
    say_update(instantiate(make_join(false)), make_join(true));
}

// Two kernels, neither behind the other: the driver cannot tell them apart.
static rondo__cu_graph make_twins(bool is_turned) {
    const rondo__cu_graph graph = new_graph();
    (void)add_kernel(graph, NULL, 0, is_turned ? 1 : 0, 10, is_turned ? 1 : 0);
    (void)add_kernel(graph, NULL, 0, is_turned ? 0 : 1, 10, is_turned ? 0 : 1);
    return graph;
}

static void ask_twins(void) {
    const rondo__cu_graph_exec exec = instantiate(make_twins(false));
    say_update(exec, make_twins(true));
    launch(exec);
    say("%u %u", read_word(0), read_word(1));
}

static rondo__cu_graph make_chain(size_t count, bool is_broken) {
    const rondo__cu_graph graph = new_graph();
    rondo__cu_graph_node last = NULL;
    for (size_t i = 0; i < count; ++i) {
        const bool is_first = i == 0 || (is_broken && i + 1 == count);
        last = add_kernel(graph, &last, is_first ? 0 : 1, 0, 2, 1);
    }
    return graph;
}

static void ask_fewer(void) {
    say_update(instantiate(make_chain(3, false)), make_chain(2, false));
}

static void ask_more(void) {
    say_update(instantiate(make_chain(2, false)), make_chain(3, false));
}

static void ask_edge_gone(void) {
    say_update(instantiate(make_chain(3, false)), make_chain(3, true));
}

static void ask_failed_update(void) {
    const rondo__cu_graph_exec exec = instantiate(make_chain(3, false));
    say_update(exec, make_chain(2, false));
    launch(exec);
    say("%u", read_word(0));
}

static rondo__cu_graph make_parent(uint32_t a, bool is_fill) {
    const rondo__cu_graph inner = new_graph();
    const rondo__cu_graph outer = new_graph();
    rondo__cu_graph_node child = NULL;
    if (is_fill) {
        (void)add_fill(inner, 0);
    } else {
        (void)add_kernel(inner, NULL, 0, 0, a, 1);
    }
    (void)must(d.cuGraphAddChildGraphNode(&child, outer, NULL, 0, inner), "add a child");
    return outer;
}

static void ask_child_patched(void) {
    const rondo__cu_graph_exec exec = instantiate(make_parent(2, false));
    say_update(exec, make_parent(10, false));
    launch(exec);
    say("%u", read_word(0));
}

static void ask_child_changed(void) {
    say_update(instantiate(make_parent(2, false)), make_parent(2, true));
}

static void ask_other_function(void) {
    rondo__cu_kernel_node params = describe_work(0, 0, 2, 1);
    rondo__cu_graph_node node = NULL;
    const rondo__cu_graph graph = new_graph();
    params.function = w.negate;
    const rondo__cu_graph_exec exec = instantiate(make_chain(1, false));
    params = describe_work(0, 0, 2, 1);
    params.function = w.negate;
    MUST(d.cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    say_update(exec, graph);
    launch(exec);
    say("%u", read_word(0));
}

// An executable goes by the handles of its first graph, whatever it was updated with.
static void ask_handles(void) {
    const rondo__cu_graph first = make_chain(1, false);
    const rondo__cu_graph second = make_chain(1, false);
    const rondo__cu_graph_exec exec = instantiate(first);
    say_update(exec, second);
    const rondo__cu_kernel_node params = describe_work(0, 0, 10, 0);
    say("%s", name_of(d.cuGraphExecKernelNodeSetParams(exec, node_at(first, 0), &params)));
    say("%s", name_of(d.cuGraphExecKernelNodeSetParams(exec, node_at(second, 0), &params)));
}

// What became of word 0 while a replay waited: an update leaves it as it was.
static void ask_queued(void) {
    const rondo__cu_graph_exec exec = instantiate(make_chain(1, false));
    const rondo__cu_graph next = new_graph();
    (void)add_kernel(next, NULL, 0, 0, 10, 20);
    MUST(work_on(w.stream, 1, 20000, 1, 0));
    MUST(d.cuGraphLaunch(exec, w.stream));
    say_update(exec, next);
    MUST(d.cuGraphLaunch(exec, w.stream));
    MUST(d.cuStreamSynchronize(w.stream));
    say("%u", read_word(0));
}

const truth_question truth_updates[] = {
    {"220", "update by the same two nodes, made in the other order", ask_order_of_nodes,
     "GRAPH_EXEC_UPDATE_FAILURE/NodeTypeChanged", NULL},
    {"221", "update by the same join, its dependencies listed in the other order",
     ask_order_of_dependencies, "GRAPH_EXEC_UPDATE_FAILURE/NodeTypeChanged", NULL},
    {"u1", "update by two equal kernels, made in the other order", ask_twins, "ok/Success; 10 11",
     NULL},
    {"u2", "update by fewer nodes", ask_fewer, "GRAPH_EXEC_UPDATE_FAILURE/TopologyChanged", NULL},
    {"u3", "update by more nodes", ask_more, "GRAPH_EXEC_UPDATE_FAILURE/TopologyChanged", NULL},
    {"u4", "update by as many nodes without an edge", ask_edge_gone,
     "GRAPH_EXEC_UPDATE_FAILURE/TopologyChanged", NULL},
    {"u5", "an executable that could not be updated runs what it ran", ask_failed_update,
     "GRAPH_EXEC_UPDATE_FAILURE/TopologyChanged; 15", NULL},
    {"u6", "update of a kernel in a child graph", ask_child_patched, "ok/Success; 11", NULL},
    {"u7", "update by a child graph with another kind of node", ask_child_changed,
     "GRAPH_EXEC_UPDATE_FAILURE/NodeTypeChanged", NULL},
    {"u8", "update by another kernel", ask_other_function, "ok/Success; 4294967294", NULL},
    {"u9", "nodes of an updated executable: the first graph's, the second's", ask_handles,
     "ok/Success; ok; INVALID_VALUE", NULL},
    {"128", "a replay that was queued before an update", ask_queued, "ok/Success; 50", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
