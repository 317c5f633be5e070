// inside_objects.c — templates and executables of the backend's table; participants that count.
// SPDX-License-Identifier: Apache-2.0
#include "inside/inside_objects.h"

#include "capture/capture.h"
#include "conformance/control/inside_support.h"

static void destroy_template(void *recorded) {
    ((rondo__template *)recorded)->device->backend->destroy_template(recorded);
}

void inside_keep_template(rondo__template *recorded) {
    suite_remember(destroy_template, recorded);
}

void inside_drop_template(rondo__template *recorded) {
    suite_forget(recorded);
    destroy_template(recorded);
}

static void destroy_executable(void *executable) {
    ((rondo__executable *)executable)->device->backend->destroy_executable(executable);
}

void inside_keep_executable(rondo__executable *executable) {
    suite_remember(destroy_executable, executable);
}

void inside_drop_executable(rondo__executable *executable) {
    suite_forget(executable);
    destroy_executable(executable);
}

void inside_begin_bare(rondo_stream *stream) {
    (void)rondo_stream_get_native(stream);  // from now on it may record by itself
    ASSERT_OK(rondo_stream_get_device(stream)->backend->begin_capture(
        stream, RONDO_CAPTURE_THREAD_LOCAL, NULL));
}

rondo__template *inside_end_bare(rondo_stream *stream) {
    rondo__template *recorded = NULL;
    ASSERT_OK(rondo_stream_get_device(stream)->backend->end_capture(stream, &recorded));
    assert_non_null(recorded);
    inside_keep_template(recorded);
    return recorded;
}

typedef struct witness {
    rondo__participant head;
    int *prepared;
    int *noted;
    int *destroyed;
} witness;

static rondo_status prepare_witness(rondo__participant *participant, rondo_stream *stream) {
    (void)stream;
    ++*((witness *)participant)->prepared;
    return RONDO_STATUS_OK;
}

static void note_witness(rondo__participant *participant, rondo_stream *stream) {
    (void)stream;
    ++*((witness *)participant)->noted;
}

static void destroy_witness(rondo__participant *participant) {
    ++*((witness *)participant)->destroyed;
    free(participant);
}

static const rondo__participant_type witness_type = {.name = "a witness",
                                                     .prepare_replay = prepare_witness,
                                                     .note_replay = note_witness,
                                                     .destroy = destroy_witness};

void inside_add_witness(rondo_stream *stream, int counts[3]) {
    rondo__capture *capture;
    ASSERT_OK(rondo__capture_find(stream, &capture, NULL));
    assert_non_null(capture);
    witness *w = malloc(sizeof *w);
    assert_non_null(w);
    *w = (witness){.head = {.type = &witness_type},
                   .prepared = &counts[0],
                   .noted = &counts[1],
                   .destroyed = &counts[2]};
    rondo__capture_add_participant(capture, &w->head);
}

rondo_graph *inside_capture_with_witness(suite_context *context, uint32_t *x, int counts[3]) {
    rondo_graph *graph = inside_create_deferred(context);
    inside_begin(graph, context->stream);
    inside_add_witness(context->stream, counts);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    return graph;
}
