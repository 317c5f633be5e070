// learn/domain.c — see domain.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/domain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/read_options.h"

enum { STRUCT_BYTES_MAX = 256, ARGUMENTS_MAX = 64 };

static const uint64_t default_alignment = 256;
static const uint64_t alignment_max = UINT64_C(1) << 20;

typedef struct kind_row {
    uint32_t width;
    bool is_integer;
    bool is_signed;
} kind_row;

static const kind_row kinds[] = {
    [RONDO_ARGUMENT_POINTER] = {8, false, false}, [RONDO_ARGUMENT_INT8] = {1, true, true},
    [RONDO_ARGUMENT_INT16] = {2, true, true},     [RONDO_ARGUMENT_INT32] = {4, true, true},
    [RONDO_ARGUMENT_INT64] = {8, true, true},     [RONDO_ARGUMENT_UINT8] = {1, true, false},
    [RONDO_ARGUMENT_UINT16] = {2, true, false},   [RONDO_ARGUMENT_UINT32] = {4, true, false},
    [RONDO_ARGUMENT_UINT64] = {8, true, false},   [RONDO_ARGUMENT_BOOL] = {1, true, false},
    [RONDO_ARGUMENT_FLOAT] = {4, false, false},   [RONDO_ARGUMENT_DOUBLE] = {8, false, false},
    [RONDO_ARGUMENT_STRUCT] = {0, false, false},
};

// ---- integers in order -------------------------------------------------------------------------

bool rondo__argument_find_integer(const rondo__argument *argument, uint64_t below, uint64_t most,
                                  uint64_t *out_bits) {
    if (argument->set != NULL) {
        bool was_found = false;
        for (size_t i = 0; i < argument->set_count; ++i) {
            uint64_t bits = argument->set[i];
            if (rondo__argument_get_rank(argument, bits) >
                    rondo__argument_get_rank(argument, below) &&
                rondo__argument_get_rank(argument, bits) <=
                    rondo__argument_get_rank(argument, most) &&
                (!was_found || rondo__argument_get_rank(argument, bits) <
                                   rondo__argument_get_rank(argument, *out_bits))) {
                *out_bits = bits;
                was_found = true;
            }
        }
        return was_found;
    }
    uint64_t first = below + 1;
    if (rondo__argument_get_rank(argument, below) == UINT64_MAX) {
        return false;
    }
    if (rondo__argument_get_rank(argument, first) <
        rondo__argument_get_rank(argument, argument->least)) {
        first = argument->least;
    }
    uint64_t left = rondo__argument_get_remainder(argument, first);
    uint64_t step = left == 0 ? 0 : argument->multiple_of - left;
    if (rondo__argument_get_rank(argument, first) > UINT64_MAX - step) {
        return false;
    }
    first += step;
    *out_bits = first;
    return rondo__argument_get_rank(argument, first) <=
               rondo__argument_get_rank(argument, argument->most) &&
           rondo__argument_get_rank(argument, first) <= rondo__argument_get_rank(argument, most);
}

// ---- descriptions -----------------------------------------------------------------------------

static const char call_create[] = "rondo_learned_create";

static rondo_status fail_description(const rondo__argument *argument, const char *why) {
    return RONDO_FAIL_AS(call_create, INVALID, "argument \"%s\": %s", argument->name, why);
}

static void set_kind_range(rondo__argument *argument) {
    const unsigned bits = 8 * argument->width;
    if (argument->kind == RONDO_ARGUMENT_BOOL) {
        argument->most = 1;
    } else if (argument->is_signed) {
        argument->most = (UINT64_C(1) << (bits - 1)) - 1;
        argument->least = ~argument->most;
    } else {
        argument->most = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    }
}

