// If, switch and while: two captures at once, and what the library sees of bodies.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <pthread.h>

#include "conformance/control/control_support.h"
#include "rondo/inspect.h"

// ---- two at once ------------------------------------------------------------------------------

typedef struct worker {
    void **state;
    uint32_t turns;
    uint32_t result;
} worker;

static void *work(void *data) {
    worker *own = data;
    control_case it = start(own->state);
    for (int round = 0; round < suite_rounds(10, 2); ++round) {
        begin_capture(&it);
        record_nested(&it);
        record_countdown(&it);
        ASSERT_OK(rondo_graph_capture_end(it.graph));
        // Not suite_set: the context's stream is for one thread at a time.
        ASSERT_OK(rondo_stream_fill(it.stream, it.x, 0, 4, NUMBERS));
        ASSERT_OK(rondo_stream_fill(it.stream, it.x, own->turns, 4, 1));
        replay(&it);
        ASSERT_OK(
            rondo_stream_copy(it.stream, &own->result, it.x + 2, 4, RONDO_COPY_DEVICE_TO_HOST));
        ASSERT_OK(rondo_stream_synchronize(it.stream));
        if (own->result != own->turns) {
            break;
        }
        ASSERT_OK(rondo_graph_reset(it.graph));
    }
    finish(&it);
    return NULL;
}

SUITE_CASE_EXECUTED(test_conformance_control__two_captures_in_two_threads) {
    worker workers[2] = {{.state = state, .turns = 30}, {.state = state, .turns = 50}};
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 2; ++i) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(workers[i].result, workers[i].turns);
    }
}

// ---- looking inside ----------------------------------------------------------------------------

static bool append_text(void *user_data, const char *text, size_t bytes) {
    char *all = user_data;
    size_t used = strlen(all);
    assert_true(used + bytes < 16384);
    memcpy(all + used, text, bytes);
    all[used + bytes] = '\0';
    return true;
}

static size_t count_parts(const char *text, const char *part) {
    size_t count = 0;
    while ((text = strstr(text, part)) != NULL) {
        ++count;
        text += strlen(part);
    }
    return count;
}

SUITE_CASE(test_conformance_control__dumps_show_bodies) {
    control_case it = start(state);
    char json[16384] = "";
    char dot[16384] = "";
    begin_capture(&it);
    record_nested(&it);
    ASSERT_OK(rondo_graph_capture_end(it.graph));
    ASSERT_OK(rondo_graph_dump(it.graph, RONDO_TEXT_JSON, append_text, json));
    ASSERT_OK(rondo_graph_dump(it.graph, RONDO_TEXT_DOT, append_text, dot));
    char predicate[64];
    snprintf(predicate, sizeof predicate, "\"name\": \"while\", \"predicate\": \"0x%" PRIxPTR "\"",
             (uintptr_t)(it.x + 1));
    assert_int_equal(count_parts(json, predicate), 1);
    assert_int_equal(count_parts(json, "\"bodies\": ["), 3);
    // The host keeps nothing of empty bodies; CUDA has a graph for each.
    assert_int_equal(count_parts(json, "\"nodes\": ["), it.context->is_cuda ? 7 : 5);
    assert_int_equal(count_parts(json, "{"), count_parts(json, "}"));
    assert_int_equal(count_parts(json, "\"name\": \"affine\""), 2 + 1 + 2);
    assert_int_equal(count_parts(dot, "conditional\\nif_else"), 1);
    assert_int_equal(count_parts(dot, "subgraph cluster_"), it.context->is_cuda ? 6 : 4);
    assert_int_equal(count_parts(dot, "{"), count_parts(dot, "}"));
    finish(&it);
}

SUITE_CASE(test_conformance_control__features_are_told) {
    rondo_device_info info = {.struct_size = sizeof info};
    ASSERT_OK(rondo_device_get_info(context->device, &info));
    for (int feature = RONDO_FEATURE_IF; feature <= RONDO_FEATURE_WHILE; ++feature) {
        ASSERT_OK(rondo_device_supports(context->device, (rondo_feature)feature));
    }
    if (!context->is_cuda) {
        ASSERT_OK(rondo_device_supports(context->device, RONDO_FEATURE_HOST_IN_BODY));
    } else {
        ASSERT_STATUS(rondo_device_supports(context->device, RONDO_FEATURE_HOST_IN_BODY),
                      UNSUPPORTED);
        ASSERT_MESSAGE_HAS("launch a kernel");
    }
    ASSERT_STATUS(rondo_device_supports(context->device, (rondo_feature)99), INVALID);
    ASSERT_STATUS(rondo_device_supports(NULL, RONDO_FEATURE_IF), INVALID);
}
