// learn/draw_plan.c — see draw_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/draw_plan.h"

enum {
    FIRST_DRAWS = 16,
    LAST_DRAWS = 8,
    FEW_VALUES = 4,
    COMBINATIONS_MAX = 64,
    EQUAL_NUMBERS_MAX = 32,
};

// Each fills the index-th request of its phase; false: there is none.
typedef bool (*phase_function)(const rondo__draw_plan *plan, size_t index,
                               rondo__draw_request *request, rondo__values *values);

static const rondo__argument *get_number(const rondo__draw_plan *plan, size_t index) {
    return &plan->arguments->list[plan->numbers[index]];
}

static uint64_t bit_of(const rondo__draw_plan *plan, size_t number) {
    return UINT64_C(1) << plan->numbers[number];
}

static void set_special(const rondo__draw_plan *plan, size_t number, uint64_t special,
                        rondo__draw_request *request, rondo__values *values) {
    const rondo__argument *argument = get_number(plan, number);
    rondo__argument_set_special(argument, special, &values->bits[plan->numbers[number]],
                                values->bytes + argument->struct_offset);
    request->pinned |= bit_of(plan, number);
}

// ---- values at random -------------------------------------------------------------------------

static bool draw_first(const rondo__draw_plan *plan, size_t index, rondo__draw_request *request,
                       rondo__values *values) {
    (void)plan;
    (void)values;
    request->kind = index % 2 == 0 ? RONDO__DRAW_EVEN : RONDO__DRAW_ANY;
    return index < FIRST_DRAWS;
}

static bool draw_last(const rondo__draw_plan *plan, size_t index, rondo__draw_request *request,
                      rondo__values *values) {
    (void)plan;
    (void)request;
    (void)values;
    return index < LAST_DRAWS;
}

// ---- pointers ---------------------------------------------------------------------------------

// Round r of a tournament in which each meets each once.
static void pair_up(const rondo__draw_plan *plan, size_t round, rondo__relation relation,
                    rondo__draw_request *request) {
    const size_t players = plan->pointer_count + plan->pointer_count % 2;
    for (size_t k = 0; 2 * k < players; ++k) {
        const size_t one = k == 0 ? players - 1 : (round + k) % (players - 1);
        const size_t two = (round + players - 1 - k) % (players - 1);
        if (one >= plan->pointer_count || two >= plan->pointer_count) {
            continue;
        }
        const uint16_t first = plan->pointers[one < two ? one : two];
        const uint16_t other = plan->pointers[one < two ? two : one];
        const rondo__argument *a = &plan->arguments->list[first];
        const rondo__argument *b = &plan->arguments->list[other];
        if (a->memory == b->memory &&
            !(rondo__relation_shares(relation) && (a->is_exclusive || b->is_exclusive))) {
            request->pairs[request->pair_count++] =
                (rondo__pair){.first = first, .other = other, .relation = relation};
        }
    }
}

static size_t count_rounds(const rondo__draw_plan *plan) {
    return plan->pointer_count < 2 ? 0 : plan->pointer_count + plan->pointer_count % 2 - 1;
}

static bool draw_equal_pointers(const rondo__draw_plan *plan, size_t index,
                                rondo__draw_request *request, rondo__values *values) {
    (void)values;
    if (index < count_rounds(plan)) {
        pair_up(plan, index, RONDO__RELATION_EQUAL, request);
    }
    return index < count_rounds(plan);
}

// One behind the other comes as one before the other, with the addresses exchanged.
static bool draw_relations(const rondo__draw_plan *plan, size_t index, rondo__draw_request *request,
                           rondo__values *values) {
    const size_t rounds = count_rounds(plan);
    (void)values;
    if (index >= rounds * RONDO__RELATION_EQUAL) {
        return false;
    }
    const size_t relation = index % RONDO__RELATION_EQUAL;
    const size_t round = index / RONDO__RELATION_EQUAL;
    pair_up(plan, round, (rondo__relation)relation, request);
    request->pair_seed = plan->pair_seed + 64 * (round * RONDO__RELATION_EQUAL + relation / 2);
    return true;
}

// ---- numbers ----------------------------------------------------------------------------------

static bool draw_specials(const rondo__draw_plan *plan, size_t index, rondo__draw_request *request,
                          rondo__values *values) {
    for (size_t i = 0; i < plan->number_count; ++i) {
        rondo__specials specials;
        rondo__argument_list_specials(get_number(plan, i), &specials);
        if (index < specials.count) {
            set_special(plan, i, specials.bits[index], request, values);
            return true;
        }
        index -= specials.count;
    }
    return false;
}

// Those with few values, as many as there are combinations for.
static bool draw_combinations(const rondo__draw_plan *plan, size_t index,
                              rondo__draw_request *request, rondo__values *values) {
    size_t product = 1;
    size_t rest = index;
    for (size_t i = 0; i < plan->number_count; ++i) {
        const rondo__argument *argument = get_number(plan, i);
        const size_t count = rondo__argument_count_values(argument, FEW_VALUES + 1);
        if (count > FEW_VALUES || product * count > COMBINATIONS_MAX) {
            continue;
        }
        rondo__argument_get_value(argument, rest % count, &values->bits[plan->numbers[i]],
                                  values->bytes + argument->struct_offset);
        request->pinned |= bit_of(plan, i);
        rest /= count;
        product *= count;
    }
    return product > 1 && index < product;
}

