// learn/learn_random.c — see learn_random.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/learn_random.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

uint64_t draw(rng *r) {
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return r->state * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t draw_below(rng *r, uint64_t end) {
    return (draw(r) >> 11) % end;
}

static bool draw_one_in(rng *r, uint64_t n) {
    return draw_below(r, n) == 0;
}

// ---- arguments --------------------------------------------------------------------------------

static const uint32_t widths[] = {
    [RONDO_ARGUMENT_POINTER] = 8, [RONDO_ARGUMENT_INT8] = 1,   [RONDO_ARGUMENT_INT16] = 2,
    [RONDO_ARGUMENT_INT32] = 4,   [RONDO_ARGUMENT_INT64] = 8,  [RONDO_ARGUMENT_UINT8] = 1,
    [RONDO_ARGUMENT_UINT16] = 2,  [RONDO_ARGUMENT_UINT32] = 4, [RONDO_ARGUMENT_UINT64] = 8,
    [RONDO_ARGUMENT_BOOL] = 1,    [RONDO_ARGUMENT_FLOAT] = 4,  [RONDO_ARGUMENT_DOUBLE] = 8,
    [RONDO_ARGUMENT_STRUCT] = 0,
};

static bool is_integer(const rondo_argument *a) {
    return a->kind >= RONDO_ARGUMENT_INT8 && a->kind <= RONDO_ARGUMENT_BOOL;
}

static bool is_signed(const rondo_argument *a) {
    return a->kind >= RONDO_ARGUMENT_INT8 && a->kind <= RONDO_ARGUMENT_INT64;
}

static void make_domain(step *s, size_t i, rng *r) {
    rondo_argument *a = &s->arguments[i];
    const uint32_t bits = 8 * widths[a->kind];
    const int64_t kind_most = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - is_signed(a))) - 1;
    static const int64_t mosts[] = {1, 2, 7, 63, 100, 127, 1000, 32767, 100000, 2147483647};
    s->may_count[i] = true;
    if (a->kind == RONDO_ARGUMENT_BOOL) {
        return;
    }
    const uint64_t shape = draw_below(r, 6);
    if (shape == 0) {  // all there are
        s->may_count[i] = !is_signed(a) && bits < 64;
        return;
    }
    int64_t most = mosts[draw_below(r, 10)];
    most = most < kind_most ? most : kind_most;
    a->most.integer = most;
    if (shape == 1 && is_signed(a)) {
        a->least.integer = -most;
        s->may_count[i] = false;
    } else if (shape == 2) {
        a->least.integer = 1;
    } else if (shape == 3 && most > 16) {
        a->multiple_of = 8;
    } else if (shape == 4) {
        for (size_t k = 0; k < 3; ++k) {
            s->sets[i][k].integer = (int64_t)draw_below(r, (uint64_t)most + 1);
        }
        a->values = s->sets[i];
        a->value_count = 3;
        a->most.integer = 0;
    }
}

static void make_floats(rondo_argument *a, rng *r) {
    if (draw_one_in(r, 2)) {
        return;
    }
    if (a->kind == RONDO_ARGUMENT_FLOAT) {
        a->least.single = -2.0f;
        a->most.single = 3.0f;
    } else {
        a->least.number = -2.0;
        a->most.number = 3.0;
    }
}

static void make_argument(step *s, size_t i, rng *r) {
    static const rondo_argument_kind kinds[] = {
        RONDO_ARGUMENT_INT8,   RONDO_ARGUMENT_INT16,  RONDO_ARGUMENT_INT32,  RONDO_ARGUMENT_INT64,
        RONDO_ARGUMENT_UINT8,  RONDO_ARGUMENT_UINT16, RONDO_ARGUMENT_UINT32, RONDO_ARGUMENT_UINT64,
        RONDO_ARGUMENT_INT32,  RONDO_ARGUMENT_INT32,  RONDO_ARGUMENT_BOOL,   RONDO_ARGUMENT_FLOAT,
        RONDO_ARGUMENT_DOUBLE, RONDO_ARGUMENT_FLOAT,  RONDO_ARGUMENT_STRUCT};
    rondo_argument *a = &s->arguments[i];
    snprintf(s->names[i], sizeof s->names[i], "%c", (char)('a' + i));
    *a = (rondo_argument){.struct_size = sizeof *a, .name = s->names[i]};
    if (i < s->pointer_count) {
        a->extent = EXTENT;
        a->alignment = draw_one_in(r, 3) ? 16 : 0;
        return;
    }
    a->kind = kinds[draw_below(r, sizeof kinds / sizeof *kinds)];
    if (a->kind == RONDO_ARGUMENT_STRUCT) {
        a->bytes = STRUCT_BYTES;
        if (draw_one_in(r, 2)) {
            for (size_t k = 0; k < 3; ++k) {
                for (size_t b = 0; b < STRUCT_BYTES; ++b) {
                    s->struct_sets[k][b] = (unsigned char)draw(r);
                }
                s->sets[i][k].bytes = s->struct_sets[k];
            }
            a->values = s->sets[i];
            a->value_count = 3;
        }
    } else if (is_integer(a)) {
        make_domain(s, i, r);
    } else {
        make_floats(a, r);
    }
}

