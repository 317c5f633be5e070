// cache/stepper.c — steps that run, are recorded, or patched, by one call at the place of a
// launch.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/stepper.h"

#include "backend/check.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "cache/governed_step.h"
#include "graph/graph_capture.h"
#include "graph/node/put.h"

typedef struct stepper_node {
    rondo_node handle;
    bool is_off;  // in the executable
} stepper_node;

struct rondo_stepper {
    rondo_graph *graph;
    rondo__governed_step *governed;  // NULL: steps are not measured
    rondo_stream *stream;            // borrowed while a step is open; NULL: none is
    rondo_capture_mode capture_mode;
    uint32_t eager_steps;
    uint32_t eager_count;  // steps that ran eagerly since the last recording was given up
    rondo_stepper_mode mode;
    bool is_spoilt;  // a put of the step failed
    stepper_node *nodes;
    size_t node_count;
    size_t node_capacity;
    size_t put_count;
};

// ---- life -------------------------------------------------------------------------------------

rondo_status rondo_stepper_create(rondo_device *device, const rondo_stepper_options *options,
                                  rondo_stepper **out_stepper) {
    RETURN_IF_ERROR(rondo__check_pointer(out_stepper, __func__, "out_stepper"));
    *out_stepper = NULL;
    rondo_stepper_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(
        rondo__read_options(options, &wanted, sizeof wanted, __func__, "rondo_stepper_options"));
    RETURN_IF_ERROR(rondo__graph_check_mode(wanted.mode, __func__));
    if (wanted.measures && wanted.records_at_once) {
        return RONDO_FAIL(INVALID,
                          "options.measures and options.records_at_once: what is measured begins "
                          "with eager steps");
    }
    rondo_stepper *stepper = rondo__calloc(1, sizeof *stepper);
    if (stepper == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_graph_options graph_options = {
        .struct_size = sizeof graph_options,
        .keep = RONDO_KEEP_TEMPLATE,
        .label = wanted.label != NULL ? wanted.label : "step",
    };
    rondo_status status = rondo_graph_create(device, &graph_options, &stepper->graph);
    if (status == RONDO_STATUS_OK && wanted.measures) {
        status = rondo__governed_step_create(device, false, &stepper->governed);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_graph_destroy(stepper->graph);
        rondo__free(stepper);
        return status;
    }
    stepper->capture_mode = wanted.mode;
    stepper->eager_steps = wanted.records_at_once   ? 0
                           : wanted.eager_steps > 0 ? wanted.eager_steps
                                                    : 1;
    *out_stepper = stepper;
    return RONDO_STATUS_OK;
}

void rondo_stepper_destroy(rondo_stepper *stepper) {
    if (stepper != NULL) {
        rondo_graph_destroy(stepper->graph);
        rondo__governed_step_destroy(stepper->governed);
        rondo__free(stepper->nodes);
        rondo__free(stepper);
    }
}

rondo__governed_step *rondo__stepper_get_governed(rondo_stepper *stepper) {
    return stepper->governed;
}

// ---- a step -----------------------------------------------------------------------------------

static rondo_status refuse_recording(rondo_stream *stream) {
    bool is_recording = false;
    RETURN_IF_ERROR(rondo_stream_is_recording(stream, &is_recording));
    return !is_recording ? RONDO_STATUS_OK
                         : RONDO_FAIL_AS("rondo_stepper_begin", STATE,
                                         "stream %u records already; a stepper makes its own "
                                         "recordings",
                                         (unsigned)stream->number);
}

// The graph is gone, or what was recorded did not become one: the next step is the first again.
static void give_up(rondo_stepper *stepper) {
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_graph_capture_abort(stepper->graph);
    rondo_graph_reset(stepper->graph);
    stepper->node_count = 0;
    stepper->eager_count = 0;
    rondo__error_restore(&saved);
}

static rondo_stepper_mode choose_mode(rondo_stepper *stepper, rondo_stream *stream) {
    const bool is_ready = stepper->graph->state == RONDO__GRAPH_READY;
    if (stepper->governed == NULL) {
        return is_ready                                      ? RONDO_STEPPER_PATCHES
               : stepper->eager_count < stepper->eager_steps ? RONDO_STEPPER_EAGER
                                                             : RONDO_STEPPER_RECORDS;
    }
    switch (rondo__governed_step_begin(stepper->governed, stream)) {
        case RONDO__CHOICE_CAPTURE:
            return RONDO_STEPPER_RECORDS;
        case RONDO__CHOICE_REPLAY:
            return is_ready ? RONDO_STEPPER_PATCHES : RONDO_STEPPER_RECORDS;
        case RONDO__CHOICE_GIVE_UP:
            give_up(stepper);
            break;
        case RONDO__CHOICE_EAGER:
            break;
    }
    return RONDO_STEPPER_EAGER;
}

rondo_status rondo_stepper_begin(rondo_stepper *stepper, rondo_stream *stream) {
    RETURN_IF_ERROR(rondo__check_pointer(stepper, __func__, "stepper"));
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    if (stepper->stream != NULL) {
        return RONDO_FAIL(STATE, "a step was begun already; call rondo_stepper_end first");
    }
    RETURN_IF_ERROR(
        rondo__check_same_device(stepper->graph->device, stream, __func__, "the stepper", NULL));
    RETURN_IF_ERROR(refuse_recording(stream));
    stepper->mode = choose_mode(stepper, stream);
    if (stepper->mode == RONDO_STEPPER_RECORDS) {
        const rondo_status status =
            rondo_graph_capture_begin(stepper->graph, stream, stepper->capture_mode);
        if (status != RONDO_STATUS_OK && stepper->governed != NULL) {
            rondo__governed_step_lose(stepper->governed);
        }
        RETURN_IF_ERROR(status);
    }
    stepper->stream = stream;
    stepper->put_count = 0;
    stepper->is_spoilt = false;
    return RONDO_STATUS_OK;
}

static rondo_status put_eagerly(rondo_stepper *stepper, const rondo_work *given) {
    rondo_work work;
    if (__builtin_expect(given->struct_size == sizeof work && given->kind == RONDO_NODE_KERNEL,
                         1)) {
        return rondo_stream_launch(stepper->stream, given->launch);
    }
    RETURN_IF_ERROR(rondo__put_check(given, RONDO__PUT_STEPS, "rondo_stepper_put", &work));
    return work.kind == RONDO_NODE_CHILD ? rondo_graph_replay(work.graph, stepper->stream)
                                         : rondo__put_work(stepper->stream, &work);
}

static rondo_status put_recorded(rondo_stepper *stepper, const rondo_work *given) {
    rondo_work work;
    RETURN_IF_ERROR(rondo__put_check(given, RONDO__PUT_STEPS, "rondo_stepper_put", &work));
    rondo_status status =
        RONDO__ARRAY_RESERVE(stepper->nodes, stepper->node_capacity, stepper->put_count + 1);
    RETURN_IF_ERROR(status);
    stepper_node *node = &stepper->nodes[stepper->put_count];
    node->is_off = false;
    return rondo_stream_add_node(stepper->stream, &work, &node->handle);
}

static rondo_status refuse_more(const rondo_stepper *stepper) {
    if (stepper->put_count == stepper->node_count) {
        return RONDO_FAIL_AS("rondo_stepper_put", STATE,
                             "the step puts more than the %zu works that were recorded; steps of "
                             "one stepper put the same kinds of work in the same order",
                             stepper->node_count);
    }
    return RONDO_STATUS_OK;
}

static rondo_status put_patch(rondo_stepper *stepper, const rondo_work *work) {
    RETURN_IF_ERROR(refuse_more(stepper));
    // A recorded graph stays as it was.
    if (work->kind == RONDO_NODE_CHILD) {
        return RONDO_STATUS_OK;
    }
    stepper_node *node = &stepper->nodes[stepper->put_count];
    if (!node->is_off) {
        return rondo_graph_patch_node(stepper->graph, node->handle, work);
    }
    const rondo_patch patch = {node->handle, work, RONDO_TOGGLE_ENABLE};
    RETURN_IF_ERROR(rondo_graph_patch(stepper->graph, &patch, 1));
    node->is_off = false;
    return RONDO_STATUS_OK;
}

// Switches a node off whose graph is there.
static rondo_status switch_off(rondo_stepper *stepper, stepper_node *node) {
    const rondo_patch patch = {node->handle, NULL, RONDO_TOGGLE_DISABLE};
    return rondo_graph_patch(stepper->graph, &patch, 1);
}

static rondo_status skip_patch(rondo_stepper *stepper) {
    RETURN_IF_ERROR(refuse_more(stepper));
    stepper_node *node = &stepper->nodes[stepper->put_count];
    if (!node->is_off) {
        RETURN_IF_ERROR(switch_off(stepper, node));
        node->is_off = true;
    }
    return RONDO_STATUS_OK;
}

// It is switched off when the recording has ended.
static rondo_status skip_recorded(rondo_stepper *stepper, const rondo_work *work) {
    RETURN_IF_ERROR(put_recorded(stepper, work));
    stepper->nodes[stepper->put_count].is_off = true;
    return RONDO_STATUS_OK;
}

static rondo_status check_skip(const rondo_work *given) {
    static const char call[] = "rondo_stepper_skip";
    rondo_work work;
    RETURN_IF_ERROR(rondo__put_check(given, RONDO__PUT_STEPS, call, &work));
    return work.kind == RONDO_NODE_KERNEL || work.kind == RONDO_NODE_COPY ||
                   work.kind == RONDO_NODE_FILL
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, UNSUPPORTED,
                               "%s cannot be switched off; kernels, copies and fills can",
                               work.kind == RONDO_NODE_HOST ? "host functions" : "graphs");
}

