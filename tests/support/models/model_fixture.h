// support/models/model_fixture.h — a model built by a test, with its program and an executor on the
// host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/model_builder.h"

typedef struct model_fixture {
    model_builder builder;
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_executor_options options;  // of the executor, to be changed before the load
} model_fixture;

// An empty model, the host device, default options.
void model_fixture_init(model_fixture *fixture);
void model_fixture_init_on(model_fixture *fixture, const char *device);
// Makes program and executor of what was built.
void model_fixture_load(model_fixture *fixture);
void model_fixture_deinit(model_fixture *fixture);