static rondo_status read_integers(const rondo_argument *described, rondo__argument *argument) {
    set_kind_range(argument);
    const uint64_t kind_least = argument->least;
    const uint64_t kind_most = argument->most;
    const uint64_t least = described->least.unsigned_integer;
    const uint64_t most = described->most.unsigned_integer;
    argument->multiple_of = described->multiple_of > 1 ? described->multiple_of : 1;
    argument->has_range = true;
    if (least != 0 || most != 0) {
        if (rondo__argument_get_rank(argument, least) > rondo__argument_get_rank(argument, most)) {
            return fail_description(argument, "its least value is above its most");
        }
        if (rondo__argument_get_rank(argument, least) <
                rondo__argument_get_rank(argument, kind_least) ||
            rondo__argument_get_rank(argument, most) >
                rondo__argument_get_rank(argument, kind_most)) {
            return fail_description(argument, "its kind does not have these values");
        }
        argument->least = least;
        argument->most = most;
    }
    // The ends are values, so that they are tried.
    if (rondo__argument_get_remainder(argument, argument->least) != 0) {
        uint64_t first = 0;
        if (!rondo__argument_find_integer(argument, argument->least, argument->most, &first)) {
            return fail_description(argument, "no value of its range is such a multiple");
        }
        argument->least = first;
    }
    argument->most -= rondo__argument_get_remainder(argument, argument->most);
    return RONDO_STATUS_OK;
}

