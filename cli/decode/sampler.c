// sampler.c — see sampler.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler.h"

#include <math.h>
#include <stdlib.h>

#include "console.h"
#include "rondo/random.h"

typedef struct cli_candidate {
    double logit, weight;
    size_t token;
} candidate;

bool cli_sampler_init(cli_sampler *sampler, size_t logit_count) {
    sampler->room = NULL;
    if (sampler->is_sampled) {
        sampler->room = calloc(logit_count, sizeof *sampler->room);
        if (sampler->room == NULL) {
            return cli_fail_memory();
        }
    }
    return true;
}

void cli_sampler_free(cli_sampler *sampler) {
    free(sampler->room);
    sampler->room = NULL;
}

static int64_t find_largest(const float *logits, size_t count) {
    size_t best = 0;
    for (size_t i = 0; i < count; ++i) {
        if (isnan(logits[i])) {
            return -1;
        }
        best = logits[i] > logits[best] ? i : best;
    }
    return (int64_t)best;
}

// The largest first; of equal ones the first token.
static int compare(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    if (a->logit != b->logit) {
        return a->logit > b->logit ? -1 : 1;
    }
    return a->token < b->token ? -1 : 1;
}

// The `most` largest of all tokens in order: a vocabulary is not sorted for the few that are
// wanted.
static void sort_largest(const cli_sampler *sampler, const float *logits, size_t count, size_t most,
                         candidate *all) {
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
        const candidate one = {(double)logits[i] / sampler->temperature, 0.0, i};
        size_t at = kept < most ? kept++ : most;
        for (; most < count && at > 0 && compare(&one, &all[at - 1]) < 0; --at) {
            if (at < most) {
                all[at] = all[at - 1];
            }
        }
        if (at < most) {
            all[at] = one;
        }
    }
    if (most == count) {
        qsort(all, count, sizeof *all, compare);
    }
}

// How many of the sorted candidates take part; their weights are set.
static size_t weigh(const cli_sampler *sampler, candidate *all, size_t most) {
    double sum = 0.0, share = 0.0;
    for (size_t i = 0; i < most; ++i) {
        all[i].weight = exp(all[i].logit - all[0].logit);
        sum += all[i].weight;
    }
    for (size_t i = 0; i < most; ++i) {
        share += all[i].weight / sum;
        if (share >= sampler->top_p) {
            return i + 1;
        }
    }
    return most;
}

int64_t cli_sampler_choose(const cli_sampler *sampler, const float *logits, size_t count,
                           uint64_t row, uint64_t step) {
    const int64_t largest = find_largest(logits, count);
    if (!sampler->is_sampled || largest < 0 || isinf(logits[largest])) {
        return largest;
    }
    candidate *all = sampler->room;
    const size_t most = sampler->top_k > 0 && sampler->top_k < count ? sampler->top_k : count;
    sort_largest(sampler, logits, count, most, all);
    const size_t kept = weigh(sampler, all, most);
    uint32_t words[4];
    double sum = 0.0, before = 0.0;
    rondo_random_philox(sampler->seed, row, step, words);
    const double point = ((words[0] >> 5) * 67108864.0 + (words[1] >> 6)) / 9007199254740992.0;
    for (size_t i = 0; i < kept; ++i) {
        sum += all[i].weight;
    }
    for (size_t i = 0; i < kept; ++i) {
        before += all[i].weight;
        if (before > point * sum) {
            return (int64_t)all[i].token;
        }
    }
    return (int64_t)all[kept - 1].token;
}
