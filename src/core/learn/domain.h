// learn/domain.h — the arguments of a learned step: what they are, which values they may have.
//
// A value is kept as 64 bits: an address, an integer extended by its sign or by zeros, the bits of
// a float or double, or 0 for a struct, whose bytes stand in an area beside it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rondo/learn.h"

typedef struct rondo__argument {
    char *name;
    rondo_argument_kind kind;
    bool is_integer;  // BOOL, too
    bool is_signed;
    uint32_t width;        // bytes in an array of such; 0: STRUCT
    size_t struct_offset;  // STRUCT: into the bytes of rondo__values
    size_t struct_bytes;
    uint64_t extent;
    uint64_t alignment;
    rondo_memory_kind memory;
    bool is_unchecked;
    bool is_exclusive;
    bool has_range;  // least and most hold; integers: always
    uint64_t least;  // of its kind's bits
    uint64_t most;
    uint64_t multiple_of;  // at least 1
    uint64_t *set;         // the only values; NULL: those above
    unsigned char *set_bytes;
    size_t set_count;
} rondo__argument;

typedef struct rondo__arguments {
    rondo__argument *list;
    size_t count;
    size_t struct_bytes;  // of all structs together
} rondo__arguments;

// One value for each argument.
typedef struct rondo__values {
    uint64_t *bits;
    unsigned char *bytes;  // of structs
} rondo__values;

// Errors:    INVALID (the message names the argument), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__arguments_init(const rondo_argument *described, size_t count,
                                                  rondo__arguments *out_arguments);
void rondo__arguments_deinit(rondo__arguments *arguments);

RONDO_MUST_USE rondo_status rondo__values_init(const rondo__arguments *arguments,
                                               rondo__values *out_values);
void rondo__values_deinit(rondo__values *values);
void rondo__values_copy(const rondo__arguments *arguments, rondo__values *to,
                        const rondo__values *from);

// A caller's value in 64 bits; structs: 0.
static inline uint64_t rondo__value_get_bits(const rondo__argument *argument,
                                             const rondo_value *value) {
    uint32_t single;
    switch (argument->kind) {
        case RONDO_ARGUMENT_POINTER:
            return (uintptr_t)value->pointer;
        case RONDO_ARGUMENT_FLOAT:
            memcpy(&single, &value->single, sizeof single);
            return single;
        case RONDO_ARGUMENT_STRUCT:
            return 0;
        default:
            return value->unsigned_integer;
    }
}
// The other way; structs: where their bytes stand.
rondo_value rondo__value_from_bits(const rondo__argument *argument, const rondo__values *values,
                                   size_t index);

// Whether the argument's value in `values` lies in its domain; pointers: only whether it is not
// NULL, and aligned.
//
// Errors:    INVALID: names argument, value and domain.
RONDO_MUST_USE rondo_status rondo__argument_check(const rondo__argument *argument, uint64_t bits,
                                                  const unsigned char *bytes, const char *call);
// Writes a value as people read it.
void rondo__argument_format(const rondo__argument *argument, uint64_t bits, char *text,
                            size_t capacity);

// The same, without a record.
bool rondo__argument_holds(const rondo__argument *argument, uint64_t bits,
                           const unsigned char *bytes);
// The least integer of the domain above `below` and at most `most`; false: there is none.
bool rondo__argument_find_integer(const rondo__argument *argument, uint64_t below, uint64_t most,
                                  uint64_t *out_bits);

// ---- numbers ----------------------------------------------------------------------------------

static inline bool rondo__argument_is_float(const rondo__argument *argument) {
    return argument->kind == RONDO_ARGUMENT_FLOAT || argument->kind == RONDO_ARGUMENT_DOUBLE;
}

// Of a float or double.
static inline double rondo__argument_get_number(const rondo__argument *argument, uint64_t bits) {
    if (argument->kind == RONDO_ARGUMENT_FLOAT) {
        float single;
        uint32_t low = (uint32_t)bits;
        memcpy(&single, &low, sizeof single);
        return (double)single;
    }
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

// Integers in one order, signed or not: the sign bit turned over.
static inline uint64_t rondo__argument_get_rank(const rondo__argument *argument, uint64_t bits) {
    return argument->is_signed ? bits ^ (UINT64_C(1) << 63) : bits;
}

// What is left when it is divided by multiple_of, as a number from 0 on, also below zero.
static inline uint64_t rondo__argument_get_remainder(const rondo__argument *argument,
                                                     uint64_t bits) {
    if (!argument->is_signed || (int64_t)bits >= 0) {
        return bits % argument->multiple_of;
    }
    uint64_t left = (0 - bits) % argument->multiple_of;
    return left == 0 ? 0 : argument->multiple_of - left;
}
