// support/models/parse_model.h — tests of the importer: each has a model_builder as its state, and
// reads what was built from memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/models.h"
#include "support/models/model_builder.h"

// For TEST_MAIN_WITH: *state is an empty model.
int parse_model_set_up(void **state);
int parse_model_tear_down(void **state);

// The bytes are overwritten behind the call: nothing of the program may point into them.
rondo_status parse_model(model_builder *builder, rondo_program **out_program);
// These two fail the test where the model is refused, or is not refused with these words.
rondo_program *parse_model_ok(model_builder *builder);
void parse_model_refused(model_builder *builder, rondo_status expected, const char *words);
