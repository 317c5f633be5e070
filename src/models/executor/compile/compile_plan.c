// executor/compile/compile_plan.c — compiling a plan: specialise, and then the phases of the table
// at the end, one behind the other.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "executor/compile/destroy.h"
#include "executor/compile/place_states.h"
#include "executor/compile/planning.h"
#include "executor/compile/schedule.h"
#include "executor/compile/split_counted.h"
#include "executor/compile/value_slots.h"
#include "executor/devices/op_device.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/ranks.h"
#include "executor/devices/streamed_weights.h"
#include "executor/devices/transfers.h"
#include "executor/state/capture_verdict.h"
#include "executor/state/precision.h"
#include "program/backward/backward.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"

enum { PLAN_FOLD_BYTES_MAX = 64 << 20 };

// Tells at each kernel that is launched between graphs, and at the segment before it, why.
static void explain_cuts(const rondo__unit *unit, rondo__plan *plan) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__step *step = &plan->steps[s];
        if (step->kind != RONDO__STEP_BYPASS || step->bypass != RONDO__BYPASS_EAGER) {
            continue;
        }
        const rondo__item *item = &plan->items[step->first_item];
        rondo__verdict_explain(rondo_stream_get_device(rondo__step_get_stream(unit, plan, step)),
                               &plan->program->nodes[item->node].op, item->kernel, step->reason,
                               sizeof step->reason);
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
                                   .turn_products = traits.turns_products,
                                   .fuse_attention = traits.fuses_attention,
                                   .keep_shares = traits.keeps_shares,
                                   .fuse_group_norm = traits.fuses_group_norm,
                                   .fuse_concat = traits.fuses_concat,
                                   .fuse_elementwise = traits.fuses_elementwise,
                                   .fuse_norm = traits.fuses_norm,
                                   .lay_filters = traits.lays_filters,
                                   .end_batches = traits.ends_batches,
                                   .fuse_rows = traits.fuses_rows,
                                   .fuse_few_rows = traits.fuses_few_rows,
                                   .append_attention = traits.appends_attention,
                                   .add_shortcuts = traits.adds_shortcuts};
    return rondo__program_optimise(plan->program, &options);
}

static rondo_status name_norms(const rondo_executor *executor, rondo__plan *plan) {
    rondo__kernel_traits traits;
    rondo__kernel_get_traits(executor->device, executor->options.dtype, &traits);
    return rondo__program_name_norms(plan->program, traits.fuses_norm);
}

