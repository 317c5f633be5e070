// cache/governed_step.c — see governed_step.h.
// SPDX-License-Identifier: Apache-2.0
#include "cache/governed_step.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

rondo_status rondo__governed_step_create(rondo_device *device, rondo__governed_step **out_step) {
    rondo__governed_step *step = rondo__calloc(1, sizeof *step);
    *out_step = step;
    if (step == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = rondo__device_time_init(&step->device_time, device);
    if (status != RONDO_STATUS_OK) {
        rondo__free(step);
        *out_step = NULL;
    }
    return status;
}

void rondo__governed_step_destroy(rondo__governed_step *step) {
    if (step != NULL) {
        rondo__device_time_deinit(&step->device_time);
        rondo__free(step);
    }
}

static bool is_eager(rondo__choice choice) {
    return choice < RONDO__CHOICE_CAPTURE;
}

static rondo__cost *get_device_cost(rondo__governed_step *step) {
    return is_eager(step->choice) ? &step->measures.eager_device : &step->measures.replay_device;
}

rondo__choice rondo__governed_step_begin(rondo__governed_step *step, rondo_stream *stream) {
    rondo__measures *m = &step->measures;
    step->choice = rondo__governor_choose(&step->governor, m);
    const bool is_timed = rondo__governor_is_timed(m, step->choice);
    const uint64_t count = is_eager(step->choice) ? m->eager_count : m->held_replay_count;
    step->start_ns = 0;
    if (is_timed && count < RONDO__SAMPLED_FIRST && step->governor.get_ns == NULL) {
        rondo__device_time_begin(&step->device_time, stream, get_device_cost(step));
    } else {
        rondo__device_time_collect(&step->device_time);
    }
    if (is_timed || step->choice == RONDO__CHOICE_CAPTURE) {
        step->start_ns = rondo__clock_now_ns();
    }
    return step->choice;
}

void rondo__governed_step_note_graph(rondo__governed_step *step) {
    if (step->choice == RONDO__CHOICE_CAPTURE) {
        rondo__governor_note_capture(&step->governor, &step->measures,
                                     rondo__clock_now_ns() - step->start_ns);
        step->start_ns = 0;
    }
}

void rondo__governed_step_end(rondo__governed_step *step, rondo_stream *stream, bool is_done) {
    if (!is_done) {
        rondo__device_time_drop(&step->device_time, get_device_cost(step));
        return;
    }
    const uint64_t ns = step->start_ns != 0 ? rondo__clock_now_ns() - step->start_ns : 0;
    rondo__device_time_end(&step->device_time, stream);
    rondo__governor_note_end(&step->governor, &step->measures, step->choice, ns);
}

void rondo__governed_step_lose(rondo__governed_step *step) {
    if (step->measures.reason == RONDO__REASON_HELD) {
        rondo__governor_note_loss(&step->measures, &step->governor.experience);
    } else if (step->choice == RONDO__CHOICE_CAPTURE) {
        rondo__governor_note_failure(&step->measures, &step->governor.experience);
    }
}
