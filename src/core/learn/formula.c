// learn/formula.c — see formula.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/formula.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

__extension__ typedef __int128 wide;

static uint64_t cut(uint64_t word, uint32_t width) {
    return width >= 8 ? word : word & ((UINT64_C(1) << (8 * width)) - 1);
}

static uint64_t extend_sign(uint64_t word, unsigned bits) {
    if (bits == 0 || bits >= 64) {
        return bits == 0 ? 0 : word;
    }
    const uint64_t sign = UINT64_C(1) << (bits - 1);
    word &= (UINT64_C(1) << bits) - 1;
    return (word ^ sign) - sign;
}

static uint64_t extend(uint64_t bits, rondo__extension extension) {
    switch (extension) {
        case RONDO__EXTEND_ZERO_4:
            return cut(bits, 4);
        case RONDO__EXTEND_ZERO_2:
            return cut(bits, 2);
        case RONDO__EXTEND_ZERO_1:
            return cut(bits, 1);
        case RONDO__EXTEND_SIGN_4:
            return extend_sign(bits, 32);
        case RONDO__EXTEND_SIGN_2:
            return extend_sign(bits, 16);
        case RONDO__EXTEND_SIGN_1:
            return extend_sign(bits, 8);
        default:
            return bits;
    }
}

// ---- evaluation -------------------------------------------------------------------------------

// The argument, or the product of two, modulo 2^64.
static uint64_t get_base(const rondo__formula *formula, const rondo__values *values) {
    const uint64_t first = extend(values->bits[formula->argument], formula->extension);
    return formula->second == RONDO__NO_ARGUMENT ? first : first * values->bits[formula->second];
}

// The same as a number; false: it has more than 127 bits.
static bool get_wide_base(const rondo__formula *formula, const rondo__arguments *arguments,
                          const rondo__values *values, wide *out_base) {
    const uint16_t factors[] = {formula->argument, formula->second};
    wide base = 1;
    for (size_t i = 0; i < 2; ++i) {
        if (factors[i] == RONDO__NO_ARGUMENT) {
            continue;
        }
        const uint64_t bits = values->bits[factors[i]];
        const wide factor =
            arguments->list[factors[i]].is_signed ? (wide)(int64_t)bits : (wide)bits;
        if (__builtin_mul_overflow(base, factor, &base)) {
            return false;
        }
    }
    *out_base = base;
    return true;
}

static uint64_t evaluate_ceil(const rondo__formula *formula, const rondo__arguments *arguments,
                              const rondo__values *values) {
    wide base;
    if (!get_wide_base(formula, arguments, values, &base) || base < 0) {
        return UINT64_MAX;  // no such formula is fitted to negative numbers
    }
    return (uint64_t)((base + (wide)formula->d - 1) / (wide)formula->d);
}

static uint64_t evaluate_float(const rondo__formula *formula, const rondo__argument *argument,
                               uint64_t bits) {
    if (formula->width == argument->width) {
        return bits;
    }
    uint64_t word = 0;
    if (formula->width == 4) {
        double number;
        memcpy(&number, &bits, sizeof number);
        const float single = (float)number;
        memcpy(&word, &single, sizeof single);
    } else {
        float single;
        memcpy(&single, &bits, sizeof single);
        const double number = (double)single;
        memcpy(&word, &number, sizeof number);
    }
    return word;
}

uint64_t rondo__formula_evaluate(const rondo__formula *formula, const rondo__arguments *arguments,
                                 const rondo__values *values) {
    const rondo__argument *argument = &arguments->list[formula->argument];
    uint64_t word = 0;
    switch (formula->kind) {
        case RONDO__FORMULA_INTEGER:
            word = formula->a * get_base(formula, values) + formula->c;
            break;
        case RONDO__FORMULA_CEIL:
            word = evaluate_ceil(formula, arguments, values);
            break;
        case RONDO__FORMULA_ADDRESS:
            word = values->bits[formula->argument] + formula->c;
            word += formula->second != RONDO__NO_ARGUMENT
                        ? formula->a * values->bits[formula->second]
                        : 0;
            break;
        case RONDO__FORMULA_FLOAT:
            word = evaluate_float(formula, argument, values->bits[formula->argument]);
            break;
        default:
            memcpy(&word, values->bytes + argument->struct_offset + formula->c, formula->width);
            break;
    }
    return cut(word, formula->width);
}

