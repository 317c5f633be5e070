// learn/formula.h — how a word follows from the arguments.
//
//   INTEGER   a * b + c        b: an integer argument, or the product of two
//   CEIL      ceil(b / d)
//   ADDRESS   p + a * x + c    p: a pointer argument; a may be 0; c: at most 2^31, or the extent,
//                              where all addresses seen have one high half
//   FLOAT     a float or double, as it is or converted to the other
//   BYTES     of a struct, from an offset
//
// Integers are taken modulo 2^(bits of the word), so a sum that overflows in the step's own code
// is foretold as well. Fitting is exact algebra, with no search: of two recordings with differences
// dw and dx, a is dw / dx modulo that power, as far as the twos in dx allow.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learn/draw.h"

typedef enum rondo__formula_kind {
    RONDO__FORMULA_INTEGER,
    RONDO__FORMULA_CEIL,
    RONDO__FORMULA_ADDRESS,
    RONDO__FORMULA_FLOAT,
    RONDO__FORMULA_BYTES,
} rondo__formula_kind;

// The conversion of an integer argument before the formula, if its own width is not meant.
typedef enum rondo__extension {
    RONDO__EXTEND_NONE,
    RONDO__EXTEND_ZERO_4,  // its low 4 bytes, and zeros
    RONDO__EXTEND_ZERO_2,
    RONDO__EXTEND_ZERO_1,
    RONDO__EXTEND_SIGN_4,
    RONDO__EXTEND_SIGN_2,
    RONDO__EXTEND_SIGN_1,
    RONDO__EXTENSION_COUNT,
} rondo__extension;

enum { RONDO__NO_ARGUMENT = UINT16_MAX };

typedef struct rondo__formula {
    rondo__formula_kind kind;
    rondo__extension extension;  // INTEGER
    uint32_t width;              // bytes of the word
    uint16_t argument;           // ADDRESS: the pointer
    uint16_t second;             // the other factor; ADDRESS: the integer; or NO_ARGUMENT
    uint64_t a;
    uint64_t c;  // BYTES: the offset
    uint64_t d;
} rondo__formula;

// The values of a word in each recording.
typedef struct rondo__sightings {
    const rondo__arguments *arguments;
    const rondo__values *const *values;  // of each recording
    const uint64_t *words;
    size_t count;    // at least 2
    uint32_t width;  // of the word
} rondo__sightings;

// The word that the values give, in its low bytes.
uint64_t rondo__formula_evaluate(const rondo__formula *formula, const rondo__arguments *arguments,
                                 const rondo__values *values);

// Whether the word is the low bytes of formula->argument's 64 bits, whatever the values are.
bool rondo__formula_is_plain(const rondo__formula *formula, const rondo__arguments *arguments);

// All formulas that give every word, the simplest first, as many as there is room for. A ceil whose
// d is not determined yet stands there with its least and its largest d.
size_t rondo__formula_fit(const rondo__sightings *seen, rondo__formula *formulas, size_t capacity);

// A pointer argument whose words are low halves of addresses, all at one distance from it or inside
// of its extent: the step has cut the high halves off. RONDO__NO_ARGUMENT: there is none.
uint16_t rondo__formula_find_cut_address(const rondo__sightings *seen);

// False: its factors are so large that two words side by side are more likely.
bool rondo__formula_is_tidy(const rondo__formula *formula);
bool rondo__formula_uses(const rondo__formula *formula, size_t argument);

// Values of the domain for which two formulas give different words; false: none could be found.
// Pointers keep what in_out_values has.
bool rondo__formula_separate(const rondo__formula *one, const rondo__formula *other,
                             const rondo__arguments *arguments, rondo__draws *draws,
                             rondo__values *in_out_values);

// A word in pieces side by side, each constant or with a formula of its own.
typedef struct rondo__pieces {
    size_t count;
    uint32_t width;  // of each
    struct rondo__piece {
        bool is_constant;
        uint64_t constant;
        rondo__formula formula;
    } list[8];
} rondo__pieces;

// The same for a formula and pieces that give as wide a word.
bool rondo__formula_separate_pieces(const rondo__formula *one, const rondo__pieces *pieces,
                                    const rondo__arguments *arguments, rondo__draws *draws,
                                    rondo__values *in_out_values);

// "n * 4 + 16", "ceil(rows * columns / 256)".
void rondo__formula_format(const rondo__formula *formula, const rondo__arguments *arguments,
                           char *text, size_t capacity);
