// executor/variables.c — weights and states by name.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/float_scope.h"
#include "collective/communicator.h"
#include "executor/compile/base_form.h"
#include "executor/compile/destroy.h"
#include "executor/compile/retire.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/streamed_weights.h"
#include "executor/run/put_states.h"
#include "executor/run/settle.h"
#include "executor/state/limits.h"
#include "executor/state/start_states.h"
#include "rondo/executor_state.h"
#include "tensor/elements.h"

// ---- names ------------------------------------------------------------------------------------

static int32_t find_value(const rondo__unit *unit, const char *name) {
    return name != NULL ? rondo__program_find_value(unit->source, name) : RONDO__VALUE_NONE;
}

// The index of an input without a default; -1: no such.
static int64_t find_input(const rondo_executor *executor, const char *name) {
    const int32_t value = find_value(&executor->main, name);
    const int64_t index = value >= 0 ? executor->ports.input_of[value] : -1;
    return index < (int64_t)executor->main.source->input_count ? index : -1;
}

static rondo_status fail_unknown(const char *kind, const char *name, const char *call) {
    return RONDO_FAIL_AS(call, INVALID, "the model has no %s \"%.60s\"", kind,
                         name != NULL ? name : "(null)");
}

// ---- bindings ---------------------------------------------------------------------------------

