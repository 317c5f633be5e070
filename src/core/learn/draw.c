// learn/draw.c — see draw.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/draw.h"

#include <math.h>

// Source:    Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
uint64_t rondo__draw(rondo__draws *draws) {
    uint64_t z = draws->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t get_number_bits(const rondo__argument *argument, double number) {
    uint64_t bits = 0;
    if (argument->kind == RONDO_ARGUMENT_FLOAT) {
        const float single = (float)number;
        memcpy(&bits, &single, sizeof single);  // the low bytes: little-endian, as all backends are
    } else {
        memcpy(&bits, &number, sizeof number);
    }
    return bits;
}

// ---- integers ---------------------------------------------------------------------------------

// A number from 0 to `most`: evenly, or with any number of digits as likely as any other.
static uint64_t draw_up_to(rondo__draws *draws, uint64_t most, bool is_even) {
    uint64_t number = rondo__draw(draws);
    number = most == UINT64_MAX ? number : number % (most + 1);
    if (is_even || most == 0) {
        return number;
    }
    const unsigned bits = 64 - (unsigned)__builtin_clzll(most);
    const uint64_t shift = rondo__draw(draws) % (bits + 1);
    return shift < 64 ? number >> shift : 0;
}

// Where most cases lie: at the ends and near them, near zero, and anywhere between.
static uint64_t draw_near_cases(const rondo__argument *argument, rondo__draws *draws) {
    const uint64_t multiple = argument->multiple_of;
    const uint64_t steps = (argument->most - argument->least) / multiple;
    const uint64_t choice = rondo__draw(draws) % 8;
    const uint64_t distance = draw_up_to(draws, steps, choice > 4) * multiple;
    const uint64_t near_zero = rondo__draw(draws) % 2 == 0 ? distance : 0 - distance;
    if (choice == 0) {
        return rondo__draw(draws) % 2 == 0 ? argument->least : argument->most;
    }
    if (choice == 1) {
        return argument->most - distance;
    }
    return choice == 2 && rondo__argument_holds(argument, near_zero, NULL)
               ? near_zero
               : argument->least + distance;
}

static uint64_t draw_integer(const rondo__argument *argument, rondo__draws *draws,
                             rondo__draw_kind kind) {
    const uint64_t multiple = argument->multiple_of;
    const uint64_t steps = (argument->most - argument->least) / multiple;
    switch (kind) {
        case RONDO__DRAW_MOST:
            return argument->most;
        case RONDO__DRAW_LEAST:
            return argument->least;
        case RONDO__DRAW_SECOND:
            return argument->least + (steps > 0 ? multiple : 0);
        case RONDO__DRAW_EVEN:
            return argument->least + draw_up_to(draws, steps, true) * multiple;
        default:
            return draw_near_cases(argument, draws);
    }
}

// ---- floats -----------------------------------------------------------------------------------

// A number of the middle sizes, all its bits random, or any finite one.
static uint64_t draw_any_float(const rondo__argument *argument, rondo__draws *draws) {
    const bool is_single = argument->kind == RONDO_ARGUMENT_FLOAT;
    const uint64_t pattern = is_single ? (uint32_t)rondo__draw(draws) : rondo__draw(draws);
    if (rondo__draw(draws) % 2 == 0 && isfinite(rondo__argument_get_number(argument, pattern))) {
        return pattern;
    }
    const double fraction = 1.0 + (double)(rondo__draw(draws) >> 12) * 0x1p-52;
    const int exponent = (int)(rondo__draw(draws) % 64) - 32;
    const double number = ldexp(fraction, exponent);
    return get_number_bits(argument, rondo__draw(draws) % 2 == 0 ? number : -number);
}

static uint64_t draw_in_range(const rondo__argument *argument, rondo__draws *draws) {
    const double least = rondo__argument_get_number(argument, argument->least);
    const double most = rondo__argument_get_number(argument, argument->most);
    const double part = (double)(rondo__draw(draws) >> 11) * 0x1p-53;
    const uint64_t bits = get_number_bits(argument, least * (1.0 - part) + most * part);
    return rondo__argument_holds(argument, bits, NULL) ? bits : argument->least;
}

enum { TRIES = 64 };

// With any exponent as likely as any other; where the range has few of those, evenly.
static uint64_t draw_exponent_in_range(const rondo__argument *argument, rondo__draws *draws) {
    for (int i = 0; i < TRIES; ++i) {
        const uint64_t bits = draw_any_float(argument, draws);
        if (rondo__argument_holds(argument, bits, NULL)) {
            return bits;
        }
    }
    return draw_in_range(argument, draws);
}

static uint64_t draw_float(const rondo__argument *argument, rondo__draws *draws,
                           rondo__draw_kind kind) {
    if (!argument->has_range) {
        return draw_any_float(argument, draws);
    }
    if (kind == RONDO__DRAW_LEAST || kind == RONDO__DRAW_MOST) {
        return kind == RONDO__DRAW_LEAST ? argument->least : argument->most;
    }
    const bool is_finite = isfinite(rondo__argument_get_number(argument, argument->least)) &&
                           isfinite(rondo__argument_get_number(argument, argument->most));
    return is_finite && (kind == RONDO__DRAW_EVEN || rondo__draw(draws) % 2 == 0)
               ? draw_in_range(argument, draws)
               : draw_exponent_in_range(argument, draws);
}

// ---- draws ------------------------------------------------------------------------------------

static size_t draw_from_set(const rondo__argument *argument, rondo__draws *draws,
                            rondo__draw_kind kind) {
    size_t place = (size_t)(rondo__draw(draws) % argument->set_count);
    if (argument->is_integer && (kind == RONDO__DRAW_MOST || kind == RONDO__DRAW_LEAST)) {
        for (size_t i = 0; i < argument->set_count; ++i) {
            const bool is_larger = rondo__argument_get_rank(argument, argument->set[i]) >
                                   rondo__argument_get_rank(argument, argument->set[place]);
            const bool is_other = argument->set[i] != argument->set[place];
            place = is_other && is_larger == (kind == RONDO__DRAW_MOST) ? i : place;
        }
    }
    return place;
}

void rondo__argument_draw(const rondo__argument *argument, rondo__draws *draws,
                          rondo__draw_kind kind, uint64_t *out_bits, unsigned char *out_bytes) {
    *out_bits = 0;
    if (argument->set != NULL) {
        rondo__argument_get_value(argument, draw_from_set(argument, draws, kind), out_bits,
                                  out_bytes);
    } else if (argument->kind == RONDO_ARGUMENT_STRUCT) {
        for (size_t i = 0; i < argument->struct_bytes; ++i) {
            out_bytes[i] = (unsigned char)rondo__draw(draws);
        }
    } else if (argument->is_integer) {
        *out_bits = draw_integer(argument, draws, kind);
    } else {
        *out_bits = draw_float(argument, draws, kind);
    }
}

// ---- values one by one ------------------------------------------------------------------------

size_t rondo__argument_count_values(const rondo__argument *argument, size_t most) {
    uint64_t count = most;
    if (argument->set != NULL) {
        count = argument->set_count;
    } else if (argument->is_integer) {
        const uint64_t steps = (argument->most - argument->least) / argument->multiple_of;
        count = steps < most ? steps + 1 : most;
    } else if (argument->kind != RONDO_ARGUMENT_STRUCT && argument->has_range &&
               argument->least == argument->most) {
        count = 1;
    }
    return count < most ? (size_t)count : most;
}

void rondo__argument_get_value(const rondo__argument *argument, size_t index, uint64_t *out_bits,
                               unsigned char *out_bytes) {
    if (argument->set == NULL) {
        *out_bits = argument->least + index * argument->multiple_of;
    } else if (argument->kind == RONDO_ARGUMENT_STRUCT) {
        *out_bits = 0;
        memcpy(out_bytes, argument->set_bytes + index * argument->struct_bytes,
               argument->struct_bytes);
    } else {
        *out_bits = argument->set[index];
    }
}

bool rondo__argument_can_vary(const rondo__argument *argument) {
    if (argument->kind == RONDO_ARGUMENT_POINTER) {
        return true;
    }
    if (argument->set != NULL) {
        for (size_t i = 1; i < argument->set_count; ++i) {
            if (argument->kind == RONDO_ARGUMENT_STRUCT
                    ? memcmp(argument->set_bytes, argument->set_bytes + i * argument->struct_bytes,
                             argument->struct_bytes) != 0
                    : argument->set[i] != argument->set[0]) {
                return true;
            }
        }
        return false;
    }
    return argument->kind == RONDO_ARGUMENT_STRUCT || !argument->has_range ||
           argument->least != argument->most;
}

// ---- special values ---------------------------------------------------------------------------

static const int64_t special_integers[] = {0, 1, -1, 2, 3, 4, -2, 7, 8, 16, 32, 64, 128, 256, 1024};

// 0, 1, -1, -0, 1/2, 2, infinities, NaN, the largest, the least denormal, the least normal.
static const uint64_t special_floats[][13] = {
    {0, 0x3f800000, 0xbf800000, 0x80000000, 0x3f000000, 0x40000000, 0x7f800000, 0xff800000,
     0x7fc00000, 0x7f7fffff, 0xff7fffff, 1, 0x00800000},
    {0, UINT64_C(0x3ff0000000000000), UINT64_C(0xbff0000000000000), UINT64_C(0x8000000000000000),
     UINT64_C(0x3fe0000000000000), UINT64_C(0x4000000000000000), UINT64_C(0x7ff0000000000000),
     UINT64_C(0xfff0000000000000), UINT64_C(0x7ff8000000000000), UINT64_C(0x7fefffffffffffff),
     UINT64_C(0xffefffffffffffff), 1, UINT64_C(0x0010000000000000)}};

static void add_special(const rondo__argument *argument, uint64_t bits, rondo__specials *specials) {
    if (specials->count == RONDO__SPECIALS_MAX || !rondo__argument_holds(argument, bits, NULL)) {
        return;
    }
    for (size_t i = 0; i < specials->count; ++i) {
        if (specials->bits[i] == bits) {
            return;
        }
    }
    specials->bits[specials->count++] = bits;
}

static void add_numbers(const rondo__argument *argument, rondo__specials *specials) {
    if (argument->is_integer) {
        for (size_t i = 0; i < sizeof special_integers / sizeof *special_integers; ++i) {
            add_special(argument, (uint64_t)special_integers[i], specials);
            specials->small_count = i == 1 ? specials->count : specials->small_count;
        }
        return;
    }
    const uint64_t *floats = special_floats[argument->kind == RONDO_ARGUMENT_DOUBLE];
    for (size_t i = 0; i < sizeof special_floats[0] / sizeof *floats; ++i) {
        add_special(argument, floats[i], specials);
        specials->small_count = i == 1 ? specials->count : specials->small_count;
    }
}

void rondo__argument_list_specials(const rondo__argument *argument, rondo__specials *out_specials) {
    *out_specials = (rondo__specials){.count = 0};
    if (argument->kind == RONDO_ARGUMENT_STRUCT) {
        const size_t count = argument->set != NULL ? argument->set_count : 2;
        for (size_t i = 0; i < count && i < RONDO__SPECIALS_MAX; ++i) {
            out_specials->bits[out_specials->count++] = argument->set != NULL || i == 0 ? i : 255;
        }
        return;
    }
    add_numbers(argument, out_specials);
    for (size_t i = 0; i < argument->set_count; ++i) {
        add_special(argument, argument->set[i], out_specials);
    }
    if (argument->set == NULL && argument->has_range) {
        add_special(argument, argument->least, out_specials);
        add_special(argument, argument->most, out_specials);
    }
    if (argument->set == NULL && argument->is_integer) {
        add_special(argument, argument->least + argument->multiple_of, out_specials);
        add_special(argument, argument->most - argument->multiple_of, out_specials);
        const size_t few = 12;
        const size_t count = rondo__argument_count_values(argument, few);
        for (size_t i = 0; i < count && count < few; ++i) {
            add_special(argument, argument->least + i * argument->multiple_of, out_specials);
        }
    }
}

void rondo__argument_set_special(const rondo__argument *argument, uint64_t special,
                                 uint64_t *out_bits, unsigned char *out_bytes) {
    if (argument->kind != RONDO_ARGUMENT_STRUCT) {
        *out_bits = special;
    } else if (argument->set != NULL) {
        rondo__argument_get_value(argument, (size_t)special, out_bits, out_bytes);
    } else {
        *out_bits = 0;
        memset(out_bytes, (int)special, argument->struct_bytes);
    }
}
