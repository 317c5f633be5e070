// executor/compile/classify_nodes.c — how each node of a plan runs: as an item with a kernel,
// between segments, or not at all.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/planning.h"

#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "device/device.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/op_device.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/streamed_weights.h"
#include "executor/devices/transfers.h"
#include "executor/state/capture_verdict.h"
#include "executor/state/counted.h"
#include "executor/state/generators.h"
#include "executor/state/limits.h"
#include "executor/state/prepared.h"
#include "op/draws.h"
#include "op/registered.h"
#include "program/place_mark.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

// What the kernel room sees of one node. The two arrays have room for the largest node.
static void fill_request(const rondo__unit *unit, rondo__plan *plan, size_t n,
                         rondo__tensor_info *inputs, rondo__tensor_info *outputs,
                         const uint32_t *uses, rondo__kernel_request *out_request) {
    const rondo_executor *executor = unit->executor;
    const rondo__node *node = &plan->program->nodes[n];
    for (size_t i = 0; i < node->input_count; ++i) {
        rondo__program_get_info(plan->program, node->inputs[i], &inputs[i]);
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        bool is_wanted = node->outputs[i] >= 0 && uses[node->outputs[i]] > 0;
        rondo__program_get_info(plan->program, is_wanted ? node->outputs[i] : -1, &outputs[i]);
    }
    rondo__plan_peer *peer = rondo__plan_get_peer(plan, rondo__other_gpus_get_side(plan, n));
    *out_request = (rondo__kernel_request){
        .device = peer != NULL ? peer->peer->device : executor->device,
        .op = &node->op,
        .watch = &executor->resources.watch,
        .input_count = node->input_count,
        .inputs = inputs,
        .output_count = node->output_count,
        .outputs = outputs,
        .weights = peer != NULL ? &peer->weights : &plan->weights,
        .tuning = executor->options.tuning,
        .constant_bytes = plan->constant_bytes,
        .choices = executor->resources.choices,
        .communicator = unit->depth == 0 ? executor->options.communicator : NULL,
        .is_in_body = unit->depth > 0,
        .use_reference = executor->options.reference};
    rondo__streamed_fill_request(plan, n, out_request);
}

static bool is_object(const rondo__tensor_info *info) {
    return info->dtype != RONDO_DTYPE_NONE && !rondo__dtype_is_plain(info->dtype);
}

// Whether strings, sequences or optionals come in or go out.
static bool has_objects(const rondo__kernel_request *request) {
    bool has = false;
    for (size_t i = 0; i < request->input_count; ++i) {
        has = has || is_object(&request->inputs[i]);
    }
    for (size_t i = 0; i < request->output_count; ++i) {
        has = has || is_object(&request->outputs[i]);
    }
    return has;
}

// Names the node, and the weights in it when memory was not to be had.
static void blame_weights(const rondo__node *node, rondo_status status,
                          const rondo__kernel_request *request) {
    for (size_t i = 0; status == RONDO_STATUS_NO_MEMORY && i < request->input_count; ++i) {
        char shape[96];
        if (request->inputs[i].constant != NULL && request->inputs[i].shape.rank > 1) {
            rondo__error_prefix("packing weights %s %s",
                                rondo_dtype_get_name(request->inputs[i].dtype),
                                rondo_shape_format(&request->inputs[i].shape, shape, sizeof shape));
            break;
        }
    }
    rondo__node_blame(node);
}

// Memory that counts against the host's budget beside shared weights.
static uint64_t get_private_bytes(const rondo_executor *executor) {
    const rondo__budget *budget = executor->resources.budget;
    const rondo__weight_account *account = &executor->resources.weights;
    return rondo__budget_get_used(budget) - (account->budget == budget ? account->bytes : 0) -
           executor->resources.streamed_weights.bytes;
}