// ---- words ------------------------------------------------------------------------------------

static size_t find_argument(const step *s, rng *r, bool (*is_wanted)(const step *, size_t)) {
    size_t found[ARGUMENTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < s->argument_count; ++i) {
        if (is_wanted(s, i)) {
            found[count++] = i;
        }
    }
    return count > 0 ? found[draw_below(r, count)] : SIZE_MAX;
}

static bool want_pointer(const step *s, size_t i) {
    return i < s->pointer_count;
}
static bool want_integer(const step *s, size_t i) {
    return is_integer(&s->arguments[i]);
}
static bool want_count(const step *s, size_t i) {
    return is_integer(&s->arguments[i]) && s->may_count[i];
}
static bool want_positive(const step *s, size_t i) {
    return want_count(s, i) && s->arguments[i].least.integer > 0;
}
static bool want_float(const step *s, size_t i) {
    return s->arguments[i].kind == RONDO_ARGUMENT_FLOAT ||
           s->arguments[i].kind == RONDO_ARGUMENT_DOUBLE;
}
static bool want_struct(const step *s, size_t i) {
    return s->arguments[i].kind == RONDO_ARGUMENT_STRUCT;
}

static bool want_interval(const step *s, size_t i) {
    const rondo_argument *a = &s->arguments[i];
    return is_integer(a) && a->values == NULL && a->most.integer >= 100;
}

typedef bool (*wanting)(const step *, size_t);

static const wanting wanted[WORD_KIND_COUNT] = {
    [WORD_POINTER] = want_pointer,
    [WORD_POINTER_INDEX] = want_pointer,
    [WORD_INTEGER] = want_integer,
    [WORD_UNSIGNED] = want_integer,
    [WORD_NARROWED] = want_integer,
    [WORD_LINE] = want_integer,
    [WORD_CEIL] = want_count,
    [WORD_PRODUCT] = want_integer,
    [WORD_CEIL_PRODUCT] = want_count,
    [WORD_FLOAT] = want_float,
    [WORD_FLOAT_CONVERTED] = want_float,
    [WORD_STRUCT] = want_struct,
    [WORD_HASH] = want_integer,
    [WORD_FLOOR] = want_integer,
    [WORD_MASK] = want_integer,
    [WORD_LEAST] = want_integer,
    [WORD_PARITY] = want_integer,
    [WORD_INT_TO_FLOAT] = want_integer,
    [WORD_MAGIC] = want_positive,
    [WORD_LOW_HALF] = want_pointer,
    [WORD_SAME_POINTER] = want_pointer,
    [WORD_SPECIAL_FLOAT] = want_float,
    [WORD_SPECIAL_INTEGER] = want_integer,
    [WORD_INTERVAL] = want_interval,
};

static word constant(int64_t value, uint32_t width) {
    return (word){.kind = WORD_CONSTANT, .width = width, .c = value};
}

static int64_t draw_number(rng *r) {
    static const int64_t numbers[] = {1, 2, 3, 4, 5, 8, 12, 16, 64, 100, 256, 1000, 4096, 65537};
    const int64_t number = numbers[draw_below(r, 14)];
    return draw_one_in(r, 6) ? -number : number;
}

