// learn/draw_plan.h — what the proof draws, one recording after the other.
//
//   always     values at random · each two pointers equal · each special value of each argument ·
//              all combinations of arguments with few values · all combinations of 0 and 1 of each
//              two arguments · equal numbers · what the program named · values at random
//   then       other ways for two pointers to lie · values at random without end
//
// The second line is drawn as long as the budget of time allows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learn/trial.h"

enum { RONDO__ARGUMENTS_MAX = 64 };

typedef struct rondo__draw_plan {
    const rondo__arguments *arguments;
    const rondo__values *tried;  // NULL pointers among them are drawn
    size_t tried_count;
    uint16_t pointers[RONDO__ARGUMENTS_MAX];
    size_t pointer_count;
    uint16_t numbers[RONDO__ARGUMENTS_MAX];  // the other arguments that can vary
    size_t number_count;
    uint64_t pair_seed;
    // Where it is.
    size_t phase;
    size_t index;
} rondo__draw_plan;

void rondo__draw_plan_init(const rondo__arguments *arguments, const rondo__values *tried,
                           size_t tried_count, uint64_t pair_seed, rondo__draw_plan *out_plan);
// Whether the draws that come next are made only as long as there is time.
bool rondo__draw_plan_is_spare(const rondo__draw_plan *plan);
// What to draw next; fixed values are written to `in_out_values`. There is always one.
void rondo__draw_plan_next(rondo__draw_plan *plan, rondo__draw_request *out_request,
                           rondo__values *in_out_values);
// Whether every number was drawn evenly: a draw that the odds count.
bool rondo__draw_plan_counts(const rondo__draw_plan *plan, const rondo__draw_request *request);
