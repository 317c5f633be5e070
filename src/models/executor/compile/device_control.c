// executor/compile/device_control.c — see device_control.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/device_control.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/device_control_kernel.h"
#include "executor/state/limits.h"
#include "executor/state/run_state.h"
#include "rondo/control.h"

static rondo_status launch_control(rondo__kernel *head, rondo_stream *stream,
                                   const void *const *inputs, void *const *outputs,
                                   void *workspace);

static rondo__control_kernel *as_control(rondo__kernel *kernel) {
    return kernel->launch == launch_control ? (rondo__control_kernel *)kernel : NULL;
}

static rondo__flow_state *get_state(const rondo__control_kernel *c) {
    return (rondo__flow_state *)(void *)c->workspace;
}

static void *get_address(const rondo__control_kernel *c, const rondo__control_piece *at) {
    return at->output != SIZE_MAX ? c->given_outputs[at->output] : c->workspace + at->offset;
}

// Kernels only read it, though tables of addresses do not say so.
static void *get_input(const rondo__control_kernel *c, size_t index) {
    union {
        const void *read_only;
        void *address;
    } input = {.read_only = c->inputs[index]};
    return input.address;
}

// ---- launching --------------------------------------------------------------------------------

static rondo_status copy(rondo_stream *stream, void *to, const void *from, size_t bytes) {
    return bytes > 0 && to != from
               ? rondo_stream_copy(stream, to, from, bytes, RONDO_COPY_DEVICE_TO_DEVICE)
               : RONDO_STATUS_OK;
}

static void *find_feed(const rondo__control_kernel *c, const rondo__body_plan *part, size_t i) {
    const rondo__body_view *view = &part->view;
    const size_t declared = view->attribute->body->declared_count;
    if (i >= declared) {
        return get_input(c, view->captured_first + (i - declared));
    }
    if (i < c->first_feed) {
        return i == 0 ? (void *)&get_state(c)->turn : (void *)&get_state(c)->condition;
    }
    const size_t k = i - c->first_feed;
    return k < c->carried_count ? get_address(c, &c->carried[k].place)
                                : get_address(c, &c->ins[k - c->carried_count].slice);
}

static void bind(rondo__control_kernel *c, size_t p) {
    rondo__body_plan *part = &c->parts[p];
    const rondo_program *body = part->view.attribute->body;
    for (size_t i = 0; i < body->input_count; ++i) {
        c->inputs_of_part[i] = find_feed(c, part, i);
    }
    for (size_t i = 0; c->kind == RONDO__CONTROL_IF && i < c->output_count; ++i) {
        c->outputs_of_part[i] = get_address(c, &c->outputs[i]);
    }
    rondo__body_plan_bind(part, c->workspace + c->arenas[p], c->inputs_of_part, c->outputs_of_part);
    for (size_t i = 0; i < part->plan->item_count; ++i) {
        rondo__control_kernel *inner = as_control(part->plan->items[i].kernel);
        if (inner != NULL) {
            const bool is_outermost = c->kind != RONDO__CONTROL_IF && c->outermost == NULL;
            inner->outermost = is_outermost ? get_state(c) : c->outermost;
        }
    }
}

