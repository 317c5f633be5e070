// learn/draw.h — values of a domain, drawn at random or because cases lie there.
//
//   EVEN      each value as likely as any other; of floats without a range, each bit pattern of a
//             finite one or, half of the time, a number from 2^-32 to 2^32. The odds count these.
//   ANY       the ends, numbers near them and near zero, any count of digits as likely as any other
//   special   0, 1, -1, the ends, small integers; zeros, infinities, NaN and denormals of floats;
//             all values where there are few
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learn/domain.h"

typedef struct rondo__draws {
    uint64_t state;
} rondo__draws;
uint64_t rondo__draw(rondo__draws *draws);

typedef enum rondo__draw_kind {
    RONDO__DRAW_MOST,  // the upper end of the domain
    RONDO__DRAW_LEAST,
    RONDO__DRAW_SECOND,  // one step from the lower end
    RONDO__DRAW_EVEN,
    RONDO__DRAW_ANY,
} rondo__draw_kind;

// A value of the domain, of all arguments but pointers.
void rondo__argument_draw(const rondo__argument *argument, rondo__draws *draws,
                          rondo__draw_kind kind, uint64_t *out_bits, unsigned char *out_bytes);
// Whether it has more than one value.
bool rondo__argument_can_vary(const rondo__argument *argument);
// How many values the domain of an argument that is no pointer has; `most`: that many or more.
size_t rondo__argument_count_values(const rondo__argument *argument, size_t most);
// One of them, where they are counted.
void rondo__argument_get_value(const rondo__argument *argument, size_t index, uint64_t *out_bits,
                               unsigned char *out_bytes);

enum { RONDO__SPECIALS_MAX = 32 };

// The special values of the domain: 0 and 1 first where they are among them.
typedef struct rondo__specials {
    size_t count;
    uint64_t bits[RONDO__SPECIALS_MAX];  // structs: the number of a value, or the byte to fill
    size_t small_count;                  // the first ones, which are 0 and 1
} rondo__specials;
void rondo__argument_list_specials(const rondo__argument *argument, rondo__specials *out_specials);
void rondo__argument_set_special(const rondo__argument *argument, uint64_t special,
                                 uint64_t *out_bits, unsigned char *out_bytes);
