// support/models/parse_model.c — see parse_model.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/models/parse_model.h"

#include <string.h>

#include "support/test.h"

int parse_model_set_up(void **state) {
    static model_builder builder;
    model_builder_init(&builder);
    *state = &builder;
    return 0;
}

int parse_model_tear_down(void **state) {
    model_builder_deinit(*state);
    return 0;
}

rondo_status parse_model(model_builder *builder, rondo_program **out_program) {
    size_t count = 0;
    uint8_t *bytes = model_builder_pack(builder, &count);
    rondo_status status = rondo_program_parse_onnx(bytes, count, out_program);
    memset(bytes, 0xAA, count);
    return status;
}

rondo_program *parse_model_ok(model_builder *builder) {
    rondo_program *program = NULL;
    if (parse_model(builder, &program) != RONDO_STATUS_OK) {
        fail_msg("%s", rondo_error_get_last()->message);
    }
    return program;
}

// The same of any call: `status` and the error record are what came of it.
static void expect(rondo_status status, rondo_status expected, const char *words) {
    const char *message = rondo_error_get_last()->message;
    if (status != expected || strstr(message, words) == NULL) {
        fail_msg("status %d, \"%s\"; expected %d, \"%s\"", status, message, expected, words);
    }
}

void parse_model_refused(model_builder *builder, rondo_status expected, const char *words) {
    rondo_program *program = NULL;
    rondo_status status = parse_model(builder, &program);
    assert_null(program);
    expect(status, expected, words);
}
