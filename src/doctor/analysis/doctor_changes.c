// doctor/analysis/doctor_changes.c — see doctor_changes.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/analysis/doctor_changes.h"

#include <ctype.h>
#include <string.h>

enum { COMPARED_MIN = 3 };

// Addresses of devices and of hosts lie there; sizes, counts and floats do not.
static const uint64_t ADDRESS_MIN = (uint64_t)1 << 32;
static const uint64_t ADDRESS_MAX = (uint64_t)1 << 48;

size_t rondo__doctor_choose_steps(const rondo__doctor_steps *steps, rondo__doctor_choice choice,
                                  size_t room, size_t *out_indices) {
    size_t count = 0;
    size_t first = steps->reference;
    for (size_t i = steps->reference; i < steps->count && count < room; i++) {
        count += rondo__doctor_is_chosen(steps, i, choice);
    }
    while (first > 0 && count < room) {
        --first;
        count += rondo__doctor_is_chosen(steps, first, choice);
    }
    count = 0;
    for (size_t i = first; i < steps->count && count < room; i++) {
        if (rondo__doctor_is_chosen(steps, i, choice)) {
            out_indices[count++] = i;
        }
    }
    return count;
}

void rondo__doctor_choose_compared(const rondo__doctor_steps *steps,
                                   rondo__doctor_compared *out_compared) {
    // While times are taken, other calls leave other things in places that nobody writes.
    static const rondo__doctor_choice choices[] = {RONDO__DOCTOR_UNTIMED, RONDO__DOCTOR_TYPICAL};
    *out_compared = (rondo__doctor_compared){.steps = steps};
    for (size_t i = 0; i < 2 && out_compared->count < COMPARED_MIN; i++) {
        out_compared->count = rondo__doctor_choose_steps(
            steps, choices[i], RONDO__DOCTOR_COMPARED_MAX, out_compared->indices);
    }
}

static size_t find_event(const rondo__doctor_compared *compared, size_t step, size_t place) {
    const rondo__doctor_steps *steps = compared->steps;
    return steps->works[steps->steps[compared->indices[step]].work_first + place];
}

static const rondo__doctor_event *get_event(const rondo__doctor_compared *compared, size_t step,
                                            size_t place) {
    return &compared->steps->log->events[find_event(compared, step, place)];
}

// Whether a value was read back ahead of this work in the first of the steps.
static bool is_behind_read_back(const rondo__doctor_compared *compared, size_t place) {
    const rondo__doctor_step *step = &compared->steps->steps[compared->indices[0]];
    const rondo__doctor_event *events = compared->steps->log->events;
    bool has_copied = false;
    for (size_t i = step->first; i < find_event(compared, 0, place); i++) {
        const rondo__doctor_kind kind = rondo__doctor_call_kind(events[i].call);
        if (events[i].call == RONDO__DOCTOR_cuMemcpyDtoH) {
            return true;
        }
        has_copied = has_copied || events[i].call == RONDO__DOCTOR_cuMemcpyDtoHAsync;
        if (has_copied && kind == RONDO__DOCTOR_KIND_WAIT) {
            return true;
        }
    }
    return false;
}

static bool contains(const char *text, const char *part) {
    const size_t length = strlen(part);
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)text[i]) == part[i]) {
            ++i;
        }
        if (i == length) {
            return true;
        }
    }
    return false;
}

static bool is_random(const char *name) {
    static const char *const parts[] = {"philox", "curand", "dropout", "distribution", "random"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (contains(name, parts[i])) {
            return true;
        }
    }
    return false;
}

// ---- words ------------------------------------------------------------------------------------

static bool is_address(uint64_t word) {
    return word >= ADDRESS_MIN && word < ADDRESS_MAX;
}

typedef struct word_change {
    bool changes;
    bool is_steady;       // by the same amount from each step to the next
    bool is_address;      // in every step
    bool is_behind_byte;  // nothing changes but the three bytes behind the first one
} word_change;