bool rondo__formula_is_plain(const rondo__formula *formula, const rondo__arguments *arguments) {
    switch (formula->kind) {
        case RONDO__FORMULA_INTEGER:
            return formula->extension == RONDO__EXTEND_NONE && formula->a == 1 && formula->c == 0 &&
                   formula->second == RONDO__NO_ARGUMENT;
        case RONDO__FORMULA_ADDRESS:
            return formula->c == 0 && formula->second == RONDO__NO_ARGUMENT;
        case RONDO__FORMULA_FLOAT:
            return formula->width == arguments->list[formula->argument].width;
        default:
            return false;
    }
}

// ---- fitting ----------------------------------------------------------------------------------

typedef struct fitting {
    const rondo__sightings *seen;
    rondo__formula *formulas;
    size_t count;
    size_t capacity;
} fitting;

static bool gives_every_word(const rondo__formula *formula, const rondo__sightings *seen) {
    for (size_t r = 0; r < seen->count; ++r) {
        if (rondo__formula_evaluate(formula, seen->arguments, seen->values[r]) != seen->words[r]) {
            return false;
        }
    }
    return true;
}

static bool add(fitting *f, const rondo__formula *formula) {
    if (!gives_every_word(formula, f->seen)) {
        return false;
    }
    if (f->count < f->capacity) {
        f->formulas[f->count++] = *formula;
    }
    return true;
}

// The inverse of an odd number modulo 2^64; each turn doubles the bits that are right.
static uint64_t invert(uint64_t odd) {
    uint64_t inverse = odd;
    for (int i = 0; i < 6; ++i) {
        inverse *= 2 - odd * inverse;
    }
    return inverse;
}

// Sets a and c so that two recordings come out right: those whose bases differ by the fewest twos.
// Of the numbers `a` that then fit, which are 2^(bits - twos) apart, the smallest is meant.
static bool fit_line(const rondo__sightings *seen, const uint64_t *bases, uint64_t *out_a,
                     uint64_t *out_c, unsigned *out_twos) {
    const unsigned bits = 8 * seen->width;
    unsigned twos = bits;
    size_t other = 0;
    for (size_t r = 1; r < seen->count; ++r) {
        const uint64_t difference = bases[r] - bases[0];
        const unsigned own = difference == 0 ? 64 : (unsigned)__builtin_ctzll(difference);
        if (own < twos) {
            twos = own;
            other = r;
        }
    }
    if (other == 0) {
        return false;
    }
    const uint64_t difference = cut(seen->words[other] - seen->words[0], seen->width);
    if (twos > 0 && (difference & ((UINT64_C(1) << twos) - 1)) != 0) {
        return false;
    }
    const uint64_t a = (difference >> twos) * invert((bases[other] - bases[0]) >> twos);
    *out_a = extend_sign(a, bits - twos);
    *out_c = extend_sign(seen->words[0] - *out_a * bases[0], bits);
    *out_twos = twos;
    return true;
}

enum { SIGHTINGS_MAX = 128 };

// How many twos all differences of the base have by the domain of its argument.
static unsigned get_twos(const rondo__arguments *arguments, const rondo__formula *formula) {
    const rondo__argument *argument = &arguments->list[formula->argument];
    return formula->second == RONDO__NO_ARGUMENT && argument->set == NULL
               ? (unsigned)__builtin_ctzll(argument->multiple_of)
               : 0;
}

// The next `a` that gives every word, because none of the recordings tells them apart.
static void add_neighbour(fitting *f, const rondo__formula *formula, uint64_t base, unsigned twos) {
    rondo__formula other = *formula;
    other.a += UINT64_C(1) << (8 * formula->width - twos);
    other.c = extend_sign(f->seen->words[0] - other.a * base, 8 * formula->width);
    (void)add(f, &other);
}

static bool fit_integer(fitting *f, uint16_t argument, uint16_t second, rondo__extension extension,
                        bool is_plain) {
    rondo__formula formula = {.kind = RONDO__FORMULA_INTEGER,
                              .extension = extension,
                              .width = f->seen->width,
                              .argument = argument,
                              .second = second};
    uint64_t bases[SIGHTINGS_MAX];
    for (size_t r = 0; r < f->seen->count; ++r) {
        bases[r] = get_base(&formula, f->seen->values[r]);
    }
    unsigned twos = 0;
    if (!fit_line(f->seen, bases, &formula.a, &formula.c, &twos)) {
        return false;
    }
    if ((is_plain && (formula.a != 1 || formula.c != 0)) || !add(f, &formula)) {
        return false;
    }
    if (!is_plain && twos > get_twos(f->seen->arguments, &formula)) {
        add_neighbour(f, &formula, bases[0], twos);
    }
    return true;
}

