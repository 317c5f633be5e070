// executor/run/verbose.c — see verbose.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/verbose.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log/logging.h"
#include "executor/compile/schedule.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/transfers.h"
#include "rondo/inspect.h"

// One line, as long as there may be more.
RONDO_PRINTF(2, 3) static void tell(rondo__unit *unit, const char *format, ...) {
    rondo__verbose *verbose = &unit->executor->resources.verbose;
    if (verbose->count > verbose->limit) {
        return;
    }
    if (verbose->count++ == verbose->limit) {
        RONDO_LOG_ASKED_F(
            "graphs: that is all of this executor: RONDO_GRAPHS_MAX_LOG_ENTRIES is "
            "%" PRIu64,
            verbose->limit);
        return;
    }
    char line[480];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    RONDO_LOG_ASKED_F("graphs: %s%s", unit->depth > 0 ? "in a body: " : "", line);
}

// What the driver does in the node: ", grid 4 x 1 x 1, block 256 x 1 x 1, shared memory 0 bytes".
static void describe_work(const rondo_graph_node *node, char *text, size_t bytes) {
    static const char *const ways[] = {[RONDO_COPY_HOST_TO_DEVICE] = "host to device",
                                       [RONDO_COPY_DEVICE_TO_HOST] = "device to host",
                                       [RONDO_COPY_DEVICE_TO_DEVICE] = "device to device"};
    const size_t way = (size_t)node->copy_kind;
    text[0] = '\0';
    if (node->kind == RONDO_NODE_KERNEL) {
        (void)snprintf(text, bytes,
                       ", grid %" PRIu32 " x %" PRIu32 " x %" PRIu32 ", block %" PRIu32
                       " x %" PRIu32 " x %" PRIu32 ", shared memory %" PRIu32 " bytes",
                       node->grid[0], node->grid[1], node->grid[2], node->block[0], node->block[1],
                       node->block[2], node->shared_bytes);
    } else if (node->kind == RONDO_NODE_COPY) {
        (void)snprintf(text, bytes, ", %s, %" PRIu64 " bytes",
                       way < sizeof ways / sizeof *ways ? ways[way] : "some way", node->byte_count);
    } else if (node->kind == RONDO_NODE_FILL) {
        (void)snprintf(text, bytes,
                       ", value 0x%" PRIx32 ", elements of %" PRIu32 ", %" PRIu64 " bytes",
                       node->fill_value, node->element_bytes, node->byte_count);
    }
}

static void tell_nodes(rondo__unit *unit, rondo_graph *graph) {
    static const char *const kinds[] = {"kernel", "host function", "copy",
                                        "fill",   "empty",         "event wait",
                                        "event",  "graph",         "conditional"};
    size_t count = 0;
    if (rondo_graph_get_node_count(graph, &count) != RONDO_STATUS_OK) {
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        rondo_graph_node node = {.struct_size = sizeof node};
        if (rondo_graph_get_node(graph, i, &node) != RONDO_STATUS_OK) {
            return;
        }
        const size_t kind = (size_t)node.kind;
        char work[160];
        describe_work(&node, work, sizeof work);
        tell(unit, "  node %zu: %s %.60s of %.128s%s", i,
             kind < sizeof kinds / sizeof *kinds ? kinds[kind] : "node",
             node.name != NULL ? node.name : "", node.label != NULL ? node.label : "", work);
    }
}

void rondo__verbose_tell_graphs(rondo__unit *unit, const rondo__plan *plan, size_t first,
                                size_t last) {
    if (unit->executor->resources.verbose.level == 0) {
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    for (size_t s = first; s <= last; ++s) {
        const rondo__step *step = &plan->steps[s];
        rondo_graph_stats stats = {.struct_size = sizeof stats};
        if (step->run.graph == NULL ||
            rondo_graph_get_stats(step->run.graph, &stats) != RONDO_STATUS_OK) {
            continue;
        }
        const rondo__op *from = rondo__plan_get_op(plan, step->first_item);
        const rondo__op *to = rondo__plan_get_op(plan, step->first_item + step->item_count - 1);
        tell(unit,
             "graph %" PRIu64 " made of segment %zu: %" PRIu64
             " nodes, %zu ops, %.40s \"%.60s\" to "
             "%.40s \"%.60s\"",
             unit->executor->resources.verbose.graph_count++, s, stats.node_count, step->item_count,
             from->def->name, from->name, to->def->name, to->name);
        if (rondo__verbose_wants_nodes(unit->executor)) {
            tell_nodes(unit, step->run.graph);
        }
    }
    rondo__error_restore(&saved);
}

void rondo__verbose_tell_bypassed(rondo__unit *unit, rondo__plan *plan) {
    if (unit->executor->resources.verbose.level == 0 ||
        plan->run.told_count == plan->bypassed_count) {
        return;
    }
    plan->run.told_count = plan->bypassed_count;
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        if (step->kind == RONDO__STEP_BYPASS) {
            tell(unit, "bypassed, step %zu: %s. It would be captured with %s", s, step->reason,
                 rondo__step_get_remedy(plan, step));
        }
    }
}

void rondo__verbose_tell_run(rondo__unit *unit, const rondo__plan *plan, size_t graph_count) {
    if (unit->executor->resources.verbose.level > 0) {
        tell(unit, "run: %zu graph%s, %zu op%s bypassed", graph_count, graph_count == 1 ? "" : "s",
             plan->bypassed_count, plan->bypassed_count == 1 ? "" : "s");
    }
}

void rondo__verbose_log_step(const rondo__unit *unit, const rondo__plan *plan,
                             const rondo__step *step, bool was_replayed) {
    const rondo_device *device = rondo_stream_get_device(rondo__step_get_stream(unit, plan, step));
    if (!rondo__step_has_kernels(step)) {
        const rondo__op *op = &plan->program->nodes[step->node].op;
        RONDO_LOG_DEBUG_F("op: %.40s \"%.60s\", between segments", op->def->name, op->name);
        return;
    }
    for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
        const rondo__kernel *kernel = plan->items[i].kernel;
        const rondo__op *op = rondo__plan_get_op(plan, i);
        if (!rondo__kernel_is_transfer(kernel)) {
            RONDO_LOG_DEBUG_F(
                "op: %.40s \"%.60s\" on %s, %s", op->def->name, op->name,
                rondo__kernel_is_hosted(kernel) ? "the processor" : rondo_device_get_name(device),
                was_replayed ? "in a graph" : "run");
        } else if (was_replayed) {  // otherwise the call that put it on the stream has logged it
            rondo__transfer_log_replayed(kernel, device);
        }
    }
}
