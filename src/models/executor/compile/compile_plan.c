// executor/compile/compile_plan.c — compiling a plan: specialise, optimise, prepare kernels,
// schedule, place, resolve addresses.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/plan.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "executor/compile/destroy.h"
#include "executor/compile/device_control.h"
#include "executor/compile/schedule.h"
#include "executor/compile/split_counted.h"
#include "executor/compile/value_slots.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/op_device.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/streamed_weights.h"
#include "executor/devices/transfers.h"
#include "executor/state/capture_verdict.h"
#include "executor/state/counted.h"
#include "executor/state/generators.h"
#include "executor/state/limits.h"
#include "executor/state/precision.h"
#include "op/draws.h"
#include "op/registered.h"
#include "program/edit.h"
#include "program/passes/passes.h"
#include "program/place_mark.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

enum { PLAN_FOLD_BYTES_MAX = 64 << 20 };

// What the kernel room sees of one node. The two arrays have room for the largest node.
static void fill_request(const rondo_executor *executor, rondo__plan *plan, size_t n,
                         rondo__tensor_info *inputs, rondo__tensor_info *outputs,
                         const uint32_t *uses, rondo__kernel_request *out_request) {
    const rondo__node *node = &plan->program->nodes[n];
    for (size_t i = 0; i < node->input_count; ++i) {
        rondo__program_get_info(plan->program, node->inputs[i], &inputs[i]);
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        bool is_wanted = node->outputs[i] >= 0 && uses[node->outputs[i]] > 0;
        rondo__program_get_info(plan->program, is_wanted ? node->outputs[i] : -1, &outputs[i]);
    }
    rondo__plan_peer *peer = rondo__plan_get_peer(plan, rondo__peers_get_side(plan, n));
    *out_request =
        (rondo__kernel_request){.device = peer != NULL ? peer->peer->device : executor->device,
                                .op = &node->op,
                                .watch = &executor->root->watch,
                                .input_count = node->input_count,
                                .inputs = inputs,
                                .output_count = node->output_count,
                                .outputs = outputs,
                                .weights = peer != NULL ? &peer->weights : &plan->weights,
                                .tuning = executor->options.tuning,
                                .constant_bytes = plan->constant_bytes,
                                .choices = executor->root->choices,
                                .use_reference = executor->options.reference};
    rondo__spill_fill_request(plan, n, out_request);
}