// In its own width first; then as if it had another sign, or had been cut off to fewer bytes.
static void fit_extensions(fitting *f, uint16_t index) {
    static const struct {
        rondo__extension extension;
        uint32_t width;
        bool is_zero;
    } rows[] = {
        {RONDO__EXTEND_ZERO_4, 4, true}, {RONDO__EXTEND_SIGN_4, 4, false},
        {RONDO__EXTEND_ZERO_2, 2, true}, {RONDO__EXTEND_SIGN_2, 2, false},
        {RONDO__EXTEND_ZERO_1, 1, true}, {RONDO__EXTEND_SIGN_1, 1, false},
    };
    const rondo__argument *argument = &f->seen->arguments->list[index];
    if (fit_integer(f, index, RONDO__NO_ARGUMENT, RONDO__EXTEND_NONE, false)) {
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const bool is_own = rows[i].width == argument->width;
        if (rows[i].width < f->seen->width && rows[i].width <= argument->width &&
            fit_integer(f, index, RONDO__NO_ARGUMENT, rows[i].extension,
                        !(is_own && rows[i].is_zero))) {
            return;
        }
    }
}

// Which d give every word. Nothing where a base is negative.
static bool find_divisors(const rondo__sightings *seen, const rondo__formula *formula,
                          wide *out_least, wide *out_most) {
    wide least = 2;
    wide most = 2;
    wide end = 0;  // 0: no end yet
    for (size_t r = 0; r < seen->count; ++r) {
        wide base;
        const wide word = (wide)seen->words[r];
        if (!get_wide_base(formula, seen->arguments, seen->values[r], &base) || base < 0 ||
            (base == 0) != (word == 0)) {
            return false;
        }
        if (base == 0) {
            continue;
        }
        most = base > most ? base : most;
        const wide from = (base + word - 1) / word;
        least = from > least ? from : least;
        if (word > 1) {
            const wide to = (base - 1) / (word - 1);
            end = end == 0 || to < end ? to : end;
        }
    }
    *out_least = least;
    *out_most = end != 0 ? end : most;  // a larger one gives 1 for all of them, too
    return least <= *out_most && *out_most <= (wide)INT64_MAX;
}

static void fit_ceil(fitting *f, uint16_t argument, uint16_t second) {
    rondo__formula formula = {.kind = RONDO__FORMULA_CEIL,
                              .width = f->seen->width,
                              .argument = argument,
                              .second = second};
    wide least;
    wide most;
    if (!find_divisors(f->seen, &formula, &least, &most)) {
        return;
    }
    formula.d = (uint64_t)least;
    if (add(f, &formula) && most > least) {
        formula.d = (uint64_t)most;
        (void)add(f, &formula);
    }
}

// Whether the word can be no address that lost its high half: that differs much from the whole one,
// and by the same in all recordings whose addresses have that half in common, as the driver's may.
static bool is_whole(const fitting *f, const rondo__formula *formula) {
    const rondo__sightings *seen = f->seen;
    const uint64_t half = UINT64_C(1) << 31;
    const uint64_t extent = seen->arguments->list[formula->argument].extent;
    const uint64_t first = seen->values[0]->bits[formula->argument];
    bool is_seen = formula->c <= (extent > half ? extent : half) || -formula->c <= half;
    for (size_t r = 1; r < seen->count && !is_seen; ++r) {
        is_seen = (seen->values[r]->bits[formula->argument] ^ first) >> 32 != 0;
    }
    return is_seen;
}

static void fit_address(fitting *f, uint16_t pointer) {
    const rondo__sightings *seen = f->seen;
    rondo__formula formula = {.kind = RONDO__FORMULA_ADDRESS,
                              .width = 8,
                              .argument = pointer,
                              .second = RONDO__NO_ARGUMENT,
                              .c = seen->words[0] - seen->values[0]->bits[pointer]};
    if (is_whole(f, &formula) && add(f, &formula)) {
        return;
    }
    uint64_t bases[SIGHTINGS_MAX];
    uint64_t rests[SIGHTINGS_MAX];
    for (size_t r = 0; r < seen->count; ++r) {
        rests[r] = seen->words[r] - seen->values[r]->bits[pointer];
    }
    rondo__sightings rest = *seen;
    rest.words = rests;
    for (size_t i = 0; i < seen->arguments->count; ++i) {
        if (!seen->arguments->list[i].is_integer) {
            continue;
        }
        for (size_t r = 0; r < seen->count; ++r) {
            bases[r] = seen->values[r]->bits[i];
        }
        unsigned twos = 0;
        formula.second = (uint16_t)i;
        if (fit_line(&rest, bases, &formula.a, &formula.c, &twos) && is_whole(f, &formula)) {
            (void)add(f, &formula);
        }
    }
}

