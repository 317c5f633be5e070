// executor/run/states.c — see states.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/states.h"

#include "base/error.h"
#include "base/memory.h"
#include "tensor/elements.h"

rondo__state *rondo__state_find(const rondo_executor *executor, size_t input) {
    rondo__state *state = executor->root->caller.states;
    while (state != NULL && state->input != input) {
        state = state->next;
    }
    return state;
}

// Lets the spare have this dtype and shape. What it was may still be read by a run under way.
static rondo_status fit_spare(rondo_executor *executor, rondo__state *state,
                              const rondo_tensor *made) {
    if (state->spare.dtype == made->dtype &&
        rondo_shape_is_equal(&state->spare.shape, &made->shape)) {
        return RONDO_STATUS_OK;
    }
    if (state->spare.dtype != RONDO_DTYPE_NONE) {
        RETURN_IF_ERROR(rondo_stream_synchronize(executor->stream));
        rondo_tensor_deinit(&state->spare);
    }
    return rondo_tensor_init_device(executor->device, made->dtype, &made->shape, &state->spare);
}

static rondo_status put_state(const rondo__fetch *fetch, rondo__state *state) {
    rondo_tensor made;
    RETURN_IF_ERROR(rondo__fetch_view(fetch, state->output, &made));
    if (!rondo__dtype_is_plain(made.dtype)) {
        return RONDO_FAIL(
            UNSUPPORTED, "output \"%s\" is a %s; a state is a tensor of numbers",
            fetch->plan->program->values[fetch->plan->program->outputs[state->output]].name,
            rondo_dtype_get_name(made.dtype));
    }
    RETURN_IF_ERROR(fit_spare(fetch->executor, state, &made));
    return rondo__fetch_put_output(fetch, state->output, &state->spare);
}

rondo_status rondo__states_put(const rondo__fetch *fetch) {
    if (fetch->executor->depth > 0) {
        return RONDO_STATUS_OK;
    }
    for (rondo__state *state = fetch->executor->root->caller.states; state != NULL;
         state = state->next) {
        RETURN_IF_ERROR(put_state(fetch, state));
    }
    return RONDO_STATUS_OK;
}

void rondo__states_advance(rondo_executor *executor) {
    rondo__state *state = executor->depth == 0 ? executor->root->caller.states : NULL;
    for (; state != NULL; state = state->next) {
        const rondo_tensor before = state->value;
        state->value = state->spare;
        state->spare = before;
    }
}