static bool is_known(const rondo_program *program, int32_t value) {
    rondo__tensor_info info;
    rondo__program_get_info(program, value, &info);
    return value < 0 || (info.is_shape_known && info.dtype != RONDO_DTYPE_NONE);
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

// What counts against the host's budget beside shared weights.
static uint64_t get_private_bytes(const rondo_executor *executor) {
    const rondo__budget *budget = executor->root->budget;
    const rondo__weight_account *account = &executor->root->weights;
    return rondo__budget_get_used(budget) - (account->budget == budget ? account->bytes : 0) -
           executor->root->spill_weights.bytes;
}

// A control op that a graph can hold is an item like others; otherwise keeps what hinders.
static rondo_status classify_control(rondo_executor *executor, rondo__plan *plan, size_t n,
                                     const rondo__kernel_request *request, int8_t *out_class,
                                     rondo__kernel **out_kernel) {
    static const rondo__planner planner = {rondo__plan_specialise, rondo__plan_create};
    rondo__refusal refusal;
    if (rondo__peers_get_side(plan, n) != RONDO__SIDE_DEVICE) {
        return rondo__op_device_refuse(&plan->program->nodes[n], &plan->homes[n],
                                       "control flow is decided on the executor's GPU or on the "
                                       "processor; the ops of its bodies can be placed");
    }
    if (plan->homes[n].place == RONDO__PLACE_CPU && !rondo_device_is_host(executor->device)) {
        refusal = (rondo__refusal){"it is placed on the processor"};
    } else {
        RETURN_IF_ERROR(rondo__device_control_prepare(executor, &planner, plan, n, request,
                                                      out_kernel, &refusal));
    }
    *out_class = *out_kernel != NULL ? 0 : 1 + RONDO__BYPASS_CONTROL;
    if (*out_kernel != NULL) {
        return RONDO_STATUS_OK;
    }
    if (plan->refusals == NULL) {
        // One for each copy between sides, too (rondo__crossing_insert): a value has one at most.
        const size_t most = plan->program->node_count + plan->program->value_count;
        plan->refusals = rondo__calloc(most, sizeof *plan->refusals);
    }
    if (plan->refusals != NULL) {
        plan->refusals[n] = rondo__strdup(refusal.text);
    }
    return plan->refusals != NULL && plan->refusals[n] != NULL ? RONDO_STATUS_OK
                                                               : RONDO_STATUS_NO_MEMORY;
}

// Where a kernel of the device or the processor was wanted, and there is none: the reference runs
// between segments, if that is allowed.
static rondo_status bypass(rondo__plan *plan, size_t n, int8_t *out_class) {
    const rondo__node *node = &plan->program->nodes[n];
    if (!rondo__op_has_compute(node->op.def)) {
        return rondo__op_fail_unsupported(&node->op, "there is neither a kernel nor a reference");
    }
    RONDO_LOG_INFO_F("%s runs on the host, between segments: %s", rondo__node_describe(node),
                     plan->homes[n].reason != NULL ? plan->homes[n].reason : "");
    *out_class = 1 + RONDO__BYPASS_HOSTED;
    return RONDO_STATUS_OK;
}

// An item of the processor in a plan of a GPU. What draws, and what is in a body that a graph
// holds, runs between segments.
static rondo_status host_node(rondo_executor *executor, rondo__plan *plan, size_t n,
                              const rondo__kernel_request *request, bool draws, int8_t *out_class,
                              rondo__kernel **out_kernel) {
    if (draws || !rondo__executor_has_two_sides(executor)) {
        return bypass(plan, n, out_class);
    }
    *out_class = 0;
    return rondo__hosted_prepare(executor, plan, request, &plan->program->nodes[n], out_kernel);
}

// Prepares the kernel of a node whose shapes are known and which has work to do.
static rondo_status prepare_kernel(rondo_executor *executor, rondo__plan *plan, size_t n,
                                   rondo__kernel_request *request, int8_t *out_class,
                                   rondo__kernel **out_kernel) {
    const rondo__node *node = &plan->program->nodes[n];
    rondo__op_device *home = &plan->homes[n];
    const bool is_host = rondo_device_is_host(executor->device);
    const bool draws = rondo__op_draws(&node->op, request->inputs, request->input_count);
    if (draws) {
        RETURN_IF_ERROR(rondo__executor_get_generator(executor, node, &request->generator));
    }
    if (home->place == RONDO__PLACE_CPU && !is_host) {
        return host_node(executor, plan, n, request, draws, out_class, out_kernel);
    }
    const bool is_far = request->device != executor->device;
    if (is_far && draws) {
        return rondo__op_device_refuse(
            node, home,
            "it draws random numbers, and generators are on the executor's "
            "GPU");
    }
    if (is_far && !rondo__executor_has_two_sides(executor)) {
        *out_class = 1 + RONDO__BYPASS_HOSTED;  // no part of a graph of one device
        return RONDO_STATUS_OK;
    }
    const size_t weight_count = request->weights->count;
    const size_t brought_count = rondo__spill_count(plan);
    const uint64_t used = get_private_bytes(executor);
    rondo_status status = rondo__kernel_prepare(request, out_kernel);
    if (status == RONDO_STATUS_OK) {
        plan->private_bytes += get_private_bytes(executor) - used;
        *out_class = rondo__verdict_allows(request->device, &node->op, *out_kernel,
                                           executor->graphs == RONDO_GRAPHS_ON)
                         ? 0
                         : 1 + RONDO__BYPASS_EAGER;
        return RONDO_STATUS_OK;
    }
    rondo__weight_list_cut(request->weights, weight_count);
    rondo__spill_cut(plan, brought_count);
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
    return host_node(executor, plan, n, request, draws, out_class, out_kernel);
}

// Decides how node `n` runs, and prepares its kernel when it has one.
static rondo_status classify(rondo_executor *executor, rondo__plan *plan, size_t n,
                             rondo__kernel_request *request, int8_t *out_class,
                             rondo__kernel **out_kernel) {
    const rondo__node *node = &plan->program->nodes[n];
    uint32_t flags = node->op.def->flags;
    if (rondo__node_is(node, "rondo", "Rest") || rondo__counted_is(node)) {
        *out_class = 1 + (rondo__counted_is(node) ? RONDO__BYPASS_COUNTED : RONDO__BYPASS_CONTROL);
        return RONDO_STATUS_OK;
    }
    if ((flags & RONDO__OP_CONTROL) != 0) {
        return classify_control(executor, plan, n, request, out_class, out_kernel);
    }
    bool all_known = true;
    for (size_t i = 0; i < node->input_count; ++i) {
        all_known = all_known && is_known(plan->program, node->inputs[i]);
    }
    bool is_empty = true;   // every wanted output has no elements
    bool is_single = true;  // only output 0 is wanted
    for (size_t i = 0; i < node->output_count; ++i) {
        all_known = all_known && is_known(plan->program, node->outputs[i]);
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
        *out_class = 1 + (has_objects(request) ? RONDO__BYPASS_OBJECTS : RONDO__BYPASS_DYNAMIC);
        return RONDO_STATUS_OK;
    }
    const bool draws = rondo__op_draws(&node->op, request->inputs, request->input_count);
    if (is_empty || (!draws && (flags & RONDO__OP_VIEW) != 0 && is_single && node->inputs[0] >= 0 &&
                     request->inputs[0].dtype == request->outputs[0].dtype)) {
        *out_class = -1;
        return RONDO_STATUS_OK;
    }
    const rondo_status status = prepare_kernel(executor, plan, n, request, out_class, out_kernel);
    if (status != RONDO_STATUS_OK) {
        blame_weights(node, status, request);
    }
    return status;
}

// Says what will be prepared, to who compiles some of it meanwhile.
static void survey_nodes(rondo_executor *executor, rondo__plan *plan, rondo__tensor_info *inputs,
                         rondo__tensor_info *outputs, const uint32_t *uses) {
    const bool is_host = rondo_device_is_host(executor->device);
    for (size_t n = 0; n < plan->program->node_count && !is_host; ++n) {
        rondo__kernel_request request;
        fill_request(executor, plan, n, inputs, outputs, uses, &request);
        if (!has_objects(&request)) {
            rondo__kernel_survey(&request);
        }
    }
}

static rondo_status prepare_nodes(rondo_executor *executor, rondo__plan *plan, int8_t *class_of,
                                  rondo__kernel **kernels) {
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
    survey_nodes(executor, plan, infos, infos + widest, uses);
    for (size_t n = 0; n < program->node_count && status == RONDO_STATUS_OK; ++n) {
        rondo__kernel_request request;
        fill_request(executor, plan, n, infos, infos + widest, uses, &request);
        status = rondo__executor_check_cancelled(executor);
        if (status == RONDO_STATUS_OK) {
            status = classify(executor, plan, n, &request, &class_of[n], &kernels[n]);
        }
        plan->random_count += rondo__op_draws(request.op, request.inputs, request.input_count);
        if (executor->options.progress != NULL && executor->depth == 0) {
            executor->options.progress(executor->options.progress_data, "preparing kernels", n + 1,
                                       program->node_count);
        }
    }

free_lists:
    rondo__free(infos);
    rondo__free(uses);
    return status;
}

// The constant where kernels find it: on a GPU in a copy, on the host where it is. `list`: what the
// plan has there.
static rondo_status place_constant(const rondo_executor *executor, const rondo__plan *plan,
                                   int32_t value, rondo__weight_list *list, void **out_address) {
    const rondo_tensor *constant = &plan->program->values[value].constant;
    const rondo__weight_want want = {.constant = constant,
                                     .bytes = rondo_tensor_get_bytes(constant)};
    if (rondo_device_is_host(executor->device)) {
        *out_address = constant->data;
        return RONDO_STATUS_OK;
    }
    const rondo_status status = rondo__weight_list_add(list, &want, out_address);
    if (status != RONDO_STATUS_OK) {
        char shape[96];
        rondo__error_prefix("weights \"%.60s\" %s %s", plan->program->values[value].name,
                            rondo_dtype_get_name(constant->dtype),
                            rondo_shape_format(&constant->shape, shape, sizeof shape));
    }
    return status;
}

// The same on another GPU.
static rondo_status place_far_constant(const rondo_executor *executor, rondo__plan *plan,
                                       rondo__plan_peer *peer, int32_t value) {
    if (plan->slots[value].kind != RONDO__SLOT_CONSTANT) {
        return RONDO_STATUS_OK;
    }
    if (peer->constants == NULL) {
        peer->constants = rondo__calloc(plan->program->value_count, sizeof *peer->constants);
    }
    return peer->constants == NULL
               ? RONDO_STATUS_NO_MEMORY
               : place_constant(executor, plan, value, &peer->weights, &peer->constants[value]);
}

// Constants that kernels read from device memory.
static rondo_status place_constants(rondo_executor *executor, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__node *node = &program->nodes[plan->items[i].node];
        if (rondo__kernel_is_hosted(plan->items[i].kernel)) {
            continue;  // it reads them where they are
        }
        for (size_t k = 0; k < node->input_count; ++k) {
            bool is_owned = k < 64 && (plan->items[i].kernel->owned_inputs >> k & 1u) != 0;
            const int32_t root = node->inputs[k] >= 0 ? plan->slots[node->inputs[k]].root : -1;
            rondo__plan_peer *peer = rondo__plan_get_peer(plan, plan->items[i].side);
            if (root >= 0 && !is_owned && peer != NULL) {
                RETURN_IF_ERROR(place_far_constant(executor, plan, peer, root));
            } else if (root >= 0 && !is_owned && rondo__spill_has(plan, root)) {
                RETURN_IF_ERROR(rondo__spill_add(plan, plan->items[i].node, k, root));
            } else if (root >= 0 && !is_owned) {
                plan->slots[root].needs_device = true;
            }
        }
    }
    // What a part gives out is copied on the device.
    for (size_t i = 0; executor->part != RONDO__PART_NONE && i < program->output_count; ++i) {
        plan->slots[plan->slots[program->outputs[i]].root].needs_device = true;
    }
    for (size_t v = 0; v < program->value_count; ++v) {
        rondo__slot *slot = &plan->slots[v];
        if (slot->kind != RONDO__SLOT_CONSTANT || slot->root != (int32_t)v || !slot->needs_device) {
            continue;
        }
        RETURN_IF_ERROR(place_constant(executor, plan, (int32_t)v, &plan->weights, &slot->address));
    }
    for (size_t v = 0; v < program->value_count; ++v) {
        rondo__slot *slot = &plan->slots[v];
        if (slot->kind == RONDO__SLOT_CONSTANT) {
            slot->address = plan->slots[slot->root].address;
        }
    }
    return RONDO_STATUS_OK;
}