// A control op that a graph can hold is an item like others; otherwise keeps what hinders.
static rondo_status classify_control(const rondo__planning *p, size_t n,
                                     const rondo__kernel_request *request,
                                     rondo__node_class *out_class, rondo__kernel **out_kernel) {
    rondo__unit *unit = p->unit;
    rondo__plan *plan = p->plan;
    rondo__refusal refusal;
    if (rondo__other_gpus_get_side(plan, n) != RONDO__SIDE_DEVICE) {
        return rondo__op_device_refuse(&plan->program->nodes[n], &plan->homes[n],
                                       "control flow is decided on the executor's GPU or on the "
                                       "processor; the ops of its bodies can be placed");
    }
    if (plan->homes[n].place == RONDO__PLACE_CPU && !rondo_device_is_host(unit->executor->device)) {
        refusal = (rondo__refusal){"it is placed on the processor"};
    } else {
        RETURN_IF_ERROR(rondo__device_control_prepare(unit, p->planner, plan, n, request,
                                                      out_kernel, &refusal));
    }
    *out_class = *out_kernel != NULL ? RONDO__CLASS_KERNEL : RONDO__CLASS_CONTROL;
    if (*out_kernel != NULL) {
        return RONDO_STATUS_OK;
    }
    if (plan->refusals == NULL) {
        // Copies between sides become nodes (rondo__transfers_insert), at most one for each value.
        const size_t most = plan->program->node_count + plan->program->value_count;
        plan->refusals = rondo__calloc(most, sizeof *plan->refusals);
    }
    if (plan->refusals != NULL) {
        plan->refusals[n] = rondo__strdup(refusal.text);
    }
    return plan->refusals != NULL && plan->refusals[n] != NULL ? RONDO_STATUS_OK
                                                               : RONDO_STATUS_NO_MEMORY;
}

// For a node without a kernel of the device or the processor: its reference runs between segments.
static rondo_status bypass(rondo__plan *plan, size_t n, rondo__node_class *out_class) {
    const rondo__node *node = &plan->program->nodes[n];
    if (!rondo__op_has_compute(node->op.def)) {
        return rondo__op_fail_unsupported(&node->op, "there is neither a kernel nor a reference");
    }
    RONDO_LOG_INFO_F("%s runs on the host, between segments: %s", rondo__node_describe(node),
                     plan->homes[n].reason != NULL ? plan->homes[n].reason : "");
    *out_class = RONDO__CLASS_HOSTED;
    return RONDO_STATUS_OK;
}

// Whether the node is an item of the processor in a plan of a GPU. Ops that draw, and ops in a body
// that a graph holds, run between segments.
static rondo_status host_node(rondo__unit *unit, rondo__plan *plan, size_t n,
                              const rondo__kernel_request *request, bool draws,
                              rondo__node_class *out_class, rondo__kernel **out_kernel) {
    if (draws || !rondo__unit_has_two_sides(unit)) {
        return bypass(plan, n, out_class);
    }
    *out_class = RONDO__CLASS_KERNEL;
    return rondo__host_ops_prepare(unit->executor, plan, request, &plan->program->nodes[n],
                                   out_kernel);
}

