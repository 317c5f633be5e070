// learn/solve.c — see solve.h.
//
// Each region of each node is gone through in words, the widest first:
//
//   all recordings agree               nothing to do
//   some formulas give the word           the simplest is a slot; others that could still differ
//                                      ask for one more trial, and so do narrower words side by
//                                      side that give the same
//   none does                          its two halves are tried; a byte that has no formula is the
//                                      end: the step is refused
//
// A formula with very large factors may be two words side by side, so the halves are tried first.
// SPDX-License-Identifier: Apache-2.0
#include "learn/solve.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { FORMULAS_MAX = 16 };

typedef struct solving {
    const rondo__arguments *arguments;
    const rondo__recording *recordings;
    size_t count;
    const rondo__values *values[RONDO__RECORDINGS_MAX];
    rondo__draws *draws;
    rondo__solution *solution;
    rondo__values *wanted;
    bool wants_trial;
    rondo__finding *finding;
    rondo_status status;
} solving;

static const rondo__recorded_node *get_node(const solving *s, size_t recording, size_t node) {
    return &s->recordings[recording].nodes[node];
}

static double read_float(uint64_t word, uint32_t width) {
    const uint32_t low = (uint32_t)word;
    float single;
    double number;
    memcpy(&single, &low, sizeof single);
    memcpy(&number, &word, sizeof number);
    return width == sizeof single ? (double)single : number;
}

// Whether the words look like floats: the step has arguments of that kind, and no word would be an
// unusually small or large one, as integers and addresses would.
static bool are_floats(const solving *s, const uint64_t *words, uint32_t width) {
    const rondo_argument_kind kind = width == 8 ? RONDO_ARGUMENT_DOUBLE : RONDO_ARGUMENT_FLOAT;
    bool has_kind = false;
    for (size_t i = 0; i < s->arguments->count; ++i) {
        has_kind = has_kind || s->arguments->list[i].kind == kind;
    }
    for (size_t r = 0; r < s->count && has_kind && width >= 4; ++r) {
        const double size = fabs(read_float(words[r], width));
        has_kind = size == 0.0 || (size > 1e-30 && size < 1e30);
    }
    return has_kind && width >= 4;
}

static void format_values(const solving *s, const uint64_t *words, uint32_t width, char *text,
                          size_t capacity) {
    const bool is_float = are_floats(s, words, width);
    size_t length = 0;
    text[0] = '\0';
    for (size_t r = 0; r < s->count && r < 5 && length + 1 < capacity; ++r) {
        const bool is_large = words[r] > UINT64_C(0xffffffff);
        const char *separator = r > 0 ? ", " : "";
        const int added =
            is_float ? snprintf(text + length, capacity - length, "%s%g", separator,
                                read_float(words[r], width))
                     : snprintf(text + length, capacity - length,
                                is_large ? "%s0x%" PRIx64 : "%s%" PRIu64, separator, words[r]);
        length += added > 0 ? (size_t)added : 0;
    }
}

static void refuse_word(solving *s, rondo_refusal refusal, size_t node, const rondo__word *word,
                        const uint64_t *words, const char *why) {
    char seen[140];
    format_values(s, words, word->width, seen, sizeof seen);
    rondo__finding_set(s->finding, refusal, node, "%s; it was %s", why, seen);
    s->finding->has_word = true;
    s->finding->word = *word;
}

// ---- one word ---------------------------------------------------------------------------------

static bool add_slot(solving *s, size_t node, const rondo__word *word,
                     const rondo__formula *formula) {
    rondo__solution *solution = s->solution;
    s->status = RONDO__ARRAY_RESERVE(solution->slots, solution->capacity, solution->count + 1);
    if (s->status == RONDO_STATUS_OK) {
        solution->slots[solution->count++] = (rondo__learned_slot){node, *word, *formula};
    }
    return s->status == RONDO_STATUS_OK;
}