// Where an item of `side` reads a value.
static void *find_input(const rondo__plan *plan, uint8_t side, int32_t value) {
    const rondo__plan_peer *peer = rondo__plan_get_peer(plan, side);
    const rondo__slot *slot = value >= 0 ? &plan->slots[value] : NULL;
    if (slot != NULL && peer != NULL && slot->kind == RONDO__SLOT_CONSTANT) {
        return peer->constants != NULL ? peer->constants[slot->root] : NULL;
    }
    return slot != NULL ? slot->address : NULL;
}

static rondo_status resolve_addresses(rondo__plan *plan) {
    const rondo_program *program = plan->program;
    uint32_t *uses = rondo__calloc(program->value_count + 1, sizeof *uses);
    if (uses == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__program_count_uses(program, uses);
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < plan->item_count; ++i) {
        rondo__item *item = &plan->items[i];
        const rondo__node *node = &program->nodes[item->node];
        item->inputs = rondo__calloc(node->input_count + 1, sizeof *item->inputs);
        item->outputs = rondo__calloc(node->output_count + 1, sizeof *item->outputs);
        if (item->inputs == NULL || item->outputs == NULL) {
            status = RONDO_STATUS_NO_MEMORY;
            break;
        }
        for (size_t k = 0; k < node->input_count; ++k) {
            item->inputs[k] = find_input(plan, item->side, node->inputs[k]);
        }
        for (size_t k = 0; k < node->output_count; ++k) {
            bool is_wanted = node->outputs[k] >= 0 && uses[node->outputs[k]] > 0;
            item->outputs[k] = is_wanted ? plan->slots[node->outputs[k]].address : NULL;
        }
    }
    rondo__free(uses);
    return status;
}

