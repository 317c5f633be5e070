// program/half/half_table.h — what f16 does to ops, by name: half_rules.c decides with it.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_PROGRAM_HALF_TABLE_H_
#define RONDO_PROGRAM_HALF_TABLE_H_

#include <stdint.h>

#include "program/program.h"

// Classes of values, by how much they bind.
enum { HALF_PLAIN = 0, HALF_EXACT = 1, HALF_FINE = 2, HALF_WIDE = 3 };

// What an op does; a bit set beside the class that its outputs get.
enum {
    HALF_STAYS = 1u << 0,
    HALF_TRACED = 1u << 1,    // what leads to its inputs matters
    HALF_BOUNDED = 1u << 2,   // its outputs are ordinary, whatever the inputs
    HALF_PRODUCT = 1u << 3,   // sums of products in f32; only what is out of range matters
    HALF_CARRIES = 1u << 4,   // hands the class of its inputs on, as moves do
    HALF_LONG_SUM = 1u << 5,  // stays where it adds up many elements
    HALF_COUNTING = 1u << 6,  // makes whole numbers, of which a Cast makes wide values
};

// Reasons that rules and decisions share.
#define HALF_COUNTED "counts, ids and positions must be exact; f16 rounds whole numbers above 2048"
#define HALF_DRAWN "random numbers are drawn in f32 in every mode"

typedef struct rondo__half_rule {
    const char *op;
    uint32_t kind;
    uint8_t result;  // class of the outputs, where the rule keeps the op
    const char *reason;
} rondo__half_rule;

// The rule of a node's op; ops that only move values or work by element carry classes on, others
// have no rule of their own.
const rondo__half_rule *rondo__half_find_rule(const rondo__node *node);

#endif  // RONDO_PROGRAM_HALF_TABLE_H_