// The values of one word in the compared steps.
static word_change look_at(const uint64_t *values, const size_t *indices, size_t count) {
    static const uint64_t BEHIND_BYTE = 0xffffff00;
    word_change change = {.is_steady = count > 2, .is_address = true, .is_behind_byte = true};
    const uint64_t first = count > 1 ? values[1] - values[0] : 0;
    for (size_t i = 0; i < count; i++) {
        change.is_address = change.is_address && is_address(values[i]);
        if (i == 0) {
            continue;
        }
        const uint64_t difference = values[i] - values[i - 1];
        change.is_behind_byte =
            change.is_behind_byte && ((values[i] ^ values[i - 1]) & ~BEHIND_BYTE) == 0;
        change.changes = change.changes || difference != 0;
        // Only where one step follows the other.
        change.is_steady =
            change.is_steady && (indices[i] != indices[i - 1] + 1 || difference == first);
    }
    change.is_steady = change.is_steady && first != 0;
    return change;
}

// ---- words that are never written -------------------------------------------------------------

enum { DISTINCT_MIN = 6 };  // values of which it can be said what they are

static bool is_whole(uint32_t value) {
    enum { WHOLE_MAX = 1 << 24 };
    return value < WHOLE_MAX || value > UINT32_MAX - WHOLE_MAX;
}

static bool is_float(uint32_t value) {
    enum { EXPONENT_MIN = 127 - 40, EXPONENT_MAX = 127 + 40 };
    const uint32_t exponent = value >> 23 & 0xff;
    return value == 0 || (exponent >= EXPONENT_MIN && exponent <= EXPONENT_MAX);
}

static bool is_double(uint64_t value) {
    enum { EXPONENT_MIN = 1023 - 60, EXPONENT_MAX = 1023 + 60 };
    const uint64_t exponent = value >> 52 & 0x7ff;
    return value == 0 || (exponent >= EXPONENT_MIN && exponent <= EXPONENT_MAX);
}

// The upper half of an address of the host, behind a number that fills the lower half of its word.
static bool is_address_top(uint32_t value) {
    return (value >= 0x5500 && value < 0x5700) || (value >= 0x7e00 && value < 0x8000);
}

// What is seen of a word in all launches of a kernel.
typedef struct word_kinds {
    bool are_doubles;
    bool are_whole[2];   // numbers in the lower and in the upper half,
    bool are_floats[2];  // each of one kind
    bool are_given;      // addresses that the driver gave, or none
    bool is_any_given;
    bool are_heap;    // pointers to the host's heap, or none
    bool are_flags;   // 0 or 1
    bool are_blocks;  // what malloc gives: large multiples of 8
    size_t distinct;  // at most DISTINCT_MIN of them are counted
    uint64_t seen[DISTINCT_MIN];
} word_kinds;

static void look_at_kind(const rondo__doctor_log *log, uint64_t value, word_kinds *kinds) {
    static const uint64_t BLOCK_MIN = 1 << 24;
    static const uint64_t HEAP_GROWTH = 64 << 20;  // since it was told
    const uint32_t low = (uint32_t)value;
    const uint32_t high = (uint32_t)(value >> 32);
    const bool is_given =
        is_address(value) && (log->block_count == 0 || rondo__doctor_log_is_given(log, value));
    size_t i = 0;
    kinds->are_doubles = kinds->are_doubles && is_double(value);
    for (int half = 0; half < 2; half++) {
        const uint32_t part = half == 0 ? low : high;
        const bool is_top = half == 1 && is_address_top(high);
        kinds->are_whole[half] = kinds->are_whole[half] && is_whole(part) && !is_top;
        kinds->are_floats[half] = kinds->are_floats[half] && is_float(part) && !is_top;
    }
    kinds->are_given = kinds->are_given && (value == 0 || is_given);
    kinds->is_any_given = kinds->is_any_given || is_given;
    kinds->are_heap =
        kinds->are_heap && (value == 0 || (log->heap.end > 0 && value >= log->heap.begin &&
                                           value < log->heap.end + HEAP_GROWTH &&
                                           !rondo__doctor_log_is_given(log, value)));
    kinds->are_flags = kinds->are_flags && value <= 1;
    kinds->are_blocks =
        kinds->are_blocks &&
        (value == 0 || (value >= BLOCK_MIN && value % 8 == 0 && value < ADDRESS_MAX && !is_given));
    while (i < kinds->distinct && kinds->seen[i] != value) {
        ++i;
    }
    if (i == kinds->distinct && i < DISTINCT_MIN) {
        kinds->seen[kinds->distinct++] = value;
    }
}

