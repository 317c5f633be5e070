// doctor/analysis/doctor_period.c — see doctor_period.h.
//
// Each run of 3 and of 24 tokens votes for its distance to the same run before. Distances with many
// votes, and the distances of rare runs (what comes once a step), are candidates; the share of
// tokens that equal the one a candidate before decides. Of those within a hundredth of the best the
// shortest wins, so that two steps are not taken for one. Linear in the tokens, but for the sort.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/analysis/doctor_period.h"

#include <stdlib.h>
#include <string.h>

enum { CANDIDATES_MAX = 48, REPEATS_MIN = 3, SLOT_BITS = 18 };

static const double CLOSE = 0.01;
static const double MATCH_MIN = 0.75;

typedef struct candidate {
    size_t distance;
    size_t votes;
} candidate;

// The latest place of each run, by its hash; one that is pushed out loses a vote.
typedef struct last_seen {
    uint64_t hash;
    size_t place;  // from 1 on; 0: none
} last_seen;

static uint64_t mix(uint64_t hash) {
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 29;
    hash *= 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 32;
}

static void vote(const uint64_t *tokens, size_t count, size_t run, last_seen *seen,
                 uint32_t *votes) {
    const size_t mask = ((size_t)1 << SLOT_BITS) - 1;
    memset(seen, 0, sizeof(*seen) << SLOT_BITS);
    for (size_t i = run; i <= count; i++) {
        uint64_t hash = run;
        for (size_t k = i - run; k < i; k++) {
            hash = mix(hash + tokens[k]);
        }
        last_seen *last = &seen[hash & mask];
        if (last->place > 0 && last->hash == hash) {
            ++votes[i - last->place];
        }
        *last = (last_seen){hash, i};
    }
}

static int compare_votes(const void *left, const void *right) {
    const candidate *a = left;
    const candidate *b = right;
    return a->votes < b->votes ? 1 : a->votes > b->votes ? -1 : 0;
}

// Long periods get as few votes as rare runs have; so each vote counts for the way it spans.
static size_t choose_candidates(const uint32_t *votes, size_t count, candidate *out) {
    candidate *all = malloc((count + 1) * sizeof(*all));
    size_t used = 0;
    for (size_t i = 1; all != NULL && i <= count / REPEATS_MIN; i++) {
        if (votes[i] > 0) {
            all[used++] = (candidate){i, (size_t)votes[i] * i};
        }
    }
    if (all == NULL) {
        return 0;
    }
    qsort(all, used, sizeof(*all), compare_votes);
    used = used < CANDIDATES_MAX ? used : CANDIDATES_MAX;
    memcpy(out, all, used * sizeof(*all));
    free(all);
    return used;
}

static double match(const uint64_t *tokens, size_t count, size_t distance) {
    size_t same = 0;
    size_t odd = 0;
    size_t same_odd = 0;
    for (size_t i = distance; i < count; i++) {
        const size_t is_same = tokens[i] == tokens[i - distance];
        const size_t is_odd = tokens[i] % 2;
        same += is_same;
        odd += is_odd;
        same_odd += is_same & is_odd;
    }
    return 2 * same_odd >= odd ? (double)same / (double)(count - distance) : 0.0;
}

bool rondo__doctor_find_period(const uint64_t *tokens, size_t count,
                               rondo__doctor_period *out_period) {
    candidate candidates[CANDIDATES_MAX];
    double matches[CANDIDATES_MAX];
    double best = 0.0;
    *out_period = (rondo__doctor_period){0};
    if (count < REPEATS_MIN) {
        return true;
    }
    uint32_t *votes = calloc(count + 1, sizeof(*votes));
    last_seen *seen = malloc(sizeof(*seen) << SLOT_BITS);
    if (votes == NULL || seen == NULL) {
        free(votes);
        free(seen);
        return false;
    }
    vote(tokens, count, 1, seen, votes);
    vote(tokens, count, 3, seen, votes);
    vote(tokens, count, 24, seen, votes);
    const size_t used = choose_candidates(votes, count, candidates);
    for (size_t i = 0; i < used; i++) {
        matches[i] = match(tokens, count, candidates[i].distance);
        best = matches[i] > best ? matches[i] : best;
    }
    for (size_t i = 0; i < used; i++) {
        const size_t distance = candidates[i].distance;
        if (matches[i] >= best - CLOSE && matches[i] >= MATCH_MIN &&
            (out_period->length == 0 || distance < out_period->length)) {
            *out_period = (rondo__doctor_period){distance, matches[i]};
        }
    }
    free(votes);
    free(seen);
    return true;
}
