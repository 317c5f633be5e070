// Memory that graphs take and give back: what graph files rest on (rondo/update.h).
//
// Driver 580 gave these answers (bench/results/core/driver_truth_h200.md).
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "truth.h"

enum { BYTES = 4096 };

static rondo__cu_address take(rondo__cu_stream stream) {
    rondo__cu_address address = 0;
    (void)must(d.cuMemAllocAsync(&address, BYTES, stream), "cuMemAllocAsync");
    return address;
}

static void give_back(rondo__cu_address address, rondo__cu_stream stream) {
    (void)must(d.cuMemFreeAsync(address, stream), "cuMemFreeAsync");
}

static void stand_behind(rondo__cu_graph_node *nodes, size_t count) {
    (void)must(d.cuStreamUpdateCaptureDependencies(w.stream, nodes, count,
                                                   RONDO__CU_CAPTURE_SET_DEPENDENCIES),
               "cuStreamUpdateCaptureDependencies");
}

static int type_of(rondo__cu_graph_node node) {
    int type = -1;
    (void)must(d.cuGraphNodeGetType(node, &type), "cuGraphNodeGetType");
    return type;
}

static rondo__cu_memory_node params_of(rondo__cu_graph_node node) {
    rondo__cu_memory_node params;
    memset(&params, 0xff, sizeof params);
    (void)must(d.cuGraphMemAllocNodeGetParams(node, &params), "cuGraphMemAllocNodeGetParams");
    return params;
}

static void ask_params(void) {
    rondo__cu_address given = 0;
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    const rondo__cu_address address = take(w.stream);
    give_back(address, w.stream);
    const rondo__cu_graph graph = end();
    const rondo__cu_memory_node params = params_of(node_at(graph, 0));
    MUST(d.cuGraphMemFreeNodeGetParams(node_at(graph, 1), &given));
    say("%s address", params.address == address ? "the same" : "another");
    say("%zu bytes", params.byte_count);
    say("type %d, location %d, handles %d, usage %u", params.allocation_type, params.location_type,
        params.handle_types, (unsigned)params.usage);
    say("gives back %s", given == address ? "the same" : "another");
}

static void ask_accesses(void) {
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    give_back(take(w.stream), w.stream);
    say("%zu", params_of(node_at(end(), 0)).access_count);
}

static void ask_again(void) {
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    const rondo__cu_address first = take(w.stream);
    give_back(first, w.stream);
    const rondo__cu_address second = take(w.stream);
    give_back(second, w.stream);
    (void)end();
    say("%s address", first == second ? "the same" : "another");
}

// As a graph file is loaded: two branches of one stream, and what joins them.
static void ask_set(void) {
    rondo__cu_graph_node taken[2], last[2];
    rondo__cu_address addresses[2];
    begin(RONDO__CU_CAPTURE_MODE_RELAXED);
    for (size_t i = 0; i < 2; ++i) {
        stand_behind(NULL, 0);
        addresses[i] = take(w.stream);
        (void)get_recorded(w.stream, &taken[i]);
        (void)must(d.cuMemcpyDtoDAsync(addresses[i], word_at(i), 4, w.stream), "copy");
        (void)must(d.cuMemcpyDtoDAsync(word_at(2 + i), addresses[i], 4, w.stream), "copy");
        (void)get_recorded(w.stream, &last[i]);
    }
    say("types %d and %d", type_of(taken[0]), type_of(taken[1]));
    say("%s", addresses[0] == addresses[1] ? "one address" : "two addresses");
    stand_behind(last, 2);
    give_back(addresses[0], w.stream);
    give_back(addresses[1], w.stream);
    const rondo__cu_graph graph = end();
    write_word(0, 7);
    write_word(1, 9);
    launch(instantiate(graph));
    say("%zu nodes", graph != NULL ? count_nodes(graph) : 0);
    say("%u %u", read_word(2), read_word(3));
}

const truth_question truth_taken[] = {
    {"g1", "what nodes say of memory that a capture takes and gives back", ask_params,
     "the same address; 4096 bytes; type 1, location 1, handles 0, usage 0; gives back the same",
     NULL},
    {"g2", "how many devices such a node names", ask_accesses, "0", NULL},
    {"g3", "memory taken behind the node that gives back as much", ask_again, "the same address",
     NULL},
    {"g4", "memory taken and given back behind nodes that were set", ask_set,
     "types 10 and 10; two addresses; 8 nodes; 7 9", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