static rondo_status launch_branch(rondo__control_kernel *c, size_t p, rondo_stream *stream) {
    const rondo__body_plan *part = &c->parts[p];
    RETURN_IF_ERROR(rondo__body_plan_launch(part, stream));
    for (size_t i = 0; i < c->output_count; ++i) {
        if (!rondo__body_plan_makes_in_place(part, i)) {
            RETURN_IF_ERROR(copy(stream, get_address(c, &c->outputs[i]),
                                 rondo__body_plan_get_output(part, i)->address,
                                 c->outputs[i].bytes));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status run_then(rondo_stream *stream, void *user_data) {
    return launch_branch(user_data, 0, stream);
}

static rondo_status run_else(rondo_stream *stream, void *user_data) {
    return launch_branch(user_data, 1, stream);
}

static rondo_status launch_if(rondo__control_kernel *c, rondo_stream *stream) {
    for (size_t p = 0; p < c->part_count; ++p) {
        bind(c, p);
    }
    if (c->is_decided) {
        return launch_branch(c, 0, stream);
    }
    RETURN_IF_ERROR(rondo__flow_choose(&c->kernels, stream, get_state(c), c->inputs[0]));
    return rondo_control_if(stream, &get_state(c)->predicate, run_then, run_else, c);
}

static rondo__flow_loop describe_loop(const rondo__control_kernel *c) {
    rondo__flow_state *state = get_state(c);
    rondo__flow_watch *watch = c->unit->executor->resources.watch;
    const bool counts = c->kind == RONDO__CONTROL_LOOP && watch != NULL;
    return (rondo__flow_loop){
        .state = state,
        .outermost = c->outermost != NULL ? c->outermost : state,
        .watch = watch,
        .fixed_count = c->fixed_count,
        .limit = counts ? rondo__executor_get_loop_limit(c->unit->executor) : 0,
        .owner = (uint64_t)(uintptr_t)c};
}

static rondo_status move_slices(const rondo__control_kernel *c, rondo_stream *stream,
                                rondo__control_sliced *list, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        list[i].move.state = get_state(c);
        RETURN_IF_ERROR(rondo__flow_move(&c->kernels, stream, &list[i].move));
    }
    return RONDO_STATUS_OK;
}

// One turn. New values that lie in memory which others of them, or the next turn, overwrite are
// put aside first.
static rondo_status run_turn(rondo_stream *stream, void *user_data) {
    rondo__control_kernel *c = user_data;
    const rondo__body_plan *part = &c->parts[0];
    RETURN_IF_ERROR(move_slices(c, stream, c->ins, c->in_count));
    RETURN_IF_ERROR(rondo__body_plan_launch(part, stream));
    RETURN_IF_ERROR(move_slices(c, stream, c->outs, c->out_count));
    for (size_t k = 0; k < c->carried_count; ++k) {
        const rondo__control_carried *value = &c->carried[k];
        const void *made = rondo__body_plan_get_output(part, c->first_made + k)->address;
        RETURN_IF_ERROR(copy(stream, get_address(c, &value->staged), made, value->staged.bytes));
    }
    rondo__flow_loop loop = describe_loop(c);
    loop.condition =
        c->kind == RONDO__CONTROL_LOOP ? rondo__body_plan_get_output(part, 0)->address : NULL;
    RETURN_IF_ERROR(rondo__flow_next(&c->kernels, stream, &loop));
    for (size_t k = 0; k < c->carried_count; ++k) {
        const rondo__control_carried *value = &c->carried[k];
        const void *made = value->staged.bytes > 0
                               ? get_address(c, &value->staged)
                               : rondo__body_plan_get_output(part, c->first_made + k)->address;
        RETURN_IF_ERROR(copy(stream, get_address(c, &value->place), made, value->place.bytes));
    }
    return RONDO_STATUS_OK;
}

static rondo_status launch_turns(rondo__control_kernel *c, rondo_stream *stream) {
    for (size_t i = 0; i < c->in_count; ++i) {
        c->ins[i].move.tensor = get_input(c, c->ins[i].index);
        c->ins[i].move.slice = get_address(c, &c->ins[i].slice);
    }
    bind(c, 0);
    for (size_t i = 0; i < c->out_count; ++i) {
        const size_t made = c->first_made + c->outs[i].index;
        c->outs[i].move.tensor = c->given_outputs[c->outs[i].index];
        c->outs[i].move.slice = rondo__body_plan_get_output(&c->parts[0], made)->address;
    }
    for (size_t k = 0; k < c->carried_count; ++k) {
        RETURN_IF_ERROR(copy(stream, get_address(c, &c->carried[k].place),
                             c->inputs[c->first_input + k], c->carried[k].place.bytes));
    }
    rondo__flow_loop loop = describe_loop(c);
    if (c->kind == RONDO__CONTROL_LOOP) {
        loop.count = c->inputs[0];
        loop.condition = c->inputs[1];
    }
    RETURN_IF_ERROR(rondo__flow_enter(&c->kernels, stream, &loop));
    return rondo_control_while(stream, &get_state(c)->predicate, run_turn, c);
}

static rondo_status launch_control(rondo__kernel *head, rondo_stream *stream,
                                   const void *const *inputs, void *const *outputs,
                                   void *workspace) {
    rondo__control_kernel *c = (rondo__control_kernel *)head;
    c->inputs = inputs;
    c->given_outputs = outputs;
    c->workspace = workspace;
    return c->kind == RONDO__CONTROL_IF ? launch_if(c, stream) : launch_turns(c, stream);
}

static void destroy_control(rondo__kernel *head) {
    rondo__control_kernel *c = (rondo__control_kernel *)head;
    for (size_t p = 0; p < RONDO__CONTROL_PART_MAX; ++p) {
        rondo__body_plan_deinit(&c->parts[p]);
    }
    rondo__free(c->outputs);
    rondo__free(c->carried);
    rondo__free(c->ins);
    rondo__free(c->outs);
    rondo__free(c->inputs_of_part);
    rondo__free(c->outputs_of_part);
    rondo__free(c);
}

static const rondo__kernel control_head = {.launch = launch_control,
                                           .destroy = destroy_control,
                                           .capture = RONDO__CAPTURE_YES,
                                           .implementation = "control"};

rondo__control_kernel *rondo__control_kernel_create(rondo__unit *unit) {
    rondo__control_kernel *c = rondo__calloc(1, sizeof *c);
    if (c != NULL) {
        c->head = control_head;
        c->unit = unit;
    }
    return c;
}

const rondo__body_plan *rondo__device_control_get_part(const rondo__kernel *kernel,
                                                       const char *name) {
    const rondo__control_kernel *c = (const rondo__control_kernel *)kernel;
    for (size_t i = 0; kernel->launch == launch_control && i < c->part_count; ++i) {
        if (strcmp(c->parts[i].view.attribute->name, name) == 0) {
            return &c->parts[i];
        }
    }
    return NULL;
}

int64_t rondo__device_control_get_turns(const rondo__kernel *kernel) {
    return kernel->launch == launch_control ? ((const rondo__control_kernel *)kernel)->turn_max : 0;
}

// Puts the node of a kernel into the record, where it is one of the plan's.
static bool blame_kernel(const rondo__plan *plan, uint64_t kernel) {
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__control_kernel *c = as_control(plan->items[i].kernel);
        const bool is_here = (uint64_t)(uintptr_t)plan->items[i].kernel == kernel;
        for (size_t p = 0; c != NULL && !is_here && p < c->part_count; ++p) {
            if (blame_kernel(c->parts[p].plan, kernel)) {  // as deep as bodies nest
                return true;
            }
        }
        if (is_here) {
            rondo__node_blame(rondo__plan_get_node(plan, i));
            return true;
        }
    }
    return false;
}

static rondo_status check_data(const rondo__plan *plan, uint64_t faulty) {
    static const char *const texts[RONDO__FAULT_MASK + 1] = {
        [RONDO__FAULT_INDEX] =
            "an index is outside of its axis; the device went on with one inside",
        [RONDO__FAULT_DIVISOR] = "an element of the divisor is the integer 0; the device made 0",
        [RONDO__FAULT_LABEL] = "a label is no class; the device went on with one that is",
        [RONDO__FAULT_LENGTH] =
            "a length is outside of its axis; the device went on with one inside",
        [RONDO__FAULT_BOX] =
            "a box is in no image of the batch or absurdly large; the device made 0",
    };
    const char *text = texts[faulty & RONDO__FAULT_MASK];
    if (faulty == 0) {
        return RONDO_STATUS_OK;
    }
    const rondo_status status = RONDO_FAIL(BAD_DATA, "%s", text != NULL ? text : "data is wrong");
    (void)(plan != NULL && blame_kernel(plan, faulty & ~(uint64_t)RONDO__FAULT_MASK));
    return status;
}

static rondo_status check_watch(rondo_executor *executor, const rondo__plan *plan) {
    rondo__flow_watch *watch = executor->resources.watch;
    const uint64_t stopped = watch != NULL ? atomic_exchange(&watch->stopped, 0) : 0;
    if (stopped == 0) {
        return watch != NULL ? check_data(plan, atomic_exchange(&watch->faulty, 0))
                             : RONDO_STATUS_OK;
    }
    if (stopped == RONDO__FLOW_CANCELLED) {
        return rondo__executor_fail_cancelled();
    }
    const rondo_status status = rondo__executor_fail_limit(executor);
    (void)(plan != NULL && blame_kernel(plan, stopped));
    return status;
}

rondo_status rondo__device_control_check(rondo_executor *executor, const rondo__plan *plan) {
    rondo__async *async = executor->caller.async;
    const rondo_status status = check_watch(executor, plan);
    if (status != RONDO_STATUS_OK && async != NULL && async->is_under_way) {
        async->stop_status = status;  // it may be a run's that was not waited for
    }
    return status;
}