static rondo_status unbind(rondo_executor *executor, size_t input) {
    for (rondo__state **link = &executor->caller.states; *link != NULL; link = &(*link)->next) {
        rondo__state *state = *link;
        if (state->input != input) {
            continue;
        }
        if (atomic_load(&state->pin_count) > 0) {
            return RONDO_FAIL_AS(
                "rondo_executor_bind", STATE,
                "a graph that recorded a run uses what is kept of the input; reset "
                "or destroy the graph first");
        }
        *link = state->next;
        rondo__state_free(executor, state);
        return RONDO_STATUS_OK;
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_types(const rondo_program *program, int32_t output, int32_t input) {
    const rondo__value *from = &program->values[output];
    const rondo__value *to = &program->values[input];
    const bool is_known = from->dtype != RONDO_DTYPE_NONE && to->dtype != RONDO_DTYPE_NONE;
    if (is_known && from->dtype != to->dtype) {
        return RONDO_FAIL_AS("rondo_executor_bind", INVALID, "output \"%s\" is %s, input \"%s\" %s",
                             from->name, rondo_dtype_get_name(from->dtype), to->name,
                             rondo_dtype_get_name(to->dtype));
    }
    return to->dtype == RONDO_DTYPE_NONE || rondo__dtype_is_plain(to->dtype)
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_executor_bind", INVALID,
                               "input \"%s\" is a %s; a state is a tensor of numbers", to->name,
                               rondo_dtype_get_name(to->dtype));
}

rondo_status rondo_executor_bind(rondo_executor *executor, const char *output, const char *input) {
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    const int64_t to = find_input(executor, input);
    if (to < 0) {
        return fail_unknown("input without a default", input, __func__);
    }
    RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
    if (output == NULL) {
        return unbind(executor, (size_t)to);
    }
    const int32_t value = find_value(&executor->main, output);
    const int64_t from = value >= 0 ? executor->ports.output_of[value] : -1;
    if (from < 0) {
        return fail_unknown("output", output, __func__);
    }
    rondo__state *state = rondo__state_find(executor, (size_t)to);
    const bool is_free = state != NULL && state->output == RONDO__STATE_NO_OUTPUT;
    if (state != NULL && !is_free) {
        return RONDO_FAIL(INVALID, "input \"%.60s\" is bound already; bind NULL to it first",
                          input);
    }
    RETURN_IF_ERROR(check_types(executor->main.source, value, executor->main.source->inputs[to]));
    if (is_free) {
        state->output = from;
        return RONDO_STATUS_OK;
    }
    return rondo__state_add(executor, (size_t)to, from);
}

rondo_status rondo_executor_reserve_variable(rondo_executor *executor, const char *name,
                                             size_t bytes) {
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    const int64_t input = find_input(executor, name);
    rondo__state *state = input >= 0 ? rondo__state_find(executor, (size_t)input) : NULL;
    if (state == NULL) {
        return fail_unknown("variable or bound input", name, __func__);
    }
    RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
    return rondo__state_reserve(&executor->main, state, bytes);
}

// ---- reading ----------------------------------------------------------------------------------

static rondo_status fail_in_parts(const rondo_executor *executor, const rondo__state *state,
                                  const char *name) {
    const rondo_communicator *communicator = executor->options.communicator;
    const int32_t rank = rondo__communicator_get_rank(communicator);
    const int32_t size = rondo__communicator_get_size(communicator);
    if (state->is_sum) {
        return RONDO_FAIL_AS("rondo_executor_get_variable", STATE,
                             "\"%.60s\" holds the gradients of rank %d of %d alone; all ranks call "
                             "rondo_executor_gather_variables first",
                             name, (int)rank, (int)size);
    }
    return RONDO_FAIL_AS("rondo_executor_get_variable", STATE,
                         "rank %d of %d has its part of \"%.60s\" alone, rank %d the next, as each "
                         "updates its own; all ranks call rondo_executor_gather_variables first",
                         (int)rank, (int)size, name, (int)((rank + 1) % size));
}

static rondo_status get_state(rondo__unit *unit, rondo__state *state, rondo_tensor *out_tensor) {
    rondo_tensor feed = {0};
    const char *name = unit->source->values[unit->source->inputs[state->input]].name;
    RETURN_IF_ERROR(rondo__state_get_feed(unit->executor, state, &feed));
    if (!rondo__state_is_whole(unit->executor, state)) {
        return fail_in_parts(unit->executor, state, name);
    }
    if (feed.dtype == RONDO_DTYPE_NONE) {
        return RONDO_FAIL_AS("rondo_executor_get_variable", STATE,
                             "the state of input \"%s\" has no value yet", name);
    }
    if (feed.data == NULL) {
        RETURN_IF_ERROR(rondo__executor_settle(unit->executor, "rondo_executor_get_variable"));
        RETURN_IF_ERROR(rondo__state_start(unit, state));
        RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
    }
    rondo_tensor_share(&state->value.tensor, out_tensor);
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_get_variable(rondo_executor *executor, const char *name,
                                         rondo_tensor *out_tensor) {
    if (executor == NULL || out_tensor == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", executor == NULL ? "executor" : "out_tensor");
    }
    *out_tensor = (rondo_tensor){0};
    const int64_t input = find_input(executor, name);
    rondo__state *state = input >= 0 ? rondo__state_find(executor, (size_t)input) : NULL;
    if (state != NULL) {
        return get_state(&executor->main, state, out_tensor);
    }
    const int32_t value = find_value(&executor->main, name);
    if (value < 0 || executor->main.source->values[value].constant.dtype == RONDO_DTYPE_NONE) {
        return fail_unknown("parameter, constant or bound input", name, __func__);
    }
    rondo_tensor_share(&executor->main.source->values[value].constant, out_tensor);
    return RONDO_STATUS_OK;
}

// ---- replacing --------------------------------------------------------------------------------

static rondo_status set_state(rondo__unit *unit, rondo__state *state, const char *name,
                              const rondo_tensor *tensor) {
    const rondo__value *declared = &unit->source->values[unit->source->inputs[state->input]];
    if (!rondo_tensor_is_on_host(tensor) && tensor->device != unit->executor->device) {
        return RONDO_FAIL_AS("rondo_executor_set_variable", INVALID,
                             "the tensor for \"%s\" lies on %s, the executor runs on %s", name,
                             rondo_device_get_name(tensor->device),
                             rondo_device_get_name(unit->executor->device));
    }
    if (tensor->data == NULL && rondo_tensor_get_bytes(tensor) > 0) {
        return RONDO_FAIL_AS("rondo_executor_set_variable", INVALID,
                             "the tensor for \"%s\" has no data", name);
    }
    if (declared->dtype != RONDO_DTYPE_NONE && declared->dtype != tensor->dtype) {
        return RONDO_FAIL_AS("rondo_executor_set_variable", INVALID, "\"%s\" is %s, the tensor %s",
                             name, rondo_dtype_get_name(declared->dtype),
                             rondo_dtype_get_name(tensor->dtype));
    }
    bool fits = !declared->has_shape || declared->rank == tensor->shape.rank;
    for (int32_t d = 0; fits && declared->has_shape && d < declared->rank; ++d) {
        fits = declared->dims[d].number < 0 || declared->dims[d].number == tensor->shape.extent[d];
    }
    if (!fits) {
        char have[96];
        char want[128];
        return RONDO_FAIL_AS("rondo_executor_set_variable", INVALID,
                             "\"%s\" has shape %s, the tensor %s", name,
                             rondo__value_format_shape(unit->source, declared, want, sizeof want),
                             rondo_shape_format(&tensor->shape, have, sizeof have));
    }
    RETURN_IF_ERROR(rondo__state_set(unit, state, tensor));
    state->whole_at = unit->executor->caller.part_runs;
    return rondo_stream_synchronize(unit->stream);
}

static rondo_status check_parameter(const rondo__value *value, const rondo_tensor *tensor) {
    const rondo_tensor *former = &value->constant;
    char have[96];
    char want[96];
    if (!rondo_tensor_is_on_host(tensor)) {
        return RONDO_FAIL_AS("rondo_executor_set_variable", INVALID,
                             "the tensor for \"%s\" lies on %s; parameters come from host memory",
                             value->name, rondo_device_get_name(tensor->device));
    }
    if (tensor->dtype != former->dtype || !rondo_shape_is_equal(&tensor->shape, &former->shape)) {
        return RONDO_FAIL_AS("rondo_executor_set_variable", INVALID,
                             "\"%s\" is %s %s, the tensor %s %s", value->name,
                             rondo_dtype_get_name(former->dtype),
                             rondo_shape_format(&former->shape, want, sizeof want),
                             rondo_dtype_get_name(tensor->dtype),
                             rondo_shape_format(&tensor->shape, have, sizeof have));
    }
    return tensor->data != NULL || rondo_tensor_get_bytes(tensor) == 0
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_executor_set_variable", INVALID,
                               "the tensor for \"%s\" has no data", value->name);
}

// The part of an executor that comes from its program.
typedef struct roots {
    rondo_program *source;
    rondo__weight_store *store;
    rondo__base *base_form;
    const rondo_program *base;
} roots;

static roots get_roots(const rondo_executor *executor) {
    return (roots){executor->main.source, executor->resources.weights.store,
                   executor->main.base_form, executor->main.base};
}

static void set_roots(rondo_executor *executor, const roots *r) {
    executor->main.source = r->source;
    executor->resources.weights.store = r->store;
    executor->main.base_form = r->base_form;
    executor->main.base = r->base;
}

static void release_roots(rondo_executor *executor, const roots *r) {
    rondo__shared_release_base(r->source, r->base_form, executor->resources.budget);
    rondo__shared_release_store(r->source, r->store);
    rondo_program_destroy(r->source);
}

// Puts the executor on another program, which it takes, with the same values. No plan is left.
static rondo_status move_to(rondo_executor *executor, rondo_program *program) {
    // Frees shared parts of the former program, which are made again when needed.
    rondo__host_ops_free(executor);
    rondo__other_gpus_forget_weights(executor);
    rondo__streamed_free(executor);
    const roots former = get_roots(executor);
    roots fresh = {.source = program};
    rondo_status status =
        rondo__shared_acquire_store(program, executor->device, RONDO_MEMORY_DEVICE, &fresh.store);
    if (status == RONDO_STATUS_OK) {
        set_roots(executor, &fresh);
        rondo__budget *before = rondo__budget_enter(executor->resources.budget);
        const rondo__float_scope scope = rondo__float_enter();
        status = rondo__unit_make_base(&executor->main);
        rondo__float_leave(&scope);
        (void)rondo__budget_enter(before);
    }
    if (status != RONDO_STATUS_OK) {
        set_roots(executor, &former);
        release_roots(executor, &fresh);
        return status;
    }
    release_roots(executor, &former);
    return RONDO_STATUS_OK;
}

static rondo_status replace(rondo__unit *unit, int32_t value, const rondo_tensor *tensor) {
    RETURN_IF_ERROR(check_parameter(&unit->source->values[value], tensor));
    if (rondo__executor_is_pinned(unit->executor)) {
        return RONDO_FAIL_AS("rondo_executor_set_variable", STATE,
                             "a graph that recorded a run of the executor uses \"%s\"; reset or "
                             "destroy the graph first",
                             unit->source->values[value].name);
    }
    rondo_tensor copy;
    rondo_program *program = NULL;
    RETURN_IF_ERROR(rondo__tensor_copy(tensor, &copy));
    rondo_status status = rondo__program_replace_constant(unit->source, value, &copy, &program);
    rondo_tensor_deinit(&copy);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    rondo__executor_drop_plans(unit->executor);
    status = move_to(unit->executor, program);
    return status;
}

rondo_status rondo_executor_set_variable(rondo_executor *executor, const char *name,
                                         const rondo_tensor *tensor) {
    if (executor == NULL || tensor == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", executor == NULL ? "executor" : "tensor");
    }
    RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
    const int64_t input = find_input(executor, name);
    rondo__state *state = input >= 0 ? rondo__state_find(executor, (size_t)input) : NULL;
    if (state != NULL) {
        return set_state(&executor->main, state, name, tensor);
    }
    const int32_t value = find_value(&executor->main, name);
    if (value < 0 || executor->main.source->values[value].constant.dtype == RONDO_DTYPE_NONE) {
        return fail_unknown("parameter, constant or bound input", name, __func__);
    }
    return replace(&executor->main, value, tensor);
}

// ---- all of them ------------------------------------------------------------------------------

rondo_status rondo_executor_reset_variables(rondo_executor *executor) {
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
    for (rondo__state *state = executor->caller.states; state != NULL; state = state->next) {
        if (rondo__state_has_start(executor, state)) {
            RETURN_IF_ERROR(rondo__state_start(&executor->main, state));
            state->whole_at = executor->caller.part_runs;
        }
    }
    return rondo_stream_synchronize(executor->main.stream);
}

// Lets the variables of a program start with what the executor has of them.
static rondo_status take_values(rondo_executor *executor, rondo_program *program) {
    for (rondo__state *state = executor->caller.states; state != NULL; state = state->next) {
        rondo__variable *variable =
            rondo__program_find_variable(program, program->inputs[state->input]);
        rondo_tensor now = {0};
        if (variable == NULL || (state->value.tensor.dtype == RONDO_DTYPE_NONE && !state->is_lost &&
                                 !rondo__state_has_start(executor, state))) {
            continue;
        }
        RETURN_IF_ERROR(get_state(&executor->main, state, &now));
        rondo_tensor copy = {0};
        rondo_status status = rondo_tensor_init(now.dtype, &now.shape, &copy);
        if (status == RONDO_STATUS_OK) {
            status = rondo_tensor_copy(executor->main.stream, &now, &copy);
        }
        if (status == RONDO_STATUS_OK) {
            status = rondo_stream_synchronize(executor->main.stream);
        }
        rondo_tensor_deinit(&now);
        if (status != RONDO_STATUS_OK) {
            rondo_tensor_deinit(&copy);
            return status;
        }
        rondo_tensor_deinit(&variable->first);
        variable->first = copy;
        variable->start = (rondo_start){.struct_size = sizeof variable->start,
                                        .kind = RONDO_START_TENSOR,
                                        .tensor = &variable->first};
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_snapshot(rondo_executor *executor, rondo_program **out_program) {
    if (executor == NULL || out_program == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", executor == NULL ? "executor" : "out_program");
    }
    *out_program = NULL;
    rondo_program *program = NULL;
    RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
    RETURN_IF_ERROR(rondo__program_clone_whole(executor->main.source, &program));
    const rondo_status status = take_values(executor, program);
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(program);
        return status;
    }
    *out_program = program;
    return RONDO_STATUS_OK;
}