uint16_t rondo__formula_find_cut_address(const rondo__sightings *seen) {
    for (size_t i = 0; i < seen->arguments->count && seen->width >= 4; ++i) {
        const rondo__argument *argument = &seen->arguments->list[i];
        const uint64_t first = cut(seen->words[0] - seen->values[0]->bits[i], 4);
        bool is_moved = argument->kind == RONDO_ARGUMENT_POINTER;
        bool is_inside = is_moved;
        for (size_t r = 0; r < seen->count && (is_moved || is_inside); ++r) {
            const uint64_t offset = cut(seen->words[r] - seen->values[r]->bits[i], 4);
            is_moved = is_moved && offset == first;
            is_inside = is_inside && offset < argument->extent;
        }
        if (is_moved || is_inside) {
            return (uint16_t)i;
        }
    }
    return RONDO__NO_ARGUMENT;
}

static void fit_struct(fitting *f, uint16_t index) {
    rondo__formula formula = {.kind = RONDO__FORMULA_BYTES,
                              .width = f->seen->width,
                              .argument = index,
                              .second = RONDO__NO_ARGUMENT};
    const size_t bytes = f->seen->arguments->list[index].struct_bytes;
    for (size_t at = 0; at + formula.width <= bytes; at += formula.width) {
        formula.c = at;
        (void)add(f, &formula);
    }
}

static void fit_one(fitting *f, uint16_t index) {
    const rondo__argument *argument = &f->seen->arguments->list[index];
    const uint32_t width = f->seen->width;
    rondo__formula formula = {.kind = RONDO__FORMULA_FLOAT,
                              .width = width,
                              .argument = index,
                              .second = RONDO__NO_ARGUMENT};
    switch (argument->kind) {
        case RONDO_ARGUMENT_POINTER:
            if (width == 8) {
                fit_address(f, index);
            }
            break;
        case RONDO_ARGUMENT_FLOAT:
        case RONDO_ARGUMENT_DOUBLE:
            if (width == 4 || width == 8) {
                (void)add(f, &formula);
            }
            break;
        case RONDO_ARGUMENT_STRUCT:
            fit_struct(f, index);
            break;
        default:
            fit_extensions(f, index);
            break;
    }
}

size_t rondo__formula_fit(const rondo__sightings *seen, rondo__formula *formulas, size_t capacity) {
    fitting f = {.seen = seen, .formulas = formulas, .capacity = capacity};
    const rondo__argument *list = seen->arguments->list;
    const uint16_t count = (uint16_t)seen->arguments->count;
    for (uint16_t i = 0; i < count; ++i) {
        fit_one(&f, i);
    }
    for (uint16_t i = 0; i < count; ++i) {
        if (list[i].is_integer) {
            fit_ceil(&f, i, RONDO__NO_ARGUMENT);
        }
    }
    for (uint16_t i = 0; i < count; ++i) {
        for (uint16_t j = i; j < count && list[i].is_integer; ++j) {
            if (list[j].is_integer) {
                (void)fit_integer(&f, i, j, RONDO__EXTEND_NONE, false);
                fit_ceil(&f, i, j);
            }
        }
    }
    return f.count;
}

bool rondo__formula_is_tidy(const rondo__formula *formula) {
    if (formula->kind != RONDO__FORMULA_INTEGER) {
        return true;
    }
    const int64_t a = (int64_t)formula->a;
    const int64_t c = (int64_t)formula->c;
    const int64_t a_end = INT64_C(1) << 31;
    const int64_t c_end = INT64_C(1) << 47;
    return a > -a_end && a < a_end && c > -c_end && c < c_end;
}

bool rondo__formula_uses(const rondo__formula *formula, size_t argument) {
    return formula->argument == argument || formula->second == argument;
}

