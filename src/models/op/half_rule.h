// op/half_rule.h — what f16 does to an op, as its entry says; program/half decides with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

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

typedef struct rondo__half_rule {
    uint32_t kind;   // 0: the op only moves values or works by element, or has no rule
    uint8_t result;  // class of the outputs, where the rule keeps the op
    const char *reason;
} rondo__half_rule;

// Reasons that entries and decisions share.
#define HALF_COUNTED "counts, ids and positions must be exact; f16 rounds whole numbers above 2048"
#define HALF_DRAWN "random numbers are drawn in f32 in every mode"
#define HALF_POWER "powers leave the range of f16"
#define HALF_EXPONENTIAL "exponentials leave the range of f16"
#define HALF_LOGARITHM "logarithms are taken of numbers that f16 flushes to 0"
#define HALF_ROOT "roots are taken of numbers that f16 flushes to 0"
#define HALF_SPECTRUM "spectra span more than f16 holds"
#define HALF_QUANTISED "quantisation steps are finer than f16"
#define HALF_BOXED "coordinates need more than the 11 bits of f16"
#define HALF_SUMMED "sums of many elements may leave the range of f16"
#define HALF_COMPARED "thresholds, categories and labels are compared in f32"
#define HALF_BITS "the bits of f32 are read"
#define HALF_GATHERED \
    "weights are rounded before they are gathered, where all that read them are f16"
#define HALF_TRAINED "a training step sums many elements and divides by small ones"