static rondo_status name_gradients(const rondo_executor *executor, rondo__plan *plan) {
    rondo__kernel_traits traits;
    rondo__kernel_get_traits(executor->device, executor->options.dtype, &traits);
    const rondo__backward_options options = {.names_conv_weights = traits.fuses_conv_weights,
                                             .names_conv_back = traits.fuses_conv_back,
                                             .names_attention = traits.fuses_attention_back};
    return traits.fuses_gradients && !executor->options.op_by_op
               ? rondo__program_name_gradients(plan->program, &options)
               : RONDO_STATUS_OK;
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
static rondo_status rewrite(rondo__unit *unit, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    const size_t count = program->input_count + program->output_count;
    rondo_dtype *types = rondo__calloc(2 * count + 1, sizeof *types);
    if (types == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    list_border(program, types);
    rondo_status status = name_gradients(unit->executor, plan);
    if (status == RONDO_STATUS_OK && !unit->executor->options.op_by_op) {
        status = name_norms(unit->executor, plan);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__precision_apply(unit, plan);
    }
    if (status == RONDO_STATUS_OK) {
        status = optimise(unit->executor, plan);
    }
    if (status == RONDO_STATUS_OK) {
        list_border(program, types + count);
    }
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        const bool is_input = i < program->input_count;
        const rondo_program *source = unit->source;
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

rondo_status rondo__plan_specialise(const rondo__unit *unit, const rondo_tensor *feeds,
                                    rondo_program **out_program, uint8_t *wanted) {
    const rondo__value_wants wants = {unit->keys.most, wanted, unit->keys.bounds};
    const size_t fold_bytes = unit->executor->options.no_folding ? 0
                              : unit->is_lean                    ? RONDO__LEAN_FOLD_BYTES
                                                                 : PLAN_FOLD_BYTES_MAX;
    rondo_status status =
        rondo__program_specialise(unit->base, feeds, fold_bytes, out_program, &wants);
    while (status == RONDO_STATUS_OK && !unit->executor->options.op_by_op &&
           rondo__program_has_known_branches(*out_program)) {
        rondo_program *whole = *out_program;
        *out_program = NULL;
        status = rondo__pass_branch(whole);
        if (status == RONDO_STATUS_OK) {
            status = rondo__program_specialise(whole, feeds, fold_bytes, out_program, &wants);
        }
        rondo_program_destroy(whole);
    }
    return status;
}

// ---- the phases -------------------------------------------------------------------------------

static rondo_status gather_worth(rondo__planning *p) {
    return rondo__plan_worth_gather(p->unit, p->plan->program);
}

static rondo_status rewrite_program(rondo__planning *p) {
    return rewrite(p->unit, p->plan);
}

static rondo_status order_states(rondo__planning *p) {
    return rondo__states_order(p->unit, p->plan->program);
}

static rondo_status split_counted(rondo__planning *p) {
    return rondo__counted_split(p->unit, p->plan);
}

static rondo_status decide_devices(rondo__planning *p) {
    return rondo__op_device_decide(p->unit, p->plan);
}

static rondo_status decide_streaming(rondo__planning *p) {
    return rondo__streamed_decide(p->unit, p->plan);
}

static rondo_status insert_transfers(rondo__planning *p) {
    return rondo__transfers_insert(p->unit, p->plan, p->class_of, p->kernels);
}

static rondo_status schedule_nodes(rondo__planning *p) {
    rondo__plan *plan = p->plan;
    const rondo_status status = rondo__plan_schedule(plan, p->class_of);
    if (status != RONDO_STATUS_OK) {
        plan->item_count = 0;
        return status;
    }
    for (size_t i = 0; i < plan->item_count; ++i) {
        plan->items[i].kernel = p->kernels[plan->items[i].node];
        p->kernels[plan->items[i].node] = NULL;
    }
    explain_cuts(p->unit, plan);
    return RONDO_STATUS_OK;
}

static rondo_status assign_slots(rondo__planning *p) {
    return rondo__plan_assign_slots(p->unit, p->plan, p->class_of);
}

static rondo_status plan_streaming(rondo__planning *p) {
    return rondo__streamed_plan(p->unit, p->plan);
}

static rondo_status link_other_gpus(rondo__planning *p) {
    return rondo__other_gpus_link(p->unit, p->plan);
}

static rondo_status list_collectives(rondo__planning *p) {
    return rondo__ranks_plan(p->unit, p->plan);
}

typedef struct phase {
    const char *name;
    rondo_status (*run)(rondo__planning *p);
} phase;

// The first phase behind those that only rewrite the program.
enum { READY_PHASE = 2 };

// Each finds what those before it have made in the plan and in the lists.
static const phase phases[] = {
    {"gather what is worth planning", gather_worth},
    {"rewrite the program", rewrite_program},
    {"order updates of states", order_states},
    {"split ops that count", split_counted},
    {"decide devices", decide_devices},
    {"decide streamed weights", decide_streaming},
    {"classify nodes", rondo__planning_classify_nodes},
    {"insert transfers", insert_transfers},
    {"schedule nodes", schedule_nodes},
    {"assign slots", assign_slots},
    {"place constants", rondo__planning_place_constants},
    {"resolve addresses", rondo__planning_resolve_addresses},
    {"plan streamed weights", plan_streaming},
    {"link other GPUs", link_other_gpus},
    {"list collectives", list_collectives},
};

// All forms are made. The first failure counts, of which `status` may be one.
static rondo_status settle_weights(rondo__plan *plan, rondo_status status) {
    for (size_t i = 0; i <= plan->peer_count; ++i) {
        rondo_error saved;
        rondo__error_save(&saved);
        const rondo_status settled =
            rondo__weight_list_settle(i == 0 ? &plan->weights : &plan->peers[i - 1].weights);
        if (status != RONDO_STATUS_OK) {
            rondo__error_restore(&saved);
        } else {
            status = settled;
        }
    }
    return status;
}

static void free_lists(const rondo__planning *p) {
    for (size_t n = 0; p->kernels != NULL && n < p->node_room; ++n) {
        rondo__kernel_destroy(p->kernels[n]);
    }
    rondo__free(p->kernels);
    rondo__free(p->class_of);
    rondo__free(p->ready);
}

// Takes program and halves.
static rondo_status create(rondo__unit *unit, rondo_program *program, rondo__half_report *halves,
                           size_t first_phase, const rondo__record *kernels,
                           rondo__plan **out_plan) {
    static const rondo__planner planner = {rondo__plan_specialise, rondo__plan_create};
    *out_plan = NULL;
    rondo__plan *plan = rondo__calloc(1, sizeof *plan);
    if (plan == NULL) {
        rondo_program_destroy(program);
        rondo__half_report_deinit(halves);
        return RONDO_STATUS_NO_MEMORY;
    }
    plan->program = program;
    plan->halves = *halves;
    rondo__weight_list_init(&unit->executor->resources.weights, &plan->weights);
    rondo__planning planning = {.unit = unit,
                                .plan = plan,
                                .is_ready = first_phase == READY_PHASE,
                                .ready_kernels = kernels,
                                .planner = &planner};
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = first_phase; i < sizeof phases / sizeof *phases && status == RONDO_STATUS_OK;
         ++i) {
        status = phases[i].run(&planning);
        if (status != RONDO_STATUS_OK) {
            RONDO_LOG_DEBUG_F("no plan: it failed to %s", phases[i].name);
        }
    }
    free_lists(&planning);
    status = settle_weights(plan, status);
    if (status == RONDO_STATUS_OK) {
        *out_plan = plan;
    } else {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo__plan_destroy(unit, plan);
        rondo__error_restore(&saved);
    }
    return status;
}

rondo_status rondo__plan_create(rondo__unit *unit, rondo_program *program, rondo__plan **out_plan) {
    rondo__half_report halves = {0};
    return create(unit, program, &halves, 0, NULL, out_plan);
}

rondo_status rondo__plan_create_ready(rondo__unit *unit, rondo_program *program,
                                      rondo__half_report *halves, const rondo__record *kernels,
                                      rondo__plan **out_plan) {
    return create(unit, program, halves, READY_PHASE, kernels, out_plan);
}

rondo_status rondo__plan_rewrite(rondo__unit *unit, rondo_program *program,
                                 rondo__half_report *out_halves) {
    rondo__plan plan = {.program = program};
    rondo__planning planning = {.unit = unit, .plan = &plan};
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < READY_PHASE && status == RONDO_STATUS_OK; ++i) {
        status = phases[i].run(&planning);
    }
    *out_halves = plan.halves;
    if (status != RONDO_STATUS_OK) {
        rondo__half_report_deinit(out_halves);
    }
    return status;
}