// Whether another formula gives other words for some values; then those are wanted.
static void look_for_rivals(solving *s, const rondo__formula *formulas, size_t count,
                            size_t chosen) {
    for (size_t i = 0; i < count && !s->wants_trial; ++i) {
        s->wants_trial = i != chosen && rondo__formula_separate(&formulas[chosen], &formulas[i],
                                                                s->arguments, s->draws, s->wanted);
    }
}

// The word in pieces of that width; false: one of them has no formula.
static bool find_pieces(const solving *s, const uint64_t *words, uint32_t word_width,
                        uint32_t width, rondo__pieces *pieces) {
    *pieces = (rondo__pieces){.count = word_width / width, .width = width};
    const uint64_t mask = (UINT64_C(1) << (8 * width)) - 1;
    for (size_t i = 0; i < pieces->count; ++i) {
        uint64_t parts[RONDO__RECORDINGS_MAX];
        struct rondo__piece *piece = &pieces->list[i];
        piece->is_constant = true;
        for (size_t r = 0; r < s->count; ++r) {
            parts[r] = words[r] >> (8 * width * i) & mask;
            piece->is_constant = piece->is_constant && parts[r] == parts[0];
        }
        piece->constant = parts[0];
        const rondo__sightings seen = {s->arguments, s->values, parts, s->count, width};
        if (!piece->is_constant && rondo__formula_fit(&seen, &piece->formula, 1) == 0) {
            return false;
        }
    }
    return true;
}

// A number that never left its lower half may be a word of its own beside a constant.
static void look_for_pieces(solving *s, const uint64_t *words, const rondo__formula *chosen) {
    if (chosen->kind != RONDO__FORMULA_INTEGER && chosen->kind != RONDO__FORMULA_CEIL) {
        return;
    }
    rondo__pieces pieces;
    for (uint32_t width = chosen->width / 2; width > 0 && !s->wants_trial; width /= 2) {
        s->wants_trial =
            find_pieces(s, words, chosen->width, width, &pieces) &&
            rondo__formula_separate_pieces(chosen, &pieces, s->arguments, s->draws, s->wanted);
    }
}

static bool accept(solving *s, size_t node, const rondo__word *word, const uint64_t *words,
                   const rondo__formula *formulas, size_t count, size_t chosen) {
    look_for_rivals(s, formulas, count, chosen);
    look_for_pieces(s, words, &formulas[chosen]);
    return add_slot(s, node, word, &formulas[chosen]);
}

// Whether the words are the low halves of addresses in one block of each recording.
static bool is_cut_block(const solving *s, const rondo__sightings *seen) {
    for (size_t i = 0; i < s->recordings[0].blocks.count && seen->width >= 4; ++i) {
        size_t r = 0;
        while (r < s->count && i < s->recordings[r].blocks.count &&
               (uint32_t)(seen->words[r] - s->recordings[r].blocks.list[i].begin) <
                   s->recordings[r].blocks.list[i].bytes) {
            ++r;
        }
        if (r == s->count) {
            return true;
        }
    }
    return false;
}

// `is_named`: a part of the word that alone is unexplained has been named.
static void refuse_unexplained(solving *s, size_t node, const rondo__word *word,
                               const rondo__sightings *seen, bool is_named) {
    const uint16_t pointer = rondo__formula_find_cut_address(seen);
    char why[100] = "no argument explains it";
    if (pointer != RONDO__NO_ARGUMENT) {
        snprintf(why, sizeof why, "it is an address of \"%.40s\" that was cut to 32 bits",
                 s->arguments->list[pointer].name);
    } else if (is_cut_block(s, seen)) {
        snprintf(why, sizeof why, "it is an address from a pool that was cut to 32 bits");
    } else if (is_named) {
        return;
    }
    refuse_word(s, RONDO_REFUSAL_WORD, node, word, seen->words, why);
}

static bool solve_word(solving *s, size_t node, const rondo__word *word);

// Counts the halves that have an explanation. If one has, the finding names the other.
static int solve_halves(solving *s, size_t node, const rondo__word *word) {
    const size_t former_count = s->solution->count;
    const bool wanted_trial = s->wants_trial;
    rondo__word half = *word;
    half.width /= 2;
    int solved = solve_word(s, node, &half) ? 1 : 0;
    half.offset += half.width;
    solved += s->status == RONDO_STATUS_OK && solve_word(s, node, &half) ? 1 : 0;
    if (solved < 2) {
        s->solution->count = former_count;
        s->wants_trial = wanted_trial;
    }
    return solved;
}