static word make_word(const step *s, rng *r, word_kind kind) {
    static const uint32_t all[] = {8, 4, 8, 4, 2, 1};
    word w = {.kind = kind, .width = all[draw_below(r, 6)]};
    w.a = draw_number(r);
    w.c = draw_one_in(r, 2) ? 0 : draw_number(r);
    w.d = draw_number(r);
    w.d = w.d < 0 ? -w.d : w.d;
    if (kind != WORD_CONSTANT && kind != WORD_CALLS) {
        const size_t first = find_argument(s, r, wanted[kind]);
        if (first == SIZE_MAX) {
            return constant(w.c, w.width);
        }
        w.first = (uint16_t)first;
    }
    const bool needs_count = kind == WORD_CEIL_PRODUCT;
    const size_t second = find_argument(s, r, needs_count ? want_count : want_integer);
    if ((needs_count || kind == WORD_PRODUCT || kind == WORD_POINTER_INDEX) && second == SIZE_MAX) {
        return constant(w.c, w.width);
    }
    w.second = second != SIZE_MAX ? (uint16_t)second : 0;
    const uint32_t own = widths[s->arguments[w.first].kind];
    switch (kind) {
        case WORD_POINTER:
        case WORD_POINTER_INDEX:
            w.width = 8;
            break;
        case WORD_FLOAT:
            w.width = own;
            break;
        case WORD_FLOAT_CONVERTED:
            w.width = 12 - own;
            break;
        case WORD_NARROWED:
            w.width = w.width < 4 ? 4 : w.width;
            break;
        case WORD_INT_TO_FLOAT:
        case WORD_LOW_HALF:
            w.width = 4;
            break;
        case WORD_HASH:
        case WORD_MAGIC:
        case WORD_LEAST:
            w.width = 8;
            break;
        case WORD_MASK:
            w.c = 5;
            break;
        case WORD_SAME_POINTER:
            w.second = (uint16_t)find_argument(s, r, want_pointer);
            w.width = 8;
            break;
        case WORD_SPECIAL_FLOAT:
        case WORD_SPECIAL_INTEGER:
        case WORD_INTERVAL:
            w.c = (int64_t)draw_below(r, 5);
            w.width = 8;
            break;
        case WORD_STRUCT:
            w.c = (int64_t)(draw_below(r, STRUCT_BYTES / w.width) * w.width);
            break;
        default:
            break;
    }
    return w;
}

static uint64_t get_bits(const step *s, size_t i, const rondo_value *values) {
    return is_integer(&s->arguments[i]) ? values[i].unsigned_integer : 0;
}

static uint64_t compute_float(const step *s, const word *w, const rondo_value *values,
                              bool is_converted) {
    uint64_t bits = 0;
    const rondo_value value = values[w->first];
    const bool is_single = s->arguments[w->first].kind == RONDO_ARGUMENT_FLOAT;
    const float single = is_single ? value.single : (float)value.number;
    const double number = is_single ? (double)value.single : value.number;
    if (is_single != is_converted) {
        memcpy(&bits, &single, sizeof single);
    } else {
        memcpy(&bits, &number, sizeof number);
    }
    return bits;
}

static bool is_special_float(const step *s, const word *w, const rondo_value *values) {
    const bool is_single = s->arguments[w->first].kind == RONDO_ARGUMENT_FLOAT;
    const double f = is_single ? (double)values[w->first].single : values[w->first].number;
    const double largest = is_single ? (double)FLT_MAX : DBL_MAX;
    const bool is_case[] = {f == 0.0, f == 1.0, isinf(f) != 0, isnan(f) != 0, fabs(f) == largest};
    return is_case[w->c];
}

// A case that nothing but its values show.
static uint64_t compute_case(const step *s, const word *w, const rondo_value *values) {
    const rondo_argument *a = &s->arguments[w->first];
    const int64_t n = values[w->first].integer;
    switch (w->kind) {
        case WORD_SAME_POINTER:
            return w->first != w->second && values[w->first].pointer == values[w->second].pointer;
        case WORD_SPECIAL_FLOAT:
            return is_special_float(s, w, values);
        case WORD_SPECIAL_INTEGER:
            return n == w->c % 2;
        default:
            return n > a->most.integer / 2 &&
                   n <= a->most.integer / 2 + (a->most.integer - a->least.integer) / 10;
    }
}

