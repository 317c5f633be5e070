// support/models/flow_models.h — random models of If, Loop and Scan, nested, for tests of control
// flow.
//
// All of them have the same inputs: x, w (f32 [3, 3]), list (f32 [4, 3, 3]), n (i64, a trip count)
// and go (bool, a condition); and outputs out0, out1, ...
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/models.h"
#include "support/models/model_builder.h"

enum { FLOW_OUTPUT_MAX = 8, FLOW_FEED_COUNT = 5 };

// Builds model `seed` and returns how many outputs it has.
size_t flow_model_build(model_builder *builder, uint64_t seed);

typedef struct flow_feeds {
    float x[9];
    float w[9];
    float list[36];
    int64_t n;
    uint8_t go;
    rondo_binding bindings[FLOW_FEED_COUNT];
} flow_feeds;

// A model whose ops only move what they get, so that a driver that cannot compute runs it: a Loop
// that swaps, a Loop with rows and an If in it, a Scan backwards, an If. The same inputs; outputs
// out0 to out6, of several shapes, 7 in all.
size_t flow_model_build_moves(model_builder *builder);

// Inputs that follow from `seed`; n and go as given.
void flow_feeds_make(flow_feeds *feeds, uint64_t seed, int64_t n, bool go);