// False: it has no explanation, or s->status says what failed.
static bool solve_word(solving *s, size_t node, const rondo__word *word) {
    uint64_t words[RONDO__RECORDINGS_MAX];
    bool do_agree = true;
    for (size_t r = 0; r < s->count; ++r) {
        words[r] = rondo__image_read(&get_node(s, r, node)->image, word);
        do_agree = do_agree && rondo__recordings_agree(&s->recordings[0], &s->recordings[r],
                                                       words[0], words[r], word->width);
    }
    if (do_agree) {
        return true;
    }
    rondo__formula formulas[FORMULAS_MAX];
    const rondo__sightings seen = {s->arguments, s->values, words, s->count, word->width};
    const size_t count = rondo__formula_fit(&seen, formulas, FORMULAS_MAX);
    for (size_t i = 0; i < count; ++i) {
        if (rondo__formula_is_tidy(&formulas[i])) {
            return accept(s, node, word, words, formulas, count, i);
        }
    }
    const int solved = word->width > 1 ? solve_halves(s, node, word) : 0;
    if (solved == 2) {
        return true;
    }
    if (count > 0 && s->status == RONDO_STATUS_OK) {
        return accept(s, node, word, words, formulas, count, 0);
    }
    refuse_unexplained(s, node, word, &seen, solved == 1);
    return false;
}

// ---- one node ---------------------------------------------------------------------------------

// Bytes that name the node itself are another number in each recording.
static bool is_ignored(const rondo__recorded_node *node, const rondo__region *region,
                       uint32_t offset) {
    return !region->is_field && region->offset + offset < node->first_ignored;
}

// Lists what was found. False: nothing more is to be looked at.
static bool note(solving *s) {
    if (s->status == RONDO_STATUS_OK) {
        s->status = rondo__findings_add(&s->solution->findings, s->finding);
    }
    return s->status == RONDO_STATUS_OK && s->solution->findings.count < RONDO__FINDINGS_MAX;
}

static bool solve_region(solving *s, size_t node, const rondo__region *region) {
    rondo__word word = {.region = *region};
    bool is_solved = true;
    while (word.offset < region->bytes) {
        word.width = rondo__region_get_width(region, word.offset);
        ++s->solution->word_count;
        if (!is_ignored(get_node(s, 0, node), region, word.offset) && !solve_word(s, node, &word)) {
            is_solved = false;
            if (!note(s)) {
                return false;
            }
        }
        word.offset += word.width;
    }
    return is_solved;
}

// Whether the node has parts that cannot be read.
static bool is_opaque(const rondo__node_image *image) {
    return image->is_opaque || image->info.kind == RONDO__NODE_OTHER ||
           (image->info.kind == RONDO__NODE_CONDITIONAL && image->info.branch_count == 0);
}

// A node with slots must be one that can be patched.
static bool check_slots(const solving *s, size_t node, size_t former_count) {
    const rondo__recorded_node *recorded = get_node(s, 0, node);
    if (s->solution->count == former_count) {
        return true;
    }
    const rondo__learned_slot *slot = &s->solution->slots[former_count];
    char formula[96];
    rondo__formula_format(&slot->formula, s->arguments, formula, sizeof formula);
    if (recorded->is_inner) {
        rondo__finding_set(s->finding, RONDO_REFUSAL_INNER, node, "it is %s", formula);
    } else if (recorded->image.fixed != NULL) {
        rondo__finding_set(s->finding, RONDO_REFUSAL_FIXED, node, "it is %s; %s", formula,
                           recorded->image.fixed);
    } else {
        return true;
    }
    s->finding->has_word = true;
    s->finding->word = slot->word;
    return false;
}