rondo_status rondo_stepper_skip(rondo_stepper *stepper, const rondo_work *work) {
    RETURN_IF_ERROR(rondo__check_pointer(stepper, __func__, "stepper"));
    if (stepper->stream == NULL) {
        return RONDO_FAIL(STATE, "no step was begun; call rondo_stepper_begin first");
    }
    rondo_status status = check_skip(work);
    if (status == RONDO_STATUS_OK && stepper->mode != RONDO_STEPPER_EAGER) {
        status = stepper->mode == RONDO_STEPPER_RECORDS ? skip_recorded(stepper, work)
                                                        : skip_patch(stepper);
    }
    ++stepper->put_count;
    stepper->is_spoilt = stepper->is_spoilt || status != RONDO_STATUS_OK;
    return status;
}

rondo_status rondo_stepper_put(rondo_stepper *stepper, const rondo_work *work) {
    RETURN_IF_ERROR(rondo__check_pointer(stepper, __func__, "stepper"));
    if (stepper->stream == NULL) {
        return RONDO_FAIL(STATE, "no step was begun; call rondo_stepper_begin first");
    }
    rondo_status status = rondo__check_pointer(work, __func__, "work");
    if (status == RONDO_STATUS_OK) {
        status = stepper->mode == RONDO_STEPPER_EAGER     ? put_eagerly(stepper, work)
                 : stepper->mode == RONDO_STEPPER_RECORDS ? put_recorded(stepper, work)
                                                          : put_patch(stepper, work);
    }
    ++stepper->put_count;
    stepper->is_spoilt = stepper->is_spoilt || status != RONDO_STATUS_OK;
    return status;
}

