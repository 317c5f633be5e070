// executor/variants.h — runs that feed inputs with a default, or that run in the other mode
// (training, inference).
//
// Such inputs are constants of the program, so that a run that feeds none of them costs no more. A
// run that feeds some goes to a variant: an executor of a program in which exactly those are
// inputs; it is kept for the next such run. Runs in training have a variant, too, if the options
// say inference, and the other way round.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Makes executor->variants.active the one for the optional inputs that are fed, which stand in
// `tensors` behind the others, and moves those together.
//
// Errors:    as rondo_executor_create.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_choose_variant(rondo_executor *executor,
                                                           rondo_tensor *tensors);
