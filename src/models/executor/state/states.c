// executor/state/states.c — see states.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/states.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "collective/communicator.h"
#include "executor/state/limits.h"
#include "program/edit.h"
#include "tensor/storage.h"

rondo__state *rondo__state_find(const rondo_executor *executor, size_t input) {
    return executor->caller.state_of != NULL && input < executor->main.source->input_count
               ? executor->caller.state_of[input]
               : NULL;
}

rondo__state *rondo__state_find_read(const rondo__unit *unit, size_t input) {
    return unit->depth == 0 ? rondo__state_find(unit->executor, input) : NULL;
}

void rondo__states_change(rondo_executor *executor) {
    executor->caller.state_changes += 1;
}

// ---- where they lie ---------------------------------------------------------------------------

typedef struct rondo__state_range {
    uintptr_t begin, past;
    bool is_written;
} rondo__state_range;

static int compare_ranges(const void *a, const void *b) {
    const uintptr_t first = ((const rondo__state_range *)a)->begin;
    const uintptr_t second = ((const rondo__state_range *)b)->begin;
    return (first > second) - (first < second);
}

static void list_ranges(rondo__caller *caller) {
    size_t count = 0;
    for (const rondo__state *state = caller->states; state != NULL; state = state->next) {
        const size_t bytes = rondo_tensor_get_bytes(&state->value.tensor);
        if (bytes > 0) {
            const uintptr_t begin = (uintptr_t)state->value.tensor.data;
            caller->ranges[count++] =
                (rondo__state_range){begin, begin + bytes, state->output != RONDO__STATE_NO_OUTPUT};
        }
    }
    if (count > 1) {
        qsort(caller->ranges, count, sizeof *caller->ranges, compare_ranges);
    }
    caller->range_count = count;
    caller->range_changes = caller->state_changes;
}

