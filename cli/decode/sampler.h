// sampler.h — the next token from logits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_sampler {
    bool is_sampled;     // false: the largest logit, the first of equal ones
    double temperature;  // above 0
    uint64_t top_k;      // the largest logits that count; 0: all
    double top_p;        // of these as many, from the largest on, as have this share; 1: all
    uint64_t seed;
    struct cli_candidate *room;  // of `count` logits
} cli_sampler;

// False, and printed, when memory is short.
bool cli_sampler_init(cli_sampler *sampler, size_t logit_count);
void cli_sampler_free(cli_sampler *sampler);

// The token of text `row` at `step`; the draw depends on seed, row and step alone. -1 where a logit
// is no number.
int64_t cli_sampler_choose(const cli_sampler *sampler, const float *logits, size_t count,
                           uint64_t row, uint64_t step);