static bool solve_node(solving *s, size_t node) {
    const rondo__node_image *image = &get_node(s, 0, node)->image;
    const size_t former_count = s->solution->count;
    if (is_opaque(image)) {
        rondo__finding_set(s->finding, RONDO_REFUSAL_OPAQUE, node,
                           "what it holds cannot be compared between recordings");
        (void)note(s);
        return false;
    }
    const size_t region_count = rondo__image_count_regions(image);
    bool is_solved = true;
    for (size_t i = 0; i < region_count && s->status == RONDO_STATUS_OK; ++i) {
        const rondo__region region = rondo__image_get_region(image, i);
        is_solved = solve_region(s, node, &region) && is_solved;
    }
    if (is_solved && !check_slots(s, node, former_count)) {
        (void)note(s);
        return false;
    }
    return is_solved;
}

// ---- the whole --------------------------------------------------------------------------------

static bool is_seen(const rondo__solution *solution, size_t argument) {
    for (size_t i = 0; i < solution->count; ++i) {
        if (rondo__formula_uses(&solution->slots[i].formula, argument)) {
            return true;
        }
    }
    return false;
}

rondo_status rondo__solution_list_unseen(const rondo__solution *solution,
                                         const rondo__arguments *arguments,
                                         rondo__findings *findings) {
    for (size_t i = 0; i < arguments->count; ++i) {
        const rondo__argument *argument = &arguments->list[i];
        if (rondo__argument_can_vary(argument) && !is_seen(solution, i)) {
            rondo__finding finding;
            rondo__finding_set(&finding, RONDO_REFUSAL_UNSEEN, SIZE_MAX,
                               "no node changes with argument \"%.80s\", so each replay uses what "
                               "the recording had; hand it to a node, or leave it out",
                               argument->name);
            finding.is_warning = true;
            RETURN_IF_ERROR(rondo__findings_add(findings, &finding));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__solve(const rondo__arguments *arguments, const rondo__recording *recordings,
                          size_t count, rondo__draws *draws, rondo__solution *out_solution,
                          rondo__values *in_out_wanted, rondo__verdict *out_verdict,
                          rondo__finding *out_finding) {
    *out_solution = (rondo__solution){0};
    *out_finding = (rondo__finding){.refusal = RONDO_REFUSAL_NONE};
    *out_verdict = RONDO__REFUSED;
    solving s = {.arguments = arguments,
                 .recordings = recordings,
                 .count = count,
                 .draws = draws,
                 .solution = out_solution,
                 .wanted = in_out_wanted,
                 .finding = out_finding};
    for (size_t r = 0; r < count; ++r) {
        s.values[r] = &recordings[r].values;
    }
    bool is_solved = true;
    for (size_t i = 0; i < recordings[0].count && s.status == RONDO_STATUS_OK &&
                       out_solution->findings.count < RONDO__FINDINGS_MAX;
         ++i) {
        is_solved = solve_node(&s, i) && is_solved;
    }
    if (s.status != RONDO_STATUS_OK) {
        rondo__solution_deinit(out_solution);
        return s.status;
    }
    if (is_solved) {
        // A word whose halves had no formula may have one by itself.
        *out_finding = (rondo__finding){.refusal = RONDO_REFUSAL_NONE};
        *out_verdict = s.wants_trial ? RONDO__WANTS_TRIAL : RONDO__SOLVED;
    } else {
        *out_finding = out_solution->findings.list[0];
    }
    return RONDO_STATUS_OK;
}

void rondo__solution_deinit(rondo__solution *solution) {
    rondo__free(solution->slots);
    rondo__findings_deinit(&solution->findings);
    *solution = (rondo__solution){0};
}

// ---- checking ---------------------------------------------------------------------------------

typedef struct checking {
    const rondo__solution *solution;
    const rondo__arguments *arguments;
    const rondo__recording *reference;
    const rondo__recording *other;
    rondo__finding *finding;
} checking;

// Padding of a struct that is passed by value, and the byte of one without members, hold what was
// in memory before.
static const char *say_unwritten(const rondo__region *region) {
    const bool may_be = !region->is_field && (region->bytes == 1 || region->bytes > 8);
    return !may_be ? ""
                   : "; it may be padding, or a struct without members, which the program does not "
                     "write: fill the struct with zeros first";
}

// The part of the word in which the values differ.
static void narrow(rondo__word *word, uint64_t *expected, uint64_t *found) {
    while (word->width > 1) {
        const uint32_t half = word->width / 2;
        const uint64_t low = (UINT64_C(1) << 8 * half) - 1;
        const uint64_t changed = *expected ^ *found;
        if ((changed & low) != 0 && (changed & ~low) != 0) {
            return;
        }
        const bool is_high = (changed & low) == 0;
        word->width = half;
        word->offset += is_high ? half : 0;
        *expected = is_high ? *expected >> 8 * half : *expected & low;
        *found = is_high ? *found >> 8 * half : *found & low;
    }
}

static bool check_region(const checking *c, size_t node, const rondo__node_image *foretold,
                         const rondo__region *region) {
    const rondo__recorded_node *recorded = &c->other->nodes[node];
    rondo__word word = {.region = *region};
    for (; word.offset < region->bytes; word.offset += word.width) {
        word.width = rondo__region_get_width(region, word.offset);
        uint64_t expected = rondo__image_read(foretold, &word);
        uint64_t found = rondo__image_read(&recorded->image, &word);
        if (is_ignored(recorded, region, word.offset) ||
            rondo__recordings_agree(c->reference, c->other, expected, found, word.width)) {
            continue;
        }
        narrow(&word, &expected, &found);
        rondo__finding_set(c->finding, RONDO_REFUSAL_CHANGED, node,
                           "foretold was 0x%" PRIx64 ", recorded 0x%" PRIx64 "%s", expected, found,
                           say_unwritten(region));
        c->finding->has_word = true;
        c->finding->word = word;
        return false;
    }
    return true;
}

static bool check_image(const checking *c, size_t node, const rondo__node_image *foretold) {
    const size_t region_count = rondo__image_count_regions(foretold);
    for (size_t i = 0; i < region_count; ++i) {
        const rondo__region region = rondo__image_get_region(foretold, i);
        if (!check_region(c, node, foretold, &region)) {
            return false;
        }
    }
    return true;
}

// *in_out_slot: the first slot of this node or a later one; then of a later one.
static rondo_status check_node(const checking *c, size_t node, size_t *in_out_slot,
                               bool *out_is_right) {
    const rondo__solution *solution = c->solution;
    const rondo__node_image *image = &c->reference->nodes[node].image;
    if (*in_out_slot >= solution->count || solution->slots[*in_out_slot].node != node) {
        *out_is_right = check_image(c, node, image);
        return RONDO_STATUS_OK;
    }
    rondo__node_image foretold;
    RETURN_IF_ERROR(rondo__node_image_copy(image, &foretold));
    for (; *in_out_slot < solution->count && solution->slots[*in_out_slot].node == node;
         ++*in_out_slot) {
        const rondo__learned_slot *slot = &solution->slots[*in_out_slot];
        rondo__image_write(
            &foretold, &slot->word,
            rondo__formula_evaluate(&slot->formula, c->arguments, &c->other->values));
    }
    *out_is_right = check_image(c, node, &foretold);
    rondo__node_image_deinit(&foretold);
    return RONDO_STATUS_OK;
}

rondo_status rondo__solution_check(const rondo__solution *solution,
                                   const rondo__arguments *arguments,
                                   const rondo__recording *reference, const rondo__recording *other,
                                   const rondo__node_image *const *images, bool *out_is_right,
                                   rondo__finding *out_finding) {
    const checking c = {solution, arguments, reference, other, out_finding};
    size_t slot = 0;
    *out_is_right = true;
    for (size_t i = 0; i < reference->count && *out_is_right; ++i) {
        RETURN_IF_ERROR(check_node(&c, i, &slot, out_is_right));
        if (*out_is_right && images != NULL && images[i] != NULL) {
            *out_is_right = check_image(&c, i, images[i]);
        }
    }
    return RONDO_STATUS_OK;
}
