// SPDX-License-Identifier: Apache-2.0

#include "support/models/model_fixture.h"
#include "support/test.h"

#include <string.h>

void model_fixture_init(model_fixture *fixture) {
    model_fixture_init_on(fixture, "host");
}

void model_fixture_init_on(model_fixture *fixture, const char *device) {
    memset(fixture, 0, sizeof *fixture);
    model_builder_init(&fixture->builder);
    fixture->options = (rondo_executor_options){.struct_size = sizeof(rondo_executor_options)};
    OK(rondo_device_open(device, &fixture->device));
}

void model_fixture_load(model_fixture *fixture) {
    size_t byte_count = 0;
    const uint8_t *bytes = model_builder_pack(&fixture->builder, &byte_count);
    OK(rondo_program_parse_onnx(bytes, byte_count, &fixture->program));
    OK(rondo_executor_create(fixture->program, fixture->device, &fixture->options,
                             &fixture->executor));
}

void model_fixture_deinit(model_fixture *fixture) {
    rondo_executor_destroy(fixture->executor);
    rondo_program_destroy(fixture->program);
    rondo_device_release(fixture->device);
    model_builder_deinit(&fixture->builder);
}