// ---- the end ----------------------------------------------------------------------------------

// The same for another reason than time.
static void lose(rondo_stepper *stepper) {
    give_up(stepper);
    if (stepper->governed != NULL) {
        rondo__governed_step_lose(stepper->governed);
    }
}

static rondo_status end_patched(rondo_stepper *stepper) {
    if (stepper->put_count < stepper->node_count) {
        return RONDO_FAIL_AS("rondo_stepper_end", STATE,
                             "the step put %zu works of the %zu that were recorded; steps of one "
                             "stepper put the same kinds of work in the same order",
                             stepper->put_count, stepper->node_count);
    }
    return rondo_graph_replay(stepper->graph, stepper->stream);
}

static rondo_status end_recorded(rondo_stepper *stepper) {
    RETURN_IF_ERROR(rondo_graph_capture_end(stepper->graph));
    stepper->node_count = stepper->put_count;
    for (size_t i = 0; i < stepper->node_count; ++i) {
        if (stepper->nodes[i].is_off) {
            RETURN_IF_ERROR(switch_off(stepper, &stepper->nodes[i]));
        }
    }
    if (stepper->governed != NULL) {
        rondo__governed_step_note_graph(stepper->governed);
    }
    return rondo_graph_replay(stepper->graph, stepper->stream);
}

