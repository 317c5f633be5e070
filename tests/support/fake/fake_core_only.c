// The fake driver in a library without models: it knows no kernel of theirs. Only built there, in
// the place of fake_pointwise.c.
// SPDX-License-Identifier: Apache-2.0
#include "support/fake/fake_cuda_state.h"

bool fake_pointwise_is_known(const char *text) {
    (void)text;
    return false;
}

void fake_pointwise_run(const char *text, const void *arguments, size_t argument_bytes) {
    (void)text;
    (void)arguments;
    (void)argument_bytes;
}
