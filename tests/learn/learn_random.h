// learn/learn_random.h — random steps: their arguments, and the words that they put into nodes.
//
// A step is data: a list of nodes, each with words; each word says how it is made of the arguments.
// The program issues it, eagerly and in recordings, by computing the words as C code of a program
// would, with none of the library's own arithmetic.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/rondo.h"

enum {
    ARGUMENTS_MAX = 8,
    NODES_MAX = 6,
    WORDS_MAX = 8,
    EXTENT = 2048,  // of every pointer
    SLOTS = 12,     // places of that size in the world's memory
    STRUCT_BYTES = 24,
};

typedef struct rng {
    uint64_t state;
} rng;
uint64_t draw(rng *r);
uint64_t draw_below(rng *r, uint64_t end);

// How a word is made. Those from WORD_HASH on are not among what is learned.
typedef enum word_kind {
    WORD_CONSTANT,
    WORD_POINTER,          // p + c
    WORD_POINTER_INDEX,    // p + a * n + c
    WORD_INTEGER,          // n, in the word's width
    WORD_UNSIGNED,         // (uint64) of n's bits in n's own width
    WORD_NARROWED,         // (int16) n, extended by its sign to the word's width
    WORD_LINE,             // a * n + c
    WORD_CEIL,             // ceil(n / d)
    WORD_PRODUCT,          // a * n * m + c
    WORD_CEIL_PRODUCT,     // ceil(n * m / d)
    WORD_FLOAT,            // f as it is
    WORD_FLOAT_CONVERTED,  // (float) of a double, (double) of a float
    WORD_STRUCT,           // bytes of a struct
    WORD_HASH,
    WORD_FLOOR,            // n / d, where it is not a ceil
    WORD_MASK,             // n & c
    WORD_LEAST,            // min(n, c)
    WORD_PARITY,           // n is odd
    WORD_INT_TO_FLOAT,     // (float) n
    WORD_MAGIC,            // 2^32 / n + 1
    WORD_LOW_HALF,         // the low 32 bits of p
    WORD_CALLS,            // how often the step was called
    WORD_SAME_POINTER,     // whether p is q
    WORD_SPECIAL_FLOAT,    // whether f is 0, 1, infinite, NaN or the largest
    WORD_SPECIAL_INTEGER,  // whether n is 0 or 1
    WORD_INTERVAL,         // whether n lies in a tenth of its domain
    WORD_KIND_COUNT,
} word_kind;

typedef struct word {
    word_kind kind;
    uint32_t width;
    uint16_t first;  // argument
    uint16_t second;
    int64_t a;
    int64_t c;
    int64_t d;
} word;

typedef enum node_kind {
    NODE_KERNEL,
    NODE_HOST,
    NODE_COPY,
    NODE_FILL,
    NODE_KIND_COUNT,
} node_kind;

typedef struct node {
    node_kind kind;
    uint16_t out;  // pointer arguments
    uint16_t in;
    uint16_t out_offset;
    uint16_t in_offset;
    bool reads_block;  // a block of the pool stands in the place of `in`
    word size;         // copies and fills: bytes, up to 256; kernels: grid.x
    word value;        // fills
    uint32_t element_bytes;
    size_t word_count;
    word words[WORDS_MAX];
} node;

typedef struct step {
    size_t argument_count;
    size_t pointer_count;  // the first ones
    rondo_argument arguments[ARGUMENTS_MAX];
    char names[ARGUMENTS_MAX][4];
    rondo_value sets[ARGUMENTS_MAX][3];
    unsigned char struct_sets[3][STRUCT_BYTES];
    bool may_count[ARGUMENTS_MAX];  // integers that are never negative
    size_t node_count;
    node nodes[NODES_MAX];
    bool is_learnable;  // it has only words of the listed kinds, and nothing else that is refused
    bool has_more_nodes;
    bool has_larger_block;
    bool uses_block;
    bool has_interval;  // a case that few draws miss
    uint64_t calls;
} step;

void step_make(step *s, rng *r);
uint64_t word_compute(const step *s, const word *w, const rondo_value *values);

// One value of its domain for each argument but pointers; sometimes the ends, sometimes equal ones.
void step_draw_values(const step *s, rng *r, rondo_value *values,
                      unsigned char struct_bytes[STRUCT_BYTES]);