static uint64_t compute_odd(const step *s, const word *w, const rondo_value *values) {
    const uint64_t n = get_bits(s, w->first, values);
    uint64_t bits = 0;
    float number;
    switch (w->kind) {
        case WORD_HASH:
            return (n * UINT64_C(0x9e3779b97f4a7c15)) >> 7;
        case WORD_FLOOR:
            return (uint64_t)((int64_t)n / (w->d + 1));
        case WORD_MASK:
            return n & (uint64_t)w->c;
        case WORD_LEAST:
            return (int64_t)n < w->d ? n : (uint64_t)w->d;
        case WORD_PARITY:
            return n & 1;
        case WORD_INT_TO_FLOAT:
            number = (float)(int64_t)n;
            memcpy(&bits, &number, sizeof number);
            return bits;
        case WORD_MAGIC:
            return n == 0 ? 0 : (UINT64_C(1) << 32) / n + 1;
        case WORD_SAME_POINTER:
        case WORD_SPECIAL_FLOAT:
        case WORD_SPECIAL_INTEGER:
        case WORD_INTERVAL:
            return compute_case(s, w, values);
        case WORD_LOW_HALF:
            return (uint32_t)(uintptr_t)values[w->first].pointer;
        default:
            return s->calls;
    }
}

uint64_t word_compute(const step *s, const word *w, const rondo_value *values) {
    const uint64_t n = w->kind >= WORD_INTEGER ? get_bits(s, w->first, values) : 0;
    const uint64_t m = get_bits(s, w->second, values);
    const uint32_t own = widths[s->arguments[w->first].kind];
    const uint64_t a = (uint64_t)w->a;
    const uint64_t c = (uint64_t)w->c;
    const uint64_t d = (uint64_t)w->d;
    uint64_t bits = 0;
    switch (w->kind) {
        case WORD_CONSTANT:
            return c;
        case WORD_POINTER:
            return (uintptr_t)values[w->first].pointer + c;
        case WORD_POINTER_INDEX:
            return (uintptr_t)values[w->first].pointer + a * m + c;
        case WORD_INTEGER:
            return n;
        case WORD_UNSIGNED:
            return own == 8 ? n : n & ((UINT64_C(1) << (8 * own)) - 1);
        case WORD_NARROWED:
            return own >= 2 ? (uint64_t)(int64_t)(int16_t)n : n;
        case WORD_LINE:
            return a * n + c;
        case WORD_CEIL:
            return n / d + (n % d != 0);
        case WORD_PRODUCT:
            return a * n * m + c;
        case WORD_CEIL_PRODUCT:
            return (n * m) / d + ((n * m) % d != 0);
        case WORD_FLOAT:
        case WORD_FLOAT_CONVERTED:
            return compute_float(s, w, values, w->kind == WORD_FLOAT_CONVERTED);
        case WORD_STRUCT:
            memcpy(&bits, (const char *)values[w->first].bytes + w->c, w->width);
            return bits;
        default:
            return compute_odd(s, w, values);
    }
}

// ---- steps ------------------------------------------------------------------------------------

static uint64_t get_most(const rondo_argument *a) {
    uint64_t most = a->most.unsigned_integer;
    if (a->kind == RONDO_ARGUMENT_BOOL) {
        return 1;
    }
    for (size_t k = 0; k < a->value_count; ++k) {
        most = a->values[k].unsigned_integer > most ? a->values[k].unsigned_integer : most;
    }
    const uint32_t bits = 8 * widths[a->kind];
    const bool is_whole = a->least.integer == 0 && most == 0 && a->values == NULL;
    return is_whole ? UINT64_MAX >> (64 - bits) : most;
}

// A ceil has to fit into its word: C would not cut it off, but go wrong.
static bool fits(const step *s, const word *w) {
    if (w->kind != WORD_CEIL && w->kind != WORD_CEIL_PRODUCT) {
        return true;
    }
    const uint64_t first = get_most(&s->arguments[w->first]);
    const uint64_t second = w->kind == WORD_CEIL_PRODUCT ? get_most(&s->arguments[w->second]) : 1;
    uint64_t product;
    if (__builtin_mul_overflow(first, second, &product) || product > INT64_MAX) {
        return false;
    }
    return w->width == 8 || product / (uint64_t)w->d + 1 < UINT64_C(1) << (8 * w->width);
}

static word make_good_word(const step *s, rng *r) {
    word w;
    do {
        w = make_word(s, r, (word_kind)draw_below(r, WORD_HASH));
    } while (!fits(s, &w));
    return w;
}