// Prepares the kernel of a node whose shapes are known and which has work to do.
static rondo_status prepare_kernel(rondo__unit *unit, rondo__plan *plan, size_t n,
                                   rondo__kernel_request *request, rondo__node_class *out_class,
                                   rondo__kernel **out_kernel) {
    const rondo__node *node = &plan->program->nodes[n];
    rondo__op_device *home = &plan->homes[n];
    const bool is_host = rondo_device_is_host(unit->executor->device);
    const bool draws = rondo__op_draws(&node->op, request->inputs, request->input_count);
    if (draws) {
        RETURN_IF_ERROR(rondo__executor_get_generator(unit->executor, node, &request->generator));
    }
    if (home->place == RONDO__PLACE_CPU && !is_host) {
        return host_node(unit, plan, n, request, draws, out_class, out_kernel);
    }
    const bool is_far = request->device != unit->executor->device;
    if (is_far && draws) {
        return rondo__op_device_refuse(
            node, home,
            "it draws random numbers, and generators are on the executor's "
            "GPU");
    }
    if (is_far && !rondo__unit_has_two_sides(unit)) {
        *out_class = RONDO__CLASS_HOSTED;  // no part of a graph of one device
        return RONDO_STATUS_OK;
    }
    const size_t weight_count = request->weights->count;
    const size_t brought_count = rondo__streamed_count(plan);
    const uint64_t used = get_private_bytes(unit->executor);
    rondo_status status = rondo__kernel_prepare(request, out_kernel);
    if (status == RONDO_STATUS_OK) {
        plan->private_bytes += get_private_bytes(unit->executor) - used;
        *out_class = rondo__verdict_allows(request->device, &node->op, *out_kernel,
                                           unit->executor->graphs == RONDO_GRAPHS_ON)
                         ? RONDO__CLASS_KERNEL
                         : RONDO__CLASS_EAGER;
        return RONDO_STATUS_OK;
    }
    rondo__weight_list_cut(request->weights, weight_count);
    rondo__streamed_cut(plan, brought_count);
    if (status != RONDO_STATUS_UNSUPPORTED || (is_host && !draws)) {
        return status;
    }
    if (home->place >= RONDO__PLACE_GPU) {
        return rondo__op_device_refuse(node, home, rondo_error_get_last()->message);
    }
    if (!rondo__op_has_compute(node->op.def)) {
        return status;
    }
    RONDO_LOG_INFO_F("%s runs on the host: %s", rondo__node_describe(node),
                     rondo_error_get_last()->message);
    *home = (rondo__op_device){RONDO__PLACE_CPU, RONDO__PLACED_BY_NOBODY,
                               "the device has no kernel for it"};
    return host_node(unit, plan, n, request, draws, out_class, out_kernel);
}

// Decides how node `n` runs, and prepares its kernel when it has one.
static rondo_status classify(const rondo__planning *p, size_t n, rondo__kernel_request *request) {
    const rondo__plan *plan = p->plan;
    rondo__node_class *out_class = &p->class_of[n];
    rondo__kernel **out_kernel = &p->kernels[n];
    const rondo__node *node = &plan->program->nodes[n];
    uint32_t flags = node->op.def->flags;
    if (rondo__node_is(node, RONDO__FUSED_Rest) || rondo__counted_is(node)) {
        *out_class = rondo__counted_is(node) ? RONDO__CLASS_COUNTED : RONDO__CLASS_CONTROL;
        return RONDO_STATUS_OK;
    }
    if ((flags & RONDO__OP_CONTROL) != 0) {
        return classify_control(p, n, request, out_class, out_kernel);
    }
    bool all_known = true;
    for (size_t i = 0; i < node->input_count; ++i) {
        all_known = all_known && rondo__program_is_known(plan->program, node->inputs[i]);
    }
    bool is_empty = true;   // every wanted output has no elements
    bool is_single = true;  // only output 0 is wanted
    for (size_t i = 0; i < node->output_count; ++i) {
        all_known = all_known && rondo__program_is_known(plan->program, node->outputs[i]);
        is_empty = is_empty && (request->outputs[i].dtype == RONDO_DTYPE_NONE ||
                                rondo_shape_get_count(&request->outputs[i].shape) == 0);
        is_single = is_single && (i == 0 || request->outputs[i].dtype == RONDO_DTYPE_NONE);
    }
    if (!all_known || has_objects(request)) {
        const char *why = has_objects(request) ? "strings and sequences stay on the processor"
                                               : "its result shape depends on data";
        if (plan->homes[n].place >= RONDO__PLACE_GPU) {
            return rondo__op_device_refuse(node, &plan->homes[n], why);
        }
        *out_class = has_objects(request) ? RONDO__CLASS_OBJECTS : RONDO__CLASS_DYNAMIC;
        return RONDO_STATUS_OK;
    }
    const bool draws = rondo__op_draws(&node->op, request->inputs, request->input_count);
    if (is_empty || (!draws && (flags & RONDO__OP_VIEW) != 0 && is_single && node->inputs[0] >= 0 &&
                     request->inputs[0].dtype == request->outputs[0].dtype)) {
        *out_class = RONDO__CLASS_IDLE;
        return RONDO_STATUS_OK;
    }
    const rondo_status status = prepare_kernel(p->unit, p->plan, n, request, out_class, out_kernel);
    if (status != RONDO_STATUS_OK) {
        blame_weights(node, status, request);
    }
    return status;
}