// ---- separation -------------------------------------------------------------------------------

enum { DRAWS_OF_PAIR = 256, DRAWS_OF_CEIL = 64, RANGES_MAX = 4096 };

static bool differ(const rondo__formula *one, const rondo__formula *other,
                   const rondo__arguments *arguments, const rondo__values *values) {
    return rondo__formula_evaluate(one, arguments, values) !=
           rondo__formula_evaluate(other, arguments, values);
}

static void draw_for(const rondo__formula *formula, const rondo__arguments *arguments,
                     rondo__draws *draws, rondo__values *values) {
    const uint16_t used[] = {formula->argument, formula->second};
    for (size_t i = 0; i < 2; ++i) {
        if (used[i] == RONDO__NO_ARGUMENT) {
            continue;
        }
        const rondo__argument *argument = &arguments->list[used[i]];
        if (argument->kind != RONDO_ARGUMENT_POINTER) {
            rondo__argument_draw(argument, draws, RONDO__DRAW_ANY, &values->bits[used[i]],
                                 values->bytes + argument->struct_offset);
        }
    }
}

static wide get_root(wide square) {
    wide root = (wide)sqrtl((long double)square);
    root -= root * root > square;
    return root + ((root + 1) * (root + 1) <= square);
}

// Between k * d and k * e lies every x that two divisors d < e tell apart; with another factor y,
// every x between k * d / y and k * e / y. Where many k pass before these ranges are as wide as the
// steps of the domain, most large x tell them apart, and are drawn by chance.
static bool separate_ceils(const rondo__formula *small, const rondo__formula *large,
                           uint16_t sought, const rondo__arguments *arguments,
                           rondo__values *values) {
    const rondo__argument *argument = &arguments->list[sought];
    const uint16_t other = sought == small->argument ? small->second : small->argument;
    const wide factor =
        other == RONDO__NO_ARGUMENT || other == sought ? 1 : (wide)values->bits[other];
    const bool is_square = other == sought;
    if (factor <= 0) {
        return false;
    }
    for (wide k = 1; k <= RANGES_MAX; ++k) {
        wide from = k * (wide)small->d / factor;
        wide to = k * (wide)large->d / factor;
        from = is_square ? get_root(from) : from;
        to = is_square ? get_root(to) : to;
        if (from >= (wide)INT64_MAX || (argument->set == NULL && from > (wide)argument->most)) {
            return false;
        }
        const uint64_t most = to > (wide)INT64_MAX ? (uint64_t)INT64_MAX : (uint64_t)to;
        uint64_t bits = 0;
        if (rondo__argument_find_integer(argument, (uint64_t)from, most, &bits)) {
            values->bits[sought] = bits;
            if (differ(small, large, arguments, values)) {
                return true;
            }
        }
    }
    return false;
}

static bool separate_divisors(const rondo__formula *one, const rondo__formula *other,
                              const rondo__arguments *arguments, rondo__draws *draws,
                              rondo__values *values) {
    const rondo__formula small = one->d < other->d ? *one : *other;
    const rondo__formula large = one->d < other->d ? *other : *one;
    // In the middle first: the answer halves what is left.
    rondo__formula middle = small;
    middle.d = small.d + (large.d - small.d) / 2;
    rondo__formula next = middle;
    next.d = middle.d + 1;
    const bool has_second = one->second != RONDO__NO_ARGUMENT && one->second != one->argument;
    for (int i = 0; i < (has_second ? DRAWS_OF_CEIL : 1); ++i) {
        const uint16_t sought = i % 2 == 0 ? one->argument : one->second;
        draw_for(one, arguments, draws, values);
        if (separate_ceils(&middle, &next, sought, arguments, values) ||
            separate_ceils(&small, &large, sought, arguments, values)) {
            return true;
        }
    }
    return false;
}

bool rondo__formula_separate(const rondo__formula *one, const rondo__formula *other,
                             const rondo__arguments *arguments, rondo__draws *draws,
                             rondo__values *in_out_values) {
    if (one->kind == RONDO__FORMULA_CEIL && other->kind == RONDO__FORMULA_CEIL &&
        one->argument == other->argument && one->second == other->second &&
        separate_divisors(one, other, arguments, draws, in_out_values)) {
        return true;
    }
    for (int i = 0; i < DRAWS_OF_PAIR; ++i) {
        draw_for(one, arguments, draws, in_out_values);
        draw_for(other, arguments, draws, in_out_values);
        if (differ(one, other, arguments, in_out_values)) {
            return true;
        }
    }
    return false;
}