static word_kinds find_kinds(const rondo__doctor_compared *compared, uint32_t kernel, size_t word) {
    const rondo__doctor_steps *steps = compared->steps;
    word_kinds kinds = {.are_doubles = true,
                        .are_whole = {true, true},
                        .are_floats = {true, true},
                        .are_given = true,
                        .are_heap = true,
                        .are_flags = true,
                        .are_blocks = true};
    for (size_t i = 0; i < compared->count; i++) {
        const rondo__doctor_step *step = &steps->steps[compared->indices[i]];
        for (size_t work = 0; work < step->work_count; work++) {
            const size_t event = steps->works[step->work_first + work];
            if (steps->log->events[event].name == kernel &&
                word < steps->log->events[event].word_count) {
                look_at_kind(steps->log, rondo__doctor_log_words(steps->log, event)[word], &kinds);
            }
        }
    }
    return kinds;
}

// Padding of structs, places of arrays that are not used, and empty functors hold what was in the
// host's memory before: pointers of its own, numbers or none, now one, now the other. What a kernel
// reads is of one kind in all of its launches; many numbers that are all multiples of 8 are none.
static bool is_unwritten(const rondo__doctor_compared *compared, uint32_t kernel, size_t word,
                         word_change change) {
    const rondo__doctor_log *log = compared->steps->log;
    const uint64_t layout = kernel > 0 && kernel <= log->text_count ? log->layouts[kernel - 1] : 0;
    if (is_random(rondo__doctor_log_text(log, kernel))) {
        return false;
    }
    const word_kinds kinds = find_kinds(compared, kernel, word);
    // A struct of a byte and a number of four bytes is one word, whose three bytes of padding the
    // program does not write.
    const bool is_gap = change.is_address && change.is_behind_byte && !change.is_steady &&
                        log->block_count > 0 && !kinds.is_any_given;
    if (kinds.are_heap || is_gap || (layout >> word & 1) == 0) {
        return kinds.are_heap || is_gap;
    }
    if ((layout >> (word + RONDO__DOCTOR_WORDS_MAX) & 1) != 0) {
        return !kinds.are_flags && !change.is_steady;
    }
    if (change.is_address || (kinds.are_blocks && kinds.distinct == DISTINCT_MIN)) {
        return !kinds.are_given;
    }
    const bool are_numbers =
        (kinds.are_whole[0] || kinds.are_floats[0]) && (kinds.are_whole[1] || kinds.are_floats[1]);
    return !change.is_steady && !kinds.are_doubles && !are_numbers && !kinds.are_given;
}

static void read_words(const rondo__doctor_compared *compared, size_t place, size_t word,
                       uint64_t *out_values) {
    for (size_t i = 0; i < compared->count; i++) {
        const size_t event = find_event(compared, i, place);
        const rondo__doctor_log *log = compared->steps->log;
        out_values[i] =
            word < log->events[event].word_count ? rondo__doctor_log_words(log, event)[word] : 0;
    }
}

static rondo__doctor_rule choose_rule(word_change change, const char *name) {
    if (change.is_address) {
        return RONDO__DOCTOR_RULE_MOVING_ADDRESS;
    }
    if (is_random(name)) {
        return RONDO__DOCTOR_RULE_RANDOM_STATE;
    }
    return change.is_steady ? RONDO__DOCTOR_RULE_COUNTER : RONDO__DOCTOR_RULE_CHANGING_SCALAR;
}