// Tells at each kernel that is launched between graphs, and at the segment before it, why.
static void explain_cuts(const rondo_executor *executor, rondo__plan *plan) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__step *step = &plan->steps[s];
        if (step->kind != RONDO__STEP_BYPASS || step->bypass != RONDO__BYPASS_EAGER) {
            continue;
        }
        const rondo__item *item = &plan->items[step->first_item];
        rondo__verdict_explain(
            rondo_stream_get_device(rondo__step_get_stream(executor, plan, step)),
            &plan->program->nodes[item->node].op, item->kernel, step->reason, sizeof step->reason);
        if (s > 0 && plan->steps[s - 1].kind == RONDO__STEP_SEGMENT) {
            rondo__step_end_at(&plan->steps[s - 1], step);
        }
    }
}

static rondo_status optimise(const rondo_executor *executor, rondo__plan *plan) {
    if (executor->options.op_by_op) {
        return RONDO_STATUS_OK;
    }
    rondo__kernel_traits traits;
    rondo__kernel_get_traits(executor->device, executor->options.dtype, &traits);
    rondo__pass_options options = {.channels_last = traits.prefers_channels_last,
                                   .fuse_bytes = traits.fuses_bytes,
                                   .split_transposed = traits.splits_transposed,
                                   .widen_images = traits.widens_images,
                                   .fuse_convolution = traits.fuses_convolution,
                                   .fuse_matmul = traits.fuses_matmul,
                                   .fuse_attention = traits.fuses_attention,
                                   .fuse_group_norm = traits.fuses_group_norm,
                                   .fuse_concat = traits.fuses_concat,
                                   .fuse_elementwise = traits.fuses_elementwise,
                                   .fuse_norm = traits.fuses_norm,
                                   .add_shortcuts = traits.adds_shortcuts};
    return rondo__program_optimise(plan->program, &options);
}