// Bytes, from 1 to 256, or a constant where no argument gives such.
static word make_size(const step *s, rng *r) {
    const size_t n = find_argument(s, r, want_count);
    word w = constant((int64_t)draw_below(r, 200) + 1, 4);
    if (n == SIZE_MAX || draw_one_in(r, 3)) {
        return w;
    }
    const uint64_t most = get_most(&s->arguments[n]);
    w.first = (uint16_t)n;
    if (most <= 40 && draw_one_in(r, 2)) {
        w.kind = WORD_LINE;
        w.a = (int64_t)draw_below(r, 5) + 1;
        w.c = (int64_t)draw_below(r, 40) + 1;
    } else if (want_positive(s, n) && most < 60000) {
        w.kind = WORD_CEIL;
        w.d = (int64_t)(most / 200) + 1 + (int64_t)draw_below(r, 300);
    }
    return w;
}

static void make_node(step *s, node *n, rng *r) {
    *n = (node){.kind = (node_kind)draw_below(r, NODE_KIND_COUNT)};
    n->out = (uint16_t)draw_below(r, s->pointer_count);
    n->in = (uint16_t)draw_below(r, s->pointer_count);
    // What is written lies in the upper half, what is read in the lower: copies never overlap.
    n->out_offset = (uint16_t)(1280 + draw_below(r, 240));
    n->in_offset = (uint16_t)draw_below(r, 700);
    n->size = make_size(s, r);
    n->value = make_good_word(s, r);
    n->reads_block = s->uses_block && n->kind == NODE_KERNEL && draw_one_in(r, 2);
    if (n->value.width != 4) {
        n->value = constant(draw_number(r), 4);
    }
    // A byte is only the low end of what was computed, which integers may be cut off to.
    const bool is_number = n->value.kind != WORD_CONSTANT && n->value.kind <= WORD_PRODUCT &&
                           n->value.kind != WORD_CEIL;
    n->element_bytes = is_number ? 1 : 4;
    if (n->kind == NODE_FILL && n->element_bytes == 4) {
        n->out_offset &= (uint16_t)~3U;
        n->size = constant((int64_t)draw_below(r, 64) + 1, 4);
    }
    n->word_count = draw_below(r, WORDS_MAX);
    for (size_t i = 0; i < n->word_count; ++i) {
        n->words[i] = make_good_word(s, r);
    }
}

// Every argument somewhere by itself: the step would be refused otherwise.
static void use_all(step *s) {
    node *n = &s->nodes[s->node_count++];
    *n = (node){.kind = NODE_KERNEL, .out_offset = 1280, .size = constant(1, 4)};
    for (size_t i = 0; i < s->argument_count; ++i) {
        const rondo_argument_kind kind = s->arguments[i].kind;
        word w = {.first = (uint16_t)i, .width = widths[kind]};
        w.kind = kind == RONDO_ARGUMENT_POINTER  ? WORD_POINTER
                 : kind == RONDO_ARGUMENT_STRUCT ? WORD_STRUCT
                 : want_float(s, i)              ? WORD_FLOAT
                                                 : WORD_INTEGER;
        w.width = kind == RONDO_ARGUMENT_STRUCT ? 8 : w.width;
        n->words[n->word_count++] = w;
    }
}

static void spoil(step *s, rng *r) {
    s->is_learnable = false;
    const uint64_t how = draw_below(r, 14);
    if (how == 0) {
        s->has_more_nodes = true;
    } else if (how == 1) {
        s->uses_block = true;
        s->has_larger_block = true;
        s->nodes[0].kind = NODE_KERNEL;
        s->nodes[0].reads_block = true;
    } else {
        node *n = &s->nodes[draw_below(r, s->node_count)];
        const word_kind first = draw_one_in(r, 2) ? WORD_HASH : WORD_SAME_POINTER;
        const word_kind kind = (word_kind)(first + draw_below(r, WORD_KIND_COUNT - first));
        n->kind = n->kind == NODE_HOST ? NODE_HOST : NODE_KERNEL;
        n->words[0] = make_word(s, r, kind);
        s->has_interval = n->words[0].kind == WORD_INTERVAL;
        n->word_count = n->word_count > 0 ? n->word_count : 1;
    }
}