static bool is_known(const rondo__doctor_rule *rules, size_t count, rondo__doctor_rule rule) {
    for (size_t i = 0; i < count; i++) {
        if (rules[i] == rule) {
            return true;
        }
    }
    return false;
}

static size_t find_word_changes(const rondo__doctor_compared *compared, size_t place,
                                rondo__doctor_rule *out_rules, int32_t *out_words, size_t room) {
    const rondo__doctor_event *event = get_event(compared, 0, place);
    const char *name = rondo__doctor_log_text(compared->steps->log, event->name);
    uint64_t values[RONDO__DOCTOR_COMPARED_MAX];
    size_t count = 0;
    for (size_t word = 0; word < event->word_count && count < room; word++) {
        read_words(compared, place, word, values);
        const word_change change = look_at(values, compared->indices, compared->count);
        if (!change.changes) {
            continue;
        }
        const rondo__doctor_rule rule = is_unwritten(compared, event->name, word, change)
                                            ? RONDO__DOCTOR_RULE_UNWRITTEN_WORD
                                            : choose_rule(change, name);
        if (!is_known(out_rules, count, rule)) {
            out_rules[count] = rule;
            out_words[count++] = (int32_t)word;
        }
    }
    return count;
}

// ---- works ------------------------------------------------------------------------------------

bool rondo__doctor_is_collective(const char *kernel) {
    return strstr(kernel, "nccl") != NULL;
}

static bool is_collective(const rondo__doctor_compared *compared, size_t place) {
    for (size_t i = 0; i < compared->count; i++) {
        const uint32_t name = get_event(compared, i, place)->name;
        if (rondo__doctor_is_collective(rondo__doctor_log_text(compared->steps->log, name))) {
            return true;
        }
    }
    return false;
}

// A copy whose ends move.
static bool has_moving_ends(const rondo__doctor_compared *compared, size_t place) {
    const rondo__doctor_event *first = get_event(compared, 0, place);
    const rondo__doctor_kind kind = rondo__doctor_call_kind(first->call);
    if (kind != RONDO__DOCTOR_KIND_COPY && kind != RONDO__DOCTOR_KIND_FILL) {
        return false;
    }
    for (size_t i = 1; i < compared->count; i++) {
        const rondo__doctor_event *event = get_event(compared, i, place);
        if (event->object != first->object || event->source != first->source) {
            return true;
        }
    }
    return false;
}

size_t rondo__doctor_find_changes(const rondo__doctor_compared *compared, size_t place,
                                  rondo__doctor_rule *out_rules, int32_t *out_words, size_t room) {
    bool has_shape = false;
    bool has_kernel = false;
    if (compared->count < 2 || room == 0) {
        return 0;
    }
    const rondo__doctor_event *first = get_event(compared, 0, place);
    for (size_t i = 1; i < compared->count; i++) {
        const rondo__doctor_event *event = get_event(compared, i, place);
        has_kernel =
            has_kernel || rondo__doctor_token(event, true) != rondo__doctor_token(first, true);
        has_shape =
            has_shape || rondo__doctor_token(event, false) != rondo__doctor_token(first, false);
    }
    out_words[0] = -1;
    if (has_kernel) {
        out_rules[0] = is_collective(compared, place) ? RONDO__DOCTOR_RULE_COLLECTIVE_ORDER
                                                      : RONDO__DOCTOR_RULE_CHANGING_KERNEL;
        return 1;
    }
    if (has_shape) {
        const bool is_launch = rondo__doctor_call_kind(first->call) == RONDO__DOCTOR_KIND_LAUNCH;
        out_rules[0] = !is_launch                             ? RONDO__DOCTOR_RULE_CHANGING_COPY
                       : is_behind_read_back(compared, place) ? RONDO__DOCTOR_RULE_DATA_SHAPE
                                                              : RONDO__DOCTOR_RULE_CHANGING_SHAPE;
        return 1;
    }
    if (has_moving_ends(compared, place)) {
        out_rules[0] = RONDO__DOCTOR_RULE_MOVING_ADDRESS;
        return 1;
    }
    return find_word_changes(compared, place, out_rules, out_words, room);
}