// The types of the program's inputs, then of its outputs.
static void list_border(const rondo_program *program, rondo_dtype *out_types) {
    for (size_t i = 0; i < program->input_count + program->output_count; ++i) {
        const bool is_input = i < program->input_count;
        rondo__tensor_info info;
        rondo__program_get_info(
            program, is_input ? program->inputs[i] : program->outputs[i - program->input_count],
            &info);
        out_types[i] = info.dtype;
    }
}

// Runs the passes. Whatever they do, the outside sees the types that the model has; so does a
// program around a body.
static rondo_status rewrite(rondo_executor *executor, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    const size_t count = program->input_count + program->output_count;
    rondo_dtype *types = rondo__calloc(2 * count + 1, sizeof *types);
    if (types == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    list_border(program, types);
    rondo_status status = rondo__precision_apply(executor, plan);
    if (status == RONDO_STATUS_OK) {
        status = optimise(executor, plan);
    }
    if (status == RONDO_STATUS_OK) {
        list_border(program, types + count);
    }
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        const bool is_input = i < program->input_count;
        const rondo_program *source = executor->source;
        const int32_t value =
            is_input ? source->inputs[i] : source->outputs[i - program->input_count];
        if (types[i] != types[count + i]) {
            status =
                RONDO_FAIL(INTERNAL, "passes made %s \"%.80s\" %s, it was %s",
                           is_input ? "input" : "output", source->values[value].name,
                           rondo_dtype_get_name(types[count + i]), rondo_dtype_get_name(types[i]));
        }
    }
    rondo__free(types);
    return status;
}