bool rondo__states_hold(rondo_executor *executor, const rondo_tensor *tensor, bool is_written) {
    rondo__caller *caller = &executor->caller;
    const uintptr_t begin = (uintptr_t)tensor->data;
    const uintptr_t past = begin + rondo_tensor_get_bytes(tensor);
    if (caller->states == NULL) {
        return false;
    }
    if (caller->range_changes != caller->state_changes) {
        list_ranges(caller);
    }
    size_t first = 0;  // of those that end behind `begin`
    for (size_t end = caller->range_count; first < end;) {
        const size_t middle = first + (end - first) / 2;
        if (caller->ranges[middle].past <= begin) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    bool holds = false;
    for (; !holds && first < caller->range_count && caller->ranges[first].begin < past; ++first) {
        holds = !is_written || caller->ranges[first].is_written;
    }
    return holds;
}

// ---- life -------------------------------------------------------------------------------------

rondo_status rondo__state_add(rondo_executor *executor, size_t input, int64_t output) {
    rondo__caller *caller = &executor->caller;
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(caller->ranges, caller->range_capacity, caller->state_count + 1));
    if (caller->state_of == NULL) {
        caller->state_of =
            rondo__calloc(executor->main.source->input_count, sizeof(rondo__state *));
    }
    rondo__state *state = caller->state_of != NULL ? rondo__calloc(1, sizeof *state) : NULL;
    if (state == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    state->input = input;
    state->output = output;
    state->next = caller->states;
    atomic_init(&state->pin_count, 0);
    caller->states = state;
    caller->state_count += 1;
    caller->state_of[input] = state;
    rondo__states_change(executor);
    return RONDO_STATUS_OK;
}

const rondo__state *rondo__state_find_split(const rondo_executor *executor, size_t output) {
    const rondo__state *found = NULL;
    for (const rondo__state *state = executor->caller.has_parts ? executor->caller.states : NULL;
         state != NULL && found == NULL; state = state->next) {
        found = state->is_split && state->output == (int64_t)output ? state : NULL;
    }
    return found;
}

// Whether a node of that op tells of the variable.
static bool is_named(const rondo_program *source, int32_t variable, bool by_gather) {
    bool is = false;
    for (size_t n = 0; n < source->node_count && !is; ++n) {
        const rondo__node *node = &source->nodes[n];
        const bool may =
            rondo__node_is(node, by_gather ? RONDO__FUSED_AllGather : RONDO__FUSED_AllReduce);
        const rondo__attribute *names = may ? rondo__op_find(&node->op, "variables") : NULL;
        for (size_t i = 0; names != NULL && i < names->count && !is; ++i) {
            is = strcmp(names->strings[i], source->values[variable].name) == 0;
        }
    }
    return is;
}

// Notes what ranks have of a variable: its part, where it can be dealt out, or a sum of its own.
static void note_parts(rondo_executor *executor, int32_t variable, rondo__state *state) {
    const rondo_program *source = executor->main.source;
    const rondo_communicator *communicator = executor->options.communicator;
    const int32_t size = communicator != NULL ? rondo__communicator_get_size(communicator) : 1;
    rondo_shape shape;
    if (size > 1 && rondo__value_get_shape(&source->values[variable], &shape)) {
        state->is_split = rondo__part_is_split((size_t)rondo_shape_get_count(&shape), size) &&
                          is_named(source, variable, true);
        state->is_sum = is_named(source, variable, false);
    }
    executor->caller.has_parts = executor->caller.has_parts || rondo__state_has_parts(state);
}

rondo_status rondo__states_add_variables(rondo_executor *executor) {
    const rondo_program *source = executor->main.source;
    for (size_t i = source->variable_count; i-- > 0;) {
        const rondo__variable *variable = &source->variables[i];
        const int64_t output = variable->update >= 0 ? executor->ports.output_of[variable->update]
                                                     : RONDO__STATE_NO_OUTPUT;
        RETURN_IF_ERROR(
            rondo__state_add(executor, (size_t)executor->ports.input_of[variable->value], output));
        note_parts(executor, variable->value, executor->caller.states);
    }
    return RONDO_STATUS_OK;
}

// ---- memory -----------------------------------------------------------------------------------

typedef struct pinned_block {
    rondo_device *device;  // retained
    void *address;
} pinned_block;

static void free_pinned(void *user_data) {
    pinned_block *block = user_data;
    rondo_memory_free(block->device, block->address);
    rondo_device_release(block->device);
    rondo__free(block);
}

// A tensor of the device, in host memory.
static rondo_status make_pinned(rondo_executor *executor, size_t bytes, rondo_tensor *out_block) {
    rondo_storage *storage = NULL;
    pinned_block *block = rondo__calloc(1, sizeof *block);
    if (block == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = rondo__executor_allocate_pinned(executor, bytes, &block->address);
    if (status != RONDO_STATUS_OK) {
        rondo__free(block);
        return status;
    }
    rondo_device_retain(executor->device);
    block->device = executor->device;
    status = rondo__storage_wrap(free_pinned, block, &storage);
    if (status != RONDO_STATUS_OK) {
        rondo__budget_give_back(executor->resources.budget, RONDO__OWNER_PINNED, bytes);
        free_pinned(block);
        return status;
    }
    *out_block = (rondo_tensor){.dtype = RONDO_DTYPE_U8,
                                .shape = {1, {(int64_t)bytes}},
                                .data = block->address,
                                .storage = storage,
                                .device = executor->device};
    return RONDO_STATUS_OK;
}

static void give_back_count(rondo_executor *executor, const rondo__roomy *roomy) {
    if (roomy->is_pinned) {
        rondo__budget_give_back(executor->resources.budget, RONDO__OWNER_PINNED, roomy->bytes);
    } else {
        rondo__budget_give_back(executor->resources.device_budget, RONDO__OWNER_STATE,
                                roomy->bytes);
    }
}

// Memory of the host counts itself; that of a GPU is counted here.
static rondo_status allocate(rondo_executor *executor, size_t bytes, rondo_tensor *out_block) {
    rondo__resources *resources = &executor->resources;
    const rondo_shape shape = {.rank = 1, .extent = {(int64_t)bytes}};
    if (!rondo__budget_take(resources->device_budget, RONDO__OWNER_STATE, bytes)) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const uint64_t refusals = rondo__budget_get_refusals(resources->budget);
    rondo__budget *before = rondo__budget_enter(resources->budget);
    const rondo__owner owner_before = rondo__budget_enter_owner(RONDO__OWNER_STATE);
    const rondo_status status =
        rondo_tensor_init_device(executor->device, RONDO_DTYPE_U8, &shape, out_block);
    (void)rondo__budget_enter_owner(owner_before);
    (void)rondo__budget_enter(before);
    if (status != RONDO_STATUS_OK) {
        rondo__budget_give_back(resources->device_budget, RONDO__OWNER_STATE, bytes);
        rondo__name_largest_on_gpu(resources->device_budget, status);
    }
    return rondo__executor_note_limit(executor, refusals, status);
}

static void give_up(rondo_executor *executor, rondo__roomy *roomy) {
    if (roomy->tensor.storage != NULL) {
        const int64_t taken = rondo__memory_get_thread_bytes();
        rondo_tensor_deinit(&roomy->tensor);
        give_back_count(executor, roomy);
        rondo__memory_set_thread_bytes(taken);
    }
    *roomy = (rondo__roomy){.is_pinned = roomy->is_pinned};
}

static rondo_status take(rondo_executor *executor, bool is_pinned, size_t bytes,
                         rondo_tensor *out_block) {
    const int64_t taken = rondo__memory_get_thread_bytes();
    const rondo_status status =
        is_pinned ? make_pinned(executor, bytes, out_block) : allocate(executor, bytes, out_block);
    rondo__memory_set_thread_bytes(taken);  // no plan's own
    return status;
}

// Takes other memory, as much as `bytes` or, where that is not to be had, as `wanted`. Waits for
// work that still reads the former memory.
static rondo_status move(rondo__unit *unit, rondo__roomy *roomy, size_t wanted, size_t bytes) {
    const bool is_growing = roomy->tensor.storage != NULL;
    rondo_tensor block = {0};
    rondo_status status = take(unit->executor, roomy->is_pinned, bytes, &block);
    size_t taken = bytes;
    if (status != RONDO_STATUS_OK && status != RONDO_STATUS_LOST && bytes > wanted) {
        taken = wanted;
        status = take(unit->executor, roomy->is_pinned, wanted, &block);
    }
    if (status == RONDO_STATUS_OK && is_growing) {
        status = rondo_stream_synchronize(unit->stream);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__roomy unused = {block, taken, roomy->is_pinned};
        give_up(unit->executor, &unused);
        return status;
    }
    block.dtype = roomy->tensor.dtype;
    block.shape = roomy->tensor.shape;
    rondo__states_change(unit->executor);
    give_up(unit->executor, roomy);
    roomy->tensor = block;
    roomy->bytes = taken;
    return RONDO_STATUS_OK;
}

static bool has_room(const rondo__roomy *roomy, size_t bytes) {
    return roomy->tensor.storage != NULL && roomy->bytes >= bytes;
}

// An address that is not NULL. A state that grows will grow again, so it takes twice its former
// memory.
static rondo_status make_room(rondo__unit *unit, rondo__roomy *roomy, size_t bytes) {
    const size_t wanted = bytes > 0 ? bytes : 1;
    const bool may_double = roomy->bytes > wanted / 2 && roomy->bytes <= SIZE_MAX / 4;
    return has_room(roomy, wanted)
               ? RONDO_STATUS_OK
               : move(unit, roomy, wanted, may_double ? 2 * roomy->bytes : wanted);
}

static rondo_status fit(rondo__unit *unit, rondo__roomy *roomy, rondo_dtype dtype,
                        const rondo_shape *shape) {
    const rondo_tensor shell = {.dtype = dtype, .shape = *shape};
    RETURN_IF_ERROR(make_room(unit, roomy, rondo_tensor_get_bytes(&shell)));
    if (roomy->tensor.dtype != dtype || !rondo_shape_is_equal(&roomy->tensor.shape, shape)) {
        rondo__states_change(unit->executor);
    }
    roomy->tensor.dtype = dtype;
    roomy->tensor.shape = shell.shape;
    return RONDO_STATUS_OK;
}

static const char *get_name(const rondo_executor *executor, const rondo__state *state) {
    const rondo_program *source = executor->main.source;
    return source->values[source->inputs[state->input]].name;
}

static rondo_status check_pins(const rondo_executor *executor, const rondo__state *state,
                               size_t bytes) {
    return atomic_load(&state->pin_count) == 0 || state->value.bytes >= bytes
               ? RONDO_STATUS_OK
               : RONDO_FAIL(STATE,
                            "a graph that recorded a run uses the memory of \"%.60s\", which would "
                            "have to grow; reset or destroy the graph first",
                            get_name(executor, state));
}

static rondo_status blame(const rondo_executor *executor, const rondo__state *state,
                          rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        rondo__error_prefix("the variable \"%.60s\"", get_name(executor, state));
    }
    return status;
}

rondo_status rondo__state_fit(rondo__unit *unit, rondo__state *state, rondo_dtype dtype,
                              const rondo_shape *shape) {
    const rondo_tensor shell = {.dtype = dtype, .shape = *shape};
    RETURN_IF_ERROR(check_pins(unit->executor, state, rondo_tensor_get_bytes(&shell)));
    return blame(unit->executor, state, fit(unit, &state->value, dtype, shape));
}

// Copies a value to the memory that is there for it now, and waits.
static rondo_status bring(rondo__unit *unit, const rondo_tensor *from, rondo__state *state) {
    const size_t bytes = rondo_tensor_get_bytes(from);
    if (from->dtype == RONDO_DTYPE_NONE || bytes == 0) {
        return RONDO_STATUS_OK;
    }
    state->is_lost = true;
    RETURN_IF_ERROR(rondo_stream_copy(unit->stream, state->value.tensor.data, from->data, bytes,
                                      RONDO_COPY_DEVICE_TO_DEVICE));
    RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
    state->is_lost = false;
    return RONDO_STATUS_OK;
}

rondo_status rondo__state_reserve(rondo__unit *unit, rondo__state *state, size_t bytes) {
    rondo_tensor former = {0};
    RETURN_IF_ERROR(check_pins(unit->executor, state, bytes));
    if (has_room(&state->value, bytes)) {
        return RONDO_STATUS_OK;
    }
    const bool is_lost = state->is_lost;
    rondo_tensor_share(&state->value.tensor, &former);
    rondo_status status = move(unit, &state->value, bytes, bytes);
    if (status == RONDO_STATUS_OK && !is_lost) {
        status = bring(unit, &former, state);
    }
    rondo_tensor_deinit(&former);
    return blame(unit->executor, state, status);
}

rondo_status rondo__state_fit_spare(rondo__unit *unit, rondo__state *state, rondo_dtype dtype,
                                    const rondo_shape *shape) {
    return blame(unit->executor, state, fit(unit, &state->spare, dtype, shape));
}

rondo_status rondo__state_set(rondo__unit *unit, rondo__state *state, const rondo_tensor *tensor) {
    const bool is_lost = state->is_lost || state->value.tensor.dtype == RONDO_DTYPE_NONE;
    RETURN_IF_ERROR(rondo__state_fit(unit, state, tensor->dtype, &tensor->shape));
    state->is_lost = true;  // until it is there
    rondo__states_change(unit->executor);
    if (rondo_tensor_get_bytes(tensor) > 0 && tensor->data != state->value.tensor.data) {
        RETURN_IF_ERROR(rondo_tensor_copy(unit->stream, tensor, &state->value.tensor));
        if (rondo_tensor_is_on_host(tensor)) {
            RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
        }
    }
    state->is_lost = is_lost && tensor->data == state->value.tensor.data;
    return RONDO_STATUS_OK;
}

uint64_t rondo__states_get_bytes(const rondo_executor *executor) {
    uint64_t bytes = 0;
    for (const rondo__state *state = executor->caller.states; state != NULL; state = state->next) {
        bytes += state->value.bytes + state->spare.bytes;
    }
    return bytes;
}

// ---- the end ----------------------------------------------------------------------------------

void rondo__state_free(rondo_executor *executor, rondo__state *state) {
    rondo__states_change(executor);
    give_up(executor, &state->value);
    give_up(executor, &state->spare);
    executor->caller.state_of[state->input] = NULL;
    executor->caller.state_count -= 1;
    rondo__free(state);
}

void rondo__states_free(rondo_executor *executor) {
    while (executor->caller.states != NULL) {
        rondo__state *state = executor->caller.states;
        executor->caller.states = state->next;
        rondo__state_free(executor, state);
    }
    rondo__free(executor->caller.state_of);
    rondo__free(executor->caller.ranges);
    executor->caller.state_of = NULL;
    executor->caller.ranges = NULL;
}