// All 0, all 1, then by the bits of the argument's number, and the other way round: so any two
// arguments have all four combinations.
static bool draw_zeros_and_ones(const rondo__draw_plan *plan, size_t index,
                                rondo__draw_request *request, rondo__values *values) {
    const size_t bit = index / 2;
    if (plan->number_count < 2 || (bit > 0 && (plan->number_count - 1) >> (bit - 1) == 0)) {
        return false;
    }
    for (size_t i = 0; i < plan->number_count; ++i) {
        rondo__specials specials;
        rondo__argument_list_specials(get_number(plan, i), &specials);
        const size_t own = bit == 0 ? 0 : i >> (bit - 1) & 1;
        const size_t wanted = (own + index) % 2;
        if (wanted < specials.small_count) {
            set_special(plan, i, specials.bits[wanted], request, values);
        }
    }
    return true;
}

static bool are_alike(const rondo__argument *one, const rondo__argument *other) {
    return one->is_integer ? other->is_integer
                           : one->kind == other->kind && one->kind != RONDO_ARGUMENT_STRUCT;
}

// The second of two numbers is to be what is drawn for the first here and now.
static bool draw_equal_numbers(const rondo__draw_plan *plan, size_t index,
                               rondo__draw_request *request, rondo__values *values) {
    size_t left = index;
    for (size_t i = 0; i < plan->number_count && index < EQUAL_NUMBERS_MAX; ++i) {
        for (size_t k = i + 1; k < plan->number_count; ++k) {
            const rondo__argument *one = get_number(plan, i);
            const rondo__argument *other = get_number(plan, k);
            if (!are_alike(one, other) || left-- > 0) {
                continue;
            }
            rondo__draws draws = {.state = plan->pair_seed + index};
            for (int tries = 0; tries < FIRST_DRAWS; ++tries) {
                uint64_t bits = 0;
                rondo__argument_draw(tries % 2 == 0 ? one : other, &draws, RONDO__DRAW_ANY, &bits,
                                     NULL);
                if (rondo__argument_holds(one, bits, NULL) &&
                    rondo__argument_holds(other, bits, NULL)) {
                    values->bits[plan->numbers[i]] = bits;
                    values->bits[plan->numbers[k]] = bits;
                    request->pinned |= bit_of(plan, i) | bit_of(plan, k);
                    break;
                }
            }
            return true;
        }
    }
    return false;
}

// ---- what the program named -------------------------------------------------------------------

static bool draw_tried(const rondo__draw_plan *plan, size_t index, rondo__draw_request *request,
                       rondo__values *values) {
    if (index >= plan->tried_count) {
        return false;
    }
    rondo__values_copy(plan->arguments, values, &plan->tried[index]);
    for (size_t i = 0; i < plan->arguments->count; ++i) {
        const bool is_left_open = plan->arguments->list[i].kind == RONDO_ARGUMENT_POINTER &&
                                  plan->tried[index].bits[i] == 0;
        request->pinned |= is_left_open ? 0 : UINT64_C(1) << i;
    }
    return true;
}

// ---- the whole --------------------------------------------------------------------------------

static const phase_function phases[] = {
    draw_first,         draw_equal_pointers, draw_specials, draw_combinations, draw_zeros_and_ones,
    draw_equal_numbers, draw_tried,          draw_last,     draw_relations,
};
enum { PHASE_COUNT = sizeof phases / sizeof *phases, FIRST_SPARE = PHASE_COUNT - 1 };

void rondo__draw_plan_init(const rondo__arguments *arguments, const rondo__values *tried,
                           size_t tried_count, uint64_t pair_seed, rondo__draw_plan *out_plan) {
    *out_plan = (rondo__draw_plan){
        .arguments = arguments, .tried = tried, .tried_count = tried_count, .pair_seed = pair_seed};
    for (size_t i = 0; i < arguments->count; ++i) {
        if (arguments->list[i].kind == RONDO_ARGUMENT_POINTER) {
            out_plan->pointers[out_plan->pointer_count++] = (uint16_t)i;
        } else if (rondo__argument_can_vary(&arguments->list[i])) {
            out_plan->numbers[out_plan->number_count++] = (uint16_t)i;
        }
    }
}

bool rondo__draw_plan_is_spare(const rondo__draw_plan *plan) {
    return plan->phase >= FIRST_SPARE;
}

void rondo__draw_plan_next(rondo__draw_plan *plan, rondo__draw_request *out_request,
                           rondo__values *in_out_values) {
    for (; plan->phase < PHASE_COUNT; ++plan->phase, plan->index = 0) {
        *out_request = (rondo__draw_request){.kind = RONDO__DRAW_EVEN};
        if (phases[plan->phase](plan, plan->index++, out_request, in_out_values)) {
            return;
        }
    }
    // Every fourth looks where cases lie.
    *out_request =
        (rondo__draw_request){.kind = ++plan->index % 4 == 0 ? RONDO__DRAW_ANY : RONDO__DRAW_EVEN};
}

bool rondo__draw_plan_counts(const rondo__draw_plan *plan, const rondo__draw_request *request) {
    for (size_t i = 0; i < plan->number_count; ++i) {
        if ((request->pinned & bit_of(plan, i)) != 0) {
            return false;
        }
    }
    return request->kind == RONDO__DRAW_EVEN;
}
