// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "truth.h"

// The answer; valid until the next question.
const char *truth_ask(const truth_question *question);
// What was said since.
const char *truth_get_answer(void);