rondo_status rondo_stepper_end(rondo_stepper *stepper) {
    RETURN_IF_ERROR(rondo__check_pointer(stepper, __func__, "stepper"));
    if (stepper->stream == NULL) {
        return RONDO_FAIL(STATE, "no step was begun; call rondo_stepper_begin first");
    }
    rondo_status status = RONDO_STATUS_OK;
    if (stepper->is_spoilt) {
        status = RONDO_FAIL(STATE, "a work of the step could not be put, so the step is not whole");
    } else if (stepper->mode == RONDO_STEPPER_EAGER) {
        ++stepper->eager_count;
    } else {
        status =
            stepper->mode == RONDO_STEPPER_RECORDS ? end_recorded(stepper) : end_patched(stepper);
    }
    if (stepper->governed != NULL) {
        rondo__governed_step_end(stepper->governed, stepper->stream, status == RONDO_STATUS_OK);
    }
    if (status != RONDO_STATUS_OK && stepper->mode != RONDO_STEPPER_EAGER) {
        lose(stepper);
    }
    stepper->stream = NULL;
    return status;
}

rondo_status rondo_stepper_reset(rondo_stepper *stepper) {
    RETURN_IF_ERROR(rondo__check_pointer(stepper, __func__, "stepper"));
    if (stepper->stream != NULL) {
        return RONDO_FAIL(STATE, "a step was begun; call rondo_stepper_end first");
    }
    lose(stepper);
    stepper->mode = RONDO_STEPPER_EAGER;
    return RONDO_STATUS_OK;
}

rondo_stepper_mode rondo_stepper_get_mode(const rondo_stepper *stepper) {
    return stepper != NULL ? stepper->mode : RONDO_STEPPER_EAGER;
}

rondo_graph *rondo_stepper_get_graph(const rondo_stepper *stepper) {
    return stepper != NULL ? stepper->graph : NULL;
}

rondo_status rondo_stepper_describe(const rondo_stepper *stepper, rondo_text_format format,
                                    rondo_write_function write, void *user_data) {
    RETURN_IF_ERROR(rondo__check_pointer(stepper, __func__, "stepper"));
    if (write == NULL) {
        return rondo__check_fail_null(__func__, "write");
    }
    if (format != RONDO_TEXT_PLAIN && format != RONDO_TEXT_JSON) {
        return RONDO_FAIL(INVALID, "a stepper is written as RONDO_TEXT_PLAIN or _JSON");
    }
    rondo__text text = {0};
    if (stepper->governed != NULL) {
        rondo__governed_step_describe(stepper->governed, &text, format == RONDO_TEXT_JSON);
    } else {
        rondo__text_append(&text, format == RONDO_TEXT_JSON ? "{}" : "graphs are not measured\n");
    }
    const rondo_status status = rondo__text_get_status(&text);
    if (status == RONDO_STATUS_OK) {
        (void)write(user_data, text.bytes, text.length);
    }
    rondo__text_deinit(&text);
    return status;
}