// Names the kernels of nodes from `first` on, which will be prepared, so that threads compile some
// of them meanwhile.
static void survey_nodes(const rondo__unit *unit, rondo__plan *plan, size_t first,
                         rondo__tensor_info *inputs, rondo__tensor_info *outputs,
                         const uint32_t *uses) {
    const bool is_host = rondo_device_is_host(unit->executor->device);
    for (size_t n = first; n < plan->program->node_count && !is_host; ++n) {
        rondo__kernel_request request;
        fill_request(unit, plan, n, inputs, outputs, uses, &request);
        if (!has_objects(&request)) {
            rondo__kernel_survey(&request);
        }
    }
}

// Room for the nodes and for the copies between sides.
static rondo_status reserve_lists(rondo__planning *p) {
    const rondo_program *program = p->plan->program;
    p->node_room = program->node_count +  // with copies
                   rondo__plan_count_sides(p->plan) * program->value_count;
    p->class_of = rondo__calloc(p->node_room + 1, sizeof *p->class_of);
    p->kernels = rondo__calloc(p->node_room + 1, sizeof(rondo__kernel *));
    if (p->class_of == NULL || p->kernels == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (p->ready_kernels != NULL) {
        RETURN_IF_ERROR(
            rondo__prepared_list_kernels(p->ready_kernels, program->node_count, &p->ready));
    }
    return rondo__unit_has_two_sides(p->unit) ? rondo__transfers_reserve(p->plan) : RONDO_STATUS_OK;
}

rondo_status rondo__planning_classify_nodes(rondo__planning *p) {
    rondo__unit *unit = p->unit;
    rondo__plan *plan = p->plan;
    RETURN_IF_ERROR(reserve_lists(p));
    const rondo_program *program = plan->program;
    size_t widest = 1;
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        widest = node->input_count > widest ? node->input_count : widest;
        widest = node->output_count > widest ? node->output_count : widest;
    }
    rondo_status status = RONDO_STATUS_OK;
    rondo__tensor_info *infos = rondo__calloc(2 * widest, sizeof *infos);
    uint32_t *uses = rondo__calloc(program->value_count + 1, sizeof *uses);
    if (infos == NULL || uses == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto free_lists;
    }
    rondo__program_count_uses(program, uses);
    for (size_t v = 0; v < program->value_count; ++v) {
        plan->constant_bytes += rondo_tensor_get_bytes(&program->values[v].constant);
    }
    // Kernels of a plan file are there, and plans of other shapes had most of those that this one
    // has: only where one was missing it is worth asking for the others.
    size_t restored_count = 0;
    bool is_surveyed = !p->is_ready && unit->plans.stats.entry_count == 0;
    if (is_surveyed) {
        survey_nodes(unit, plan, 0, infos, infos + widest, uses);
    }
    for (size_t n = 0; n < program->node_count && status == RONDO_STATUS_OK; ++n) {
        rondo__kernel_request request;
        fill_request(unit, plan, n, infos, infos + widest, uses, &request);
        request.ready = p->ready != NULL && p->ready[n].at != NULL ? &p->ready[n] : NULL;
        const size_t kernel_count = rondo__device_count_kernels(request.device);
        status = rondo__executor_check_cancelled(unit->executor);
        if (status == RONDO_STATUS_OK) {
            status = classify(p, n, &request);
        }
        restored_count += p->kernels[n] != NULL && p->kernels[n]->is_restored ? 1 : 0;
        plan->random_count += rondo__op_draws(request.op, request.inputs, request.input_count);
        if (!is_surveyed && rondo__device_count_kernels(request.device) != kernel_count) {
            is_surveyed = true;
            survey_nodes(unit, plan, n + 1, infos, infos + widest, uses);
        }
        if (unit->executor->options.progress != NULL && unit->depth == 0) {
            unit->executor->options.progress(unit->executor->options.progress_data,
                                             "preparing kernels", n + 1, program->node_count);
        }
    }
    if (p->ready != NULL) {
        RONDO_LOG_DEBUG_F("%zu kernels come from the plan file", restored_count);
    }

free_lists:
    rondo__free(infos);
    rondo__free(uses);
    return status;
}