static rondo_status read_floats(const rondo_argument *described, rondo__argument *argument) {
    argument->least = rondo__value_get_bits(argument, &described->least);
    argument->most = rondo__value_get_bits(argument, &described->most);
    argument->has_range = argument->least != 0 || argument->most != 0;
    if (argument->has_range && !(rondo__argument_get_number(argument, argument->least) <=
                                 rondo__argument_get_number(argument, argument->most))) {
        return fail_description(argument, "its least value is not below its most");
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_pointer(const rondo_argument *described, rondo__argument *argument) {
    argument->extent = described->extent;
    argument->alignment = described->alignment != 0 ? described->alignment : default_alignment;
    argument->memory = described->memory;
    argument->is_unchecked = described->is_unchecked;
    argument->is_exclusive = described->is_exclusive;
    if (argument->extent == 0 || argument->extent > SIZE_MAX / 4) {
        return fail_description(argument,
                                "a pointer needs its extent: the bytes behind it that are used");
    }
    if (argument->alignment > alignment_max ||
        (argument->alignment & (argument->alignment - 1)) != 0) {
        return fail_description(argument, "its alignment is not a power of two up to 2^20");
    }
    if (described->memory != RONDO_MEMORY_DEVICE && described->memory != RONDO_MEMORY_PINNED) {
        return fail_description(argument, "its memory is not a rondo_memory_kind");
    }
    return described->values == NULL ? RONDO_STATUS_OK
                                     : fail_description(argument, "a pointer has no set of values");
}

static rondo_status read_set(const rondo_argument *described, rondo__argument *argument) {
    if (described->values == NULL) {
        return described->value_count == 0
                   ? RONDO_STATUS_OK
                   : fail_description(argument, "value_count counts values, but values is NULL");
    }
    if (described->value_count == 0) {
        return fail_description(argument, "its set of values is empty");
    }
    const size_t count = described->value_count;
    uint64_t *set = rondo__calloc(count, sizeof *set);
    if (set == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        set[i] = rondo__value_get_bits(argument, &described->values[i]);
        if (argument->kind != RONDO_ARGUMENT_STRUCT &&
            rondo__argument_check(argument, set[i], NULL, call_create) != RONDO_STATUS_OK) {
            rondo__free(set);
            return RONDO_STATUS_INVALID;
        }
        set[i] = argument->kind == RONDO_ARGUMENT_STRUCT ? i : set[i];
    }
    argument->set = set;
    argument->set_count = count;
    if (argument->kind != RONDO_ARGUMENT_STRUCT) {
        return RONDO_STATUS_OK;
    }
    argument->set_bytes = rondo__calloc(count, argument->struct_bytes);
    if (argument->set_bytes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        if (described->values[i].bytes == NULL) {
            return fail_description(argument, "a struct of its set is NULL");
        }
        memcpy(argument->set_bytes + i * argument->struct_bytes, described->values[i].bytes,
               argument->struct_bytes);
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_one(const rondo_argument *given, size_t index, rondo__argument *argument) {
    rondo_argument described = {.struct_size = sizeof described};
    RETURN_IF_ERROR(
        rondo__read_options(given, &described, sizeof described, call_create, "rondo_argument"));
    argument->name = described.name != NULL && described.name[0] != '\0'
                         ? rondo__strdup(described.name)
                         : rondo__strformat("%zu", index);
    if (argument->name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (described.kind < 0 || described.kind > RONDO_ARGUMENT_STRUCT) {
        return fail_description(argument, "its kind is not a rondo_argument_kind");
    }
    const kind_row *row = &kinds[described.kind];
    argument->kind = described.kind;
    argument->width = row->width;
    argument->is_integer = row->is_integer;
    argument->is_signed = row->is_signed;
    argument->multiple_of = 1;
    if (described.is_exclusive && argument->kind != RONDO_ARGUMENT_POINTER) {
        return fail_description(argument, "only pointers are exclusive");
    }
    if (described.multiple_of > 1 && !row->is_integer) {
        return fail_description(argument, "only integers are multiples");
    }
    if (argument->kind == RONDO_ARGUMENT_POINTER) {
        return read_pointer(&described, argument);
    }
    if (argument->kind == RONDO_ARGUMENT_STRUCT) {
        argument->struct_bytes = (size_t)described.bytes;
        if (described.bytes == 0 || described.bytes > STRUCT_BYTES_MAX) {
            return fail_description(argument, "a struct has 1 to 256 bytes");
        }
    } else {
        RETURN_IF_ERROR(row->is_integer ? read_integers(&described, argument)
                                        : read_floats(&described, argument));
    }
    return read_set(&described, argument);
}

rondo_status rondo__arguments_init(const rondo_argument *described, size_t count,
                                   rondo__arguments *out_arguments) {
    *out_arguments = (rondo__arguments){0};
    if (count > ARGUMENTS_MAX) {
        return RONDO_FAIL_AS(call_create, INVALID, "%zu arguments; %d are the most", count,
                             (int)ARGUMENTS_MAX);
    }
    rondo__arguments arguments = {.list = rondo__calloc(count + 1, sizeof(rondo__argument))};
    if (arguments.list == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        // The first one's size is that of all.
        const char *at = (const char *)described + i * described->struct_size;
        arguments.count = i + 1;
        rondo__argument *argument = &arguments.list[i];
        status = read_one((const rondo_argument *)(const void *)at, i, argument);
        argument->struct_offset = arguments.struct_bytes;
        arguments.struct_bytes += (argument->struct_bytes + 7) & ~(size_t)7;
    }
    if (status != RONDO_STATUS_OK) {
        rondo__arguments_deinit(&arguments);
        return status;
    }
    *out_arguments = arguments;
    return RONDO_STATUS_OK;
}

void rondo__arguments_deinit(rondo__arguments *arguments) {
    for (size_t i = 0; i < arguments->count; ++i) {
        rondo__free(arguments->list[i].name);
        rondo__free(arguments->list[i].set);
        rondo__free(arguments->list[i].set_bytes);
    }
    rondo__free(arguments->list);
    *arguments = (rondo__arguments){0};
}

// ---- values -----------------------------------------------------------------------------------

rondo_status rondo__values_init(const rondo__arguments *arguments, rondo__values *out_values) {
    // One allocation: the structs stand behind the bits.
    const size_t bits_bytes = (arguments->count + 1) * sizeof(uint64_t);
    out_values->bits = rondo__calloc(1, bits_bytes + arguments->struct_bytes);
    out_values->bytes = (unsigned char *)out_values->bits + bits_bytes;
    return out_values->bits != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

void rondo__values_deinit(rondo__values *values) {
    rondo__free(values->bits);
    *values = (rondo__values){0};
}

void rondo__values_copy(const rondo__arguments *arguments, rondo__values *to,
                        const rondo__values *from) {
    memcpy(to->bits, from->bits,
           (arguments->count + 1) * sizeof(uint64_t) + arguments->struct_bytes);
}

rondo_value rondo__value_from_bits(const rondo__argument *argument, const rondo__values *values,
                                   size_t index) {
    rondo_value value = {.unsigned_integer = values->bits[index]};
    if (argument->kind == RONDO_ARGUMENT_POINTER) {
        value.pointer = (void *)(uintptr_t)values->bits[index];
    } else if (argument->kind == RONDO_ARGUMENT_STRUCT) {
        value.bytes = values->bytes + argument->struct_offset;
    }
    return value;
}

void rondo__argument_format(const rondo__argument *argument, uint64_t bits, char *text,
                            size_t capacity) {
    if (argument->kind == RONDO_ARGUMENT_STRUCT) {
        snprintf(text, capacity, "a struct");
    } else if (argument->kind == RONDO_ARGUMENT_POINTER) {
        snprintf(text, capacity, "0x%" PRIx64, bits);
    } else if (rondo__argument_is_float(argument)) {
        snprintf(text, capacity, "%.9g", rondo__argument_get_number(argument, bits));
    } else if (argument->is_signed) {
        snprintf(text, capacity, "%" PRId64, (int64_t)bits);
    } else {
        snprintf(text, capacity, "%" PRIu64, bits);
    }
}

static rondo_status fail_domain(const rondo__argument *argument, uint64_t bits, const char *call) {
    char texts[3][40];
    rondo__argument_format(argument, bits, texts[0], sizeof texts[0]);
    rondo__argument_format(argument, argument->least, texts[1], sizeof texts[1]);
    rondo__argument_format(argument, argument->most, texts[2], sizeof texts[2]);
    if (argument->set != NULL) {
        return RONDO_FAIL_AS(call, INVALID,
                             "argument \"%s\" is %s, which is none of its %zu values",
                             argument->name, texts[0], argument->set_count);
    }
    if (argument->multiple_of > 1) {
        return RONDO_FAIL_AS(call, INVALID,
                             "argument \"%s\" is %s; its domain is from %s to %s, multiples of "
                             "%" PRIu64,
                             argument->name, texts[0], texts[1], texts[2], argument->multiple_of);
    }
    return RONDO_FAIL_AS(call, INVALID, "argument \"%s\" is %s; its domain is from %s to %s",
                         argument->name, texts[0], texts[1], texts[2]);
}

static bool is_in_set(const rondo__argument *argument, uint64_t bits, const unsigned char *bytes) {
    for (size_t i = 0; i < argument->set_count; ++i) {
        if (argument->kind == RONDO_ARGUMENT_STRUCT
                ? memcmp(argument->set_bytes + i * argument->struct_bytes, bytes,
                         argument->struct_bytes) == 0
                : argument->set[i] == bits) {
            return true;
        }
    }
    return false;
}

bool rondo__argument_holds(const rondo__argument *argument, uint64_t bits,
                           const unsigned char *bytes) {
    if (argument->kind == RONDO_ARGUMENT_POINTER) {
        return bits != 0 && (bits & (argument->alignment - 1)) == 0;
    }
    if (argument->set != NULL) {
        return is_in_set(argument, bits, bytes);
    }
    if (argument->is_integer) {
        const uint64_t rank = rondo__argument_get_rank(argument, bits);
        return rank >= rondo__argument_get_rank(argument, argument->least) &&
               rank <= rondo__argument_get_rank(argument, argument->most) &&
               rondo__argument_get_remainder(argument, bits) == 0;
    }
    const double number = argument->has_range ? rondo__argument_get_number(argument, bits) : 0.0;
    return !argument->has_range ||
           (number >= rondo__argument_get_number(argument, argument->least) &&
            number <= rondo__argument_get_number(argument, argument->most));
}

rondo_status rondo__argument_check(const rondo__argument *argument, uint64_t bits,
                                   const unsigned char *bytes, const char *call) {
    if (rondo__argument_holds(argument, bits, bytes)) {
        return RONDO_STATUS_OK;
    }
    if (argument->kind != RONDO_ARGUMENT_POINTER) {
        return fail_domain(argument, bits, call);
    }
    if (bits == 0) {
        return RONDO_FAIL_AS(call, INVALID, "argument \"%s\" is NULL", argument->name);
    }
    return RONDO_FAIL_AS(call, INVALID,
                         "argument \"%s\" is 0x%" PRIx64 ", which is no multiple of %" PRIu64
                         "; give its alignment in rondo_argument where it is a smaller one",
                         argument->name, bits, argument->alignment);
}