void step_make(step *s, rng *r) {
    *s = (step){.is_learnable = true};
    s->pointer_count = 1 + draw_below(r, 3);
    s->argument_count = s->pointer_count + draw_below(r, ARGUMENTS_MAX - s->pointer_count);
    for (size_t i = 0; i < s->argument_count; ++i) {
        make_argument(s, i, r);
    }
    s->uses_block = draw_one_in(r, 3);
    const size_t node_count = 1 + draw_below(r, NODES_MAX - 1);
    for (; s->node_count < node_count; ++s->node_count) {
        make_node(s, &s->nodes[s->node_count], r);
    }
    if (draw_one_in(r, 4)) {
        spoil(s, r);
    }
    if (s->node_count == NODES_MAX) {
        --s->node_count;
    }
    use_all(s);
}

// ---- values -----------------------------------------------------------------------------------

static uint64_t draw_bits(rng *r) {
    const uint64_t bits = draw(r);
    return draw_one_in(r, 2) ? bits >> draw_below(r, 64) : bits;
}

static int64_t draw_integer(const rondo_argument *a, rng *r) {
    const uint32_t bits = 8 * widths[a->kind];
    if (a->kind == RONDO_ARGUMENT_BOOL) {
        return (int64_t)draw_below(r, 2);
    }
    if (a->least.integer == 0 && a->most.integer == 0) {
        const uint64_t drawn = draw_bits(r);
        if (bits == 64) {
            return (int64_t)drawn;
        }
        const uint64_t low = drawn & ((UINT64_C(1) << bits) - 1);
        const uint64_t sign = UINT64_C(1) << (bits - 1);
        return is_signed(a) ? (int64_t)((low ^ sign) - sign) : (int64_t)low;
    }
    const uint64_t span = (uint64_t)(a->most.integer - a->least.integer) + 1;
    int64_t value = a->least.integer + (int64_t)(draw_bits(r) % span);
    value = draw_one_in(r, 8) ? a->most.integer : value;
    value = draw_one_in(r, 8) ? a->least.integer : value;
    value = draw_one_in(r, 8) && a->least.integer <= 0 ? (int64_t)draw_below(r, 2) : value;
    const int64_t multiple = a->multiple_of > 1 ? (int64_t)a->multiple_of : 1;
    return value - value % multiple;
}

static void draw_value(const step *s, size_t i, rng *r, rondo_value *value,
                       unsigned char struct_bytes[STRUCT_BYTES]) {
    const rondo_argument *a = &s->arguments[i];
    *value = (rondo_value){.unsigned_integer = 0};
    if (a->values != NULL) {
        *value = a->values[draw_below(r, a->value_count)];
    } else if (a->kind == RONDO_ARGUMENT_STRUCT) {
        for (size_t b = 0; b < STRUCT_BYTES; ++b) {
            struct_bytes[b] = (unsigned char)draw(r);
        }
        value->bytes = struct_bytes;
    } else if (is_integer(a)) {
        value->integer = draw_integer(a, r);
    } else {
        const bool has_range =
            a->kind == RONDO_ARGUMENT_FLOAT ? a->most.single != 0.0f : a->most.number != 0.0;
        const double specials[] = {
            0.0, 1.0, -1.0, -0.0, HUGE_VAL, -HUGE_VAL, (double)NAN, (double)FLT_MAX, 1e-42};
        double number = (double)draw_below(r, 5001) / 1000.0 - 2.0;
        number = draw_one_in(r, 2) ? specials[draw_below(r, has_range ? 4 : 9)] : number;
        if (a->kind == RONDO_ARGUMENT_FLOAT) {
            value->single = (float)number;
        } else {
            value->number = number;
        }
    }
}

void step_draw_values(const step *s, rng *r, rondo_value *values,
                      unsigned char struct_bytes[STRUCT_BYTES]) {
    for (size_t i = s->pointer_count; i < s->argument_count; ++i) {
        draw_value(s, i, r, &values[i], struct_bytes);
        // Equal to the one before, where it has the same domain.
        const rondo_argument *a = &s->arguments[i];
        const rondo_argument *b = &s->arguments[i - 1];
        if (i > s->pointer_count && draw_one_in(r, 3) && a->kind == b->kind && a->values == NULL &&
            b->values == NULL && a->most.integer == b->most.integer &&
            a->least.integer == b->least.integer && a->multiple_of == b->multiple_of) {
            values[i] = values[i - 1];
        }
    }
}
