// executor/run/put_states.c — see put_states.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/put_states.h"

#include <stdint.h>

#include "base/error.h"
#include "executor/state/start_states.h"
#include "tensor/elements.h"

static rondo__state *get_states(const rondo__unit *unit) {
    return unit->depth == 0 ? unit->executor->caller.states : NULL;
}

rondo_status rondo__states_take_feeds(rondo__unit *unit, rondo_tensor *feeds) {
    for (rondo__state *state = get_states(unit); state != NULL; state = state->next) {
        rondo_tensor *feed = &feeds[state->input];
        if (state->value.tensor.dtype == RONDO_DTYPE_NONE && feed->data == NULL &&
            feed->device != NULL) {  // as rondo__state_get_feed says
            RETURN_IF_ERROR(rondo__state_start(unit, state));
        } else if (feed->data != state->value.tensor.data ||
                   feed->device != unit->executor->device ||
                   !rondo_shape_is_equal(&feed->shape, &state->value.tensor.shape)) {
            RETURN_IF_ERROR(rondo__state_set(unit, state, feed));
        }
        *feed = state->value.tensor;
    }
    return RONDO_STATUS_OK;
}

// ---- what a run makes of them -----------------------------------------------------------------

void rondo__states_begin(const rondo__unit *unit, const rondo__plan *plan) {
    for (rondo__state *state = get_states(unit); state != NULL; state = state->next) {
        state->has_spare = false;
        state->is_lost = plan->writes_states && state->output != RONDO__STATE_NO_OUTPUT;
    }
}

static bool overlaps(const rondo_tensor *made, const rondo__roomy *roomy) {
    const uintptr_t from = (uintptr_t)made->data;
    const uintptr_t other = (uintptr_t)roomy->tensor.data;
    return from < other + roomy->bytes && other < from + rondo_tensor_get_bytes(made);
}

// Whether the new value of `state` lies in the memory of another state, which gets a new value,
// too. Most are made in the state's own memory; that is asked first, since a look at all others
// takes the square of their number.
static bool is_borrowed(const rondo__unit *unit, const rondo__state *state,
                        const rondo_tensor *made) {
    bool is = false;
    if (made->data == state->value.tensor.data &&
        rondo_tensor_get_bytes(made) <= state->value.bytes) {
        return false;
    }
    for (const rondo__state *other = get_states(unit); other != NULL; other = other->next) {
        is = is || (other != state && overlaps(made, &other->value));
    }
    return is;
}

static rondo_status view_output(const rondo__fetch *fetch, const rondo__state *state,
                                rondo_tensor *out_made) {
    RETURN_IF_ERROR(rondo__fetch_view(fetch, (size_t)state->output, out_made));
    const rondo_program *program = fetch->plan->program;
    return rondo__dtype_is_plain(out_made->dtype)
               ? RONDO_STATUS_OK
               : RONDO_FAIL(UNSUPPORTED, "output \"%s\" is a %s; a state is a tensor of numbers",
                            program->values[program->outputs[state->output]].name,
                            rondo_dtype_get_name(out_made->dtype));
}

static rondo_status put_borrowed(const rondo__fetch *fetch, rondo__state *state) {
    rondo_tensor made;
    RETURN_IF_ERROR(view_output(fetch, state, &made));
    if (!is_borrowed(fetch->unit, state, &made)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__state_fit_spare(fetch->unit, state, made.dtype, &made.shape));
    state->has_spare = true;
    return rondo__fetch_put_output(fetch, (size_t)state->output, &state->spare.tensor);
}

static rondo_status put_state(const rondo__fetch *fetch, rondo__state *state) {
    rondo_tensor made;
    rondo_stream *stream = fetch->unit->stream;
    if (!state->has_spare) {
        RETURN_IF_ERROR(view_output(fetch, state, &made));
        RETURN_IF_ERROR(rondo__state_fit(fetch->unit, state, made.dtype, &made.shape));
        // The processor copies a late value at once, so outputs that are views of the old value
        // have to be copied out first.
        const rondo__plan *plan = fetch->plan;
        if (plan->slots[plan->program->outputs[state->output]].kind == RONDO__SLOT_DYNAMIC) {
            RETURN_IF_ERROR(rondo_stream_synchronize(stream));
        }
        return made.data == state->value.tensor.data
                   ? RONDO_STATUS_OK
                   : rondo__fetch_put_output(fetch, (size_t)state->output, &state->value.tensor);
    }
    const rondo_tensor *spare = &state->spare.tensor;
    fetch->plan->run.has_put = true;
    RETURN_IF_ERROR(rondo__state_fit(fetch->unit, state, spare->dtype, &spare->shape));
    return rondo_tensor_get_bytes(spare) > 0
               ? rondo_stream_copy(stream, state->value.tensor.data, spare->data,
                                   rondo_tensor_get_bytes(spare), RONDO_COPY_DEVICE_TO_DEVICE)
               : RONDO_STATUS_OK;
}

// Whether the plan wrote the new value where the state lies, as it does for most.
static bool is_there(const rondo__fetch *fetch, const rondo__state *state) {
    const rondo__plan *plan = fetch->plan;
    const rondo__slot *slot = &plan->slots[plan->program->outputs[state->output]];
    return slot->kind == RONDO__SLOT_ARENA && plan->slots[slot->root].is_kept &&
           slot->address == state->value.tensor.data && slot->dtype == state->value.tensor.dtype &&
           rondo_shape_is_equal(&slot->shape, &state->value.tensor.shape);
}

rondo_status rondo__states_put(const rondo__fetch *fetch) {
    for (rondo__state *state = get_states(fetch->unit); state != NULL; state = state->next) {
        state->is_put = state->output == RONDO__STATE_NO_OUTPUT || is_there(fetch, state);
        if (!state->is_put) {
            RETURN_IF_ERROR(put_borrowed(fetch, state));
        }
    }
    for (rondo__state *state = get_states(fetch->unit); state != NULL; state = state->next) {
        state->is_lost = state->is_lost || state->output != RONDO__STATE_NO_OUTPUT;
        if (!state->is_put) {
            RETURN_IF_ERROR(put_state(fetch, state));
        }
    }
    return RONDO_STATUS_OK;
}

// Whether the next run may use the same plan: not if the state has another shape now.
static bool is_taken_again(const rondo__plan *plan, const rondo__state *state) {
    const rondo__slot *slot = &plan->slots[plan->program->inputs[state->input]];
    return rondo_shape_is_equal(&slot->shape, &state->value.tensor.shape);
}

bool rondo__states_are_settled(const rondo__fetch *fetch) {
    bool are = true;
    for (const rondo__state *state = get_states(fetch->unit); state != NULL && are;
         state = state->next) {
        are = state->output == RONDO__STATE_NO_OUTPUT ||
              (!state->has_spare && is_there(fetch, state) && is_taken_again(fetch->plan, state));
    }
    return are;
}

void rondo__states_lose(const rondo__unit *unit) {
    rondo__states_change(unit->executor);
    for (rondo__state *state = get_states(unit); state != NULL; state = state->next) {
        state->is_lost = state->is_lost || state->output != RONDO__STATE_NO_OUTPUT;
    }
}

void rondo__states_end(const rondo__unit *unit, bool has_failed) {
    if (has_failed) {
        rondo__states_change(unit->executor);
    }
    for (rondo__state *state = get_states(unit); state != NULL; state = state->next) {
        state->is_lost = state->is_lost && has_failed;
    }
}