rondo_status rondo__plan_specialise(const rondo_executor *executor, const rondo_tensor *feeds,
                                    rondo_program **out_program, bool *out_wanted) {
    const size_t fold_bytes = executor->options.no_folding ? 0
                              : executor->is_lean          ? RONDO__LEAN_FOLD_BYTES
                                                           : PLAN_FOLD_BYTES_MAX;
    rondo_status status =
        rondo__program_specialise(executor->base, feeds, fold_bytes, out_program, out_wanted);
    while (status == RONDO_STATUS_OK && !executor->options.op_by_op &&
           rondo__program_has_known_branches(*out_program)) {
        rondo_program *whole = *out_program;
        *out_program = NULL;
        status = rondo__pass_branch(whole);
        if (status == RONDO_STATUS_OK) {
            status = rondo__program_specialise(whole, feeds, fold_bytes, out_program, out_wanted);
        }
        rondo_program_destroy(whole);
    }
    return status;
}

// All forms are made.
static void settle_weights(rondo__plan *plan) {
    rondo__weight_list_settle(&plan->weights);
    for (size_t i = 0; i < plan->peer_count; ++i) {
        rondo__weight_list_settle(&plan->peers[i].weights);
    }
}

rondo_status rondo__plan_create(rondo_executor *executor, rondo_program *program,
                                rondo__plan **out_plan) {
    *out_plan = NULL;
    int8_t *class_of = NULL;
    rondo__kernel **kernels = NULL;
    size_t node_count = 0;
    rondo_status status = RONDO_STATUS_OK;
    rondo__plan *plan = rondo__calloc(1, sizeof *plan);
    if (plan == NULL) {
        rondo_program_destroy(program);
        return RONDO_STATUS_NO_MEMORY;
    }
    plan->program = program;
    rondo__weight_list_init(&executor->root->weights, &plan->weights);
    status = rondo__plan_worth_gather(executor, program);
    if (status == RONDO_STATUS_OK) {
        status = rewrite(executor, plan);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_plan;
    }
    status = rondo__counted_split(executor, plan);
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_device_decide(executor, plan);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__spill_decide(executor, plan);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_plan;
    }
    node_count = plan->program->node_count +  // with copies
                 rondo__plan_count_sides(plan) * plan->program->value_count;
    class_of = rondo__calloc(node_count + 1, sizeof *class_of);
    kernels = rondo__calloc(node_count + 1, sizeof(rondo__kernel *));
    if (class_of == NULL || kernels == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto free_lists;
    }
    if (rondo__executor_has_two_sides(executor)) {
        status = rondo__crossing_reserve(plan);
    }
    if (status == RONDO_STATUS_OK) {
        status = prepare_nodes(executor, plan, class_of, kernels);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__crossing_insert(executor, plan, class_of, kernels);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    status = rondo__plan_schedule(plan, class_of);
    if (status != RONDO_STATUS_OK) {
        plan->item_count = 0;
        goto free_lists;
    }
    for (size_t i = 0; i < plan->item_count; ++i) {
        plan->items[i].kernel = kernels[plan->items[i].node];
        kernels[plan->items[i].node] = NULL;
    }
    explain_cuts(executor, plan);
    status = rondo__plan_assign_slots(executor, plan, class_of);
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    status = place_constants(executor, plan);
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    status = resolve_addresses(plan);
    if (status == RONDO_STATUS_OK) {
        status = rondo__spill_plan(executor, plan);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__peers_link(executor, plan);
    }

free_lists:
    for (size_t n = 0; kernels != NULL && n < node_count; ++n) {
        rondo__kernel_destroy(kernels[n]);
    }
    rondo__free(kernels);
    rondo__free(class_of);
free_plan:
    settle_weights(plan);
    if (status == RONDO_STATUS_OK) {
        *out_plan = plan;
    } else {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo__plan_destroy(executor, plan);
        rondo__error_restore(&saved);
    }
    return status;
}