static uint64_t evaluate_pieces(const rondo__pieces *pieces, const rondo__arguments *arguments,
                                const rondo__values *values) {
    uint64_t word = 0;
    for (size_t i = 0; i < pieces->count; ++i) {
        const struct rondo__piece *piece = &pieces->list[i];
        const uint64_t part = piece->is_constant
                                  ? piece->constant
                                  : rondo__formula_evaluate(&piece->formula, arguments, values);
        word |= part << (8 * pieces->width * i);
    }
    return word;
}

bool rondo__formula_separate_pieces(const rondo__formula *one, const rondo__pieces *pieces,
                                    const rondo__arguments *arguments, rondo__draws *draws,
                                    rondo__values *in_out_values) {
    for (int i = 0; i < DRAWS_OF_PAIR; ++i) {
        draw_for(one, arguments, draws, in_out_values);
        for (size_t k = 0; k < pieces->count; ++k) {
            if (!pieces->list[k].is_constant) {
                draw_for(&pieces->list[k].formula, arguments, draws, in_out_values);
            }
        }
        if (rondo__formula_evaluate(one, arguments, in_out_values) !=
            evaluate_pieces(pieces, arguments, in_out_values)) {
            return true;
        }
    }
    return false;
}

// ---- text -------------------------------------------------------------------------------------

static void format_base(const rondo__formula *formula, const rondo__arguments *arguments,
                        char *text, size_t capacity) {
    static const char *const casts[RONDO__EXTENSION_COUNT] = {
        [RONDO__EXTEND_NONE] = "",           [RONDO__EXTEND_ZERO_4] = "(uint32)",
        [RONDO__EXTEND_ZERO_2] = "(uint16)", [RONDO__EXTEND_ZERO_1] = "(uint8)",
        [RONDO__EXTEND_SIGN_4] = "(int32)",  [RONDO__EXTEND_SIGN_2] = "(int16)",
        [RONDO__EXTEND_SIGN_1] = "(int8)",
    };
    const bool has_second = formula->second != RONDO__NO_ARGUMENT;
    snprintf(text, capacity, "%s%.30s%s%.30s", casts[formula->extension],
             arguments->list[formula->argument].name, has_second ? " * " : "",
             has_second ? arguments->list[formula->second].name : "");
}

static void append_number(char *text, size_t capacity, const char *sign, uint64_t number) {
    const size_t length = strlen(text);
    const bool is_negative = (int64_t)number < 0;
    snprintf(text + length, capacity - length, " %s %" PRIu64,
             is_negative && sign[0] == '+' ? "-" : sign, is_negative ? 0 - number : number);
}

void rondo__formula_format(const rondo__formula *formula, const rondo__arguments *arguments,
                           char *text, size_t capacity) {
    char base[96];
    const rondo__argument *argument = &arguments->list[formula->argument];
    format_base(formula, arguments, base, sizeof base);
    switch (formula->kind) {
        case RONDO__FORMULA_CEIL:
            snprintf(text, capacity, "ceil(%s / %" PRIu64 ")", base, formula->d);
            break;
        case RONDO__FORMULA_ADDRESS:
            snprintf(text, capacity, "%.30s", argument->name);
            if (formula->second != RONDO__NO_ARGUMENT) {
                const size_t length = strlen(text);
                snprintf(text + length, capacity - length, " + %.30s * %" PRId64,
                         arguments->list[formula->second].name, (int64_t)formula->a);
            }
            if (formula->c != 0) {
                append_number(text, capacity, "+", formula->c);
            }
            break;
        case RONDO__FORMULA_FLOAT:
            snprintf(text, capacity, "%s%.30s",
                     formula->width == argument->width
                         ? ""
                         : (formula->width == 4 ? "(float)" : "(double)"),
                     argument->name);
            break;
        case RONDO__FORMULA_BYTES:
            snprintf(text, capacity, "bytes of %.30s from %" PRIu64 " on", argument->name,
                     formula->c);
            break;
        default:
            snprintf(text, capacity, "%s", base);
            if (formula->a != 1) {
                const size_t length = strlen(text);
                snprintf(text + length, capacity - length, " * %" PRId64, (int64_t)formula->a);
            }
            if (formula->c != 0) {
                append_number(text, capacity, "+", formula->c);
            }
            break;
    }
}
