// learn/learned_report.c — what was learned, in words.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/check.h"
#include "base/text.h"
#include "base/write_struct.h"
#include "learn/learned.h"

// ---- names and texts --------------------------------------------------------------------------

typedef struct refusal_text {
    int32_t value;
    const char *name;
    const char *what;
    const char *advice;
} refusal_text;

static const refusal_text *find_text(int32_t refusal) {
    static const refusal_text texts[] = {
#define REFUSAL_TEXT(name, value, what, advice) {(value), #name, what, advice},
        RONDO_REFUSAL_MAP(REFUSAL_TEXT)
#undef REFUSAL_TEXT
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        if (texts[i].value == refusal) {
            return &texts[i];
        }
    }
    return NULL;
}

const char *rondo_refusal_get_name(rondo_refusal refusal) {
    const refusal_text *text = find_text(refusal);
    return text != NULL ? text->name : "UNKNOWN";
}

// ---- structs ----------------------------------------------------------------------------------

static void fill_finding(const rondo_learned *learned, const rondo__finding *finding,
                         rondo_learned_finding *out_finding) {
    const refusal_text *text = find_text(finding->refusal);
    const rondo__recording *recording = &learned->lesson.reference;
    *out_finding = (rondo_learned_finding){.struct_size = sizeof *out_finding,
                                           .refusal = finding->refusal,
                                           .is_warning = finding->is_warning,
                                           .what = text->what,
                                           .advice = text->advice,
                                           .has_node = finding->has_node,
                                           .node = finding->has_node ? finding->node : 0};
    rondo__text_fit(out_finding->message, sizeof out_finding->message, finding->message);
    if (!finding->has_node || finding->node >= recording->count) {
        return;
    }
    const rondo__recorded_node *node = &recording->nodes[finding->node];
    rondo__text_fit(out_finding->node_name, sizeof out_finding->node_name, node->name);
    rondo__text_fit(out_finding->node_label, sizeof out_finding->node_label, node->label);
    if (finding->has_word) {
        rondo__word_format(&finding->word, &node->image, out_finding->word,
                           sizeof out_finding->word);
    }
}

static bool is_same(const rondo__finding *one, const rondo__finding *other) {
    return one->refusal == other->refusal && one->node == other->node &&
           one->has_word == other->has_word && strcmp(one->message, other->message) == 0 &&
           (!one->has_word || memcmp(&one->word, &other->word, sizeof one->word) == 0);
}

// The refusal, then those that were found beside it, then warnings; NULL behind the last one.
static const rondo__finding *get_finding(const rondo_learned *learned, size_t index) {
    const rondo__lesson *lesson = &learned->lesson;
    const bool is_refused = lesson->finding.refusal != RONDO_REFUSAL_NONE;
    if (is_refused && index == 0) {
        return &lesson->finding;
    }
    size_t left = index - is_refused;
    for (size_t i = 0; i < lesson->findings.count; ++i) {
        const rondo__finding *finding = &lesson->findings.list[i];
        if (!(is_refused && is_same(finding, &lesson->finding)) && left-- == 0) {
            return finding;
        }
    }
    return NULL;
}

static void count_findings(const rondo_learned *learned, rondo_learned_report *report) {
    const rondo__finding *finding = NULL;
    while ((finding = get_finding(learned, report->finding_count)) != NULL) {
        ++report->finding_count;
        report->unseen_count += finding->refusal == RONDO_REFUSAL_UNSEEN;
        report->excluded_count += finding->refusal == RONDO_REFUSAL_EXCLUDED;
    }
}

// The share q of which 1 - (1 - q)^draws is 0.999.
static double get_missed_share(uint64_t draws) {
    return draws == 0 ? 1.0 : -expm1(log(0.001) / (double)draws);
}

static void fill_report(const rondo_learned *learned, rondo_learned_report *report) {
    const rondo__lesson *lesson = &learned->lesson;
    rondo_learned_finding first;
    fill_finding(learned, &lesson->finding, &first);
    *report = (rondo_learned_report){.struct_size = sizeof *report,
                                     .state = learned->state,
                                     .node_count = lesson->reference.count,
                                     .word_count = lesson->solution.word_count,
                                     .recording_count = lesson->recording_count,
                                     .learn_ns = learned->learn_ns,
                                     .refusal = lesson->finding.refusal,
                                     .what = first.what,
                                     .advice = first.advice,
                                     .has_node = first.has_node,
                                     .node = first.node,
                                     .step_status = lesson->step_status,
                                     .fallback = learned->fallback.kind,
                                     .fallback_ns = learned->fallback.mean_ns,
                                     .special_count = lesson->odds.special_count,
                                     .draw_count = lesson->odds.draw_count,
                                     .missed_share = get_missed_share(lesson->odds.draw_count)};
    if (learned->state == RONDO_LEARNED_PROVED) {
        report->slot_count = lesson->solution.count;
        report->changing_count = learned->changing_count;
    }
    memcpy(report->message, first.message, sizeof report->message);
    memcpy(report->node_name, first.node_name, sizeof report->node_name);
    memcpy(report->node_label, first.node_label, sizeof report->node_label);
    memcpy(report->word, first.word, sizeof report->word);
    count_findings(learned, report);
}

rondo_status rondo_learned_get_report(const rondo_learned *learned,
                                      rondo_learned_report *out_report) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_report, sizeof *out_report, __func__, "rondo_learned_report"));
    RETURN_IF_ERROR(rondo__check_pointer(learned, __func__, "learned"));
    rondo_learned_report report;
    fill_report(learned, &report);
    rondo__write_struct(out_report, &report);
    return RONDO_STATUS_OK;
}

rondo_status rondo_learned_list_findings(const rondo_learned *learned,
                                         rondo_learned_finding *findings, size_t capacity,
                                         size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__check_pointer(learned, __func__, "learned"));
    size_t stride = 0;
    RETURN_IF_ERROR(rondo__read_stride(findings, capacity, sizeof *findings, __func__,
                                       "rondo_learned_finding", &stride));
    size_t count = 0;
    const rondo__finding *found = NULL;
    for (; (found = get_finding(learned, count)) != NULL; ++count) {
        if (count < capacity) {
            rondo_learned_finding finding;
            fill_finding(learned, found, &finding);
            finding.struct_size = stride;
            memcpy((char *)findings + count * stride, &finding, stride);
        }
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

static void fill_slot(const rondo_learned *learned, const rondo__learned_slot *slot,
                      rondo_learned_slot *out_slot) {
    const rondo__recorded_node *node = &learned->lesson.reference.nodes[slot->node];
    const bool has_second = slot->formula.second != RONDO__NO_ARGUMENT;
    *out_slot = (rondo_learned_slot){
        .struct_size = sizeof *out_slot,
        .node = node->image.index,
        .bytes = slot->word.width,
        .argument = slot->formula.argument,
        .second = has_second ? slot->formula.second : slot->formula.argument,
    };
    rondo__text_fit(out_slot->node_name, sizeof out_slot->node_name, node->name);
    rondo__text_fit(out_slot->node_label, sizeof out_slot->node_label, node->label);
    rondo__word_format(&slot->word, &node->image, out_slot->word, sizeof out_slot->word);
    rondo__formula_format(&slot->formula, &learned->arguments, out_slot->formula,
                          sizeof out_slot->formula);
}

static size_t count_slots(const rondo_learned *learned) {
    return learned->state == RONDO_LEARNED_PROVED ? learned->lesson.solution.count : 0;
}

rondo_status rondo_learned_list_slots(const rondo_learned *learned, rondo_learned_slot *slots,
                                      size_t capacity, size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__check_pointer(learned, __func__, "learned"));
    size_t stride = 0;
    RETURN_IF_ERROR(rondo__read_stride(slots, capacity, sizeof *slots, __func__,
                                       "rondo_learned_slot", &stride));
    const size_t count = count_slots(learned);
    for (size_t i = 0; i < count && i < capacity; ++i) {
        rondo_learned_slot slot;
        fill_slot(learned, &learned->lesson.solution.slots[i], &slot);
        slot.struct_size = stride;
        memcpy((char *)slots + i * stride, &slot, stride);
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

rondo_status rondo_learned_get_stats(const rondo_learned *learned, rondo_learned_stats *out_stats) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_stats, sizeof *out_stats, __func__, "rondo_learned_stats"));
    RETURN_IF_ERROR(rondo__check_pointer(learned, __func__, "learned"));
    rondo_learned_stats stats = learned->stats;
    stats.struct_size = sizeof stats;
    rondo__write_struct(out_stats, &stats);
    return RONDO_STATUS_OK;
}

// ---- text -------------------------------------------------------------------------------------

static const char *const state_names[] = {"not yet learned", "proved", "refused"};

static void write_finding(const rondo_learned_finding *finding, rondo__text *text) {
    rondo__text_append(text, "%s     %s: %s\n", finding->is_warning ? "warning" : "why    ",
                       rondo_refusal_get_name(finding->refusal), finding->what);
    if (finding->has_node) {
        rondo__text_append(text, "where       node %" PRIu64 " ", finding->node);
        rondo__text_append_escaped(text, finding->node_name);
        rondo__text_append(text, finding->node_label[0] != '\0' ? " (" : "");
        rondo__text_append_escaped(text, finding->node_label);
        rondo__text_append(text, finding->node_label[0] != '\0' ? ")" : "");
        rondo__text_append(text, "%s%s\n", finding->word[0] != '\0' ? ", " : "", finding->word);
    }
    rondo__text_append(text, "seen        ");
    rondo__text_append_escaped(text, finding->message);
    rondo__text_append(text, "\nwhat to do  %s\n", finding->advice);
}

static void write_plain(const rondo_learned *learned, rondo__text *text) {
    rondo_learned_report report;
    fill_report(learned, &report);
    rondo__text_append(text, "state       %s\n", state_names[report.state]);
    rondo__text_append(
        text, "looked at   %" PRIu64 " nodes, %" PRIu64 " words, %" PRIu64 " recordings, %.1f ms\n",
        report.node_count, report.word_count, report.recording_count,
        (double)report.learn_ns / 1e6);
    if (report.state == RONDO_LEARNED_PROVED) {
        rondo__text_append(text,
                           "foretold    %" PRIu64 " special recordings, %" PRIu64
                           " draws: a case of %.2g %% of what is drawn is missed once in 1000\n",
                           report.special_count, report.draw_count, report.missed_share * 100.0);
    }
    if (learned->governed != NULL && report.state == RONDO_LEARNED_PROVED) {
        rondo__governed_step_describe(learned->governed, text, false);
    }
    for (size_t i = 0; i < report.finding_count; ++i) {
        rondo_learned_finding finding;
        fill_finding(learned, get_finding(learned, i), &finding);
        write_finding(&finding, text);
    }
    for (size_t i = 0; i < count_slots(learned); ++i) {
        rondo_learned_slot slot;
        fill_slot(learned, &learned->lesson.solution.slots[i], &slot);
        rondo__text_append(text, "node %" PRIu64 " ", slot.node);
        rondo__text_append_escaped(text, slot.node_name);
        rondo__text_append(text, ", %s: ", slot.word);
        rondo__text_append_escaped(text, slot.formula);
        rondo__text_append(text, "\n");
    }
}

static void append_member(rondo__text *text, const char *name, const char *value) {
    rondo__text_append(text, ", \"%s\": ", name);
    rondo__text_append_json(text, value);
}

static void write_findings_json(const rondo_learned *learned, uint64_t count, rondo__text *text) {
    rondo__text_append(text, ", \"findings\": [");
    for (size_t i = 0; i < count; ++i) {
        rondo_learned_finding finding;
        fill_finding(learned, get_finding(learned, i), &finding);
        rondo__text_append(text, "%s\n{\"refusal\": \"%s\", \"warning\": %s", i > 0 ? "," : "",
                           rondo_refusal_get_name(finding.refusal),
                           finding.is_warning ? "true" : "false");
        if (finding.has_node) {
            rondo__text_append(text, ", \"node\": %" PRIu64, finding.node);
            append_member(text, "name", finding.node_name);
            append_member(text, "label", finding.node_label);
            append_member(text, "word", finding.word);
        }
        append_member(text, "message", finding.message);
        rondo__text_append(text, "}");
    }
    rondo__text_append(text, "]");
}

static void write_json(const rondo_learned *learned, rondo__text *text) {
    rondo_learned_report report;
    fill_report(learned, &report);
    rondo__text_append(text, "{\"state\": \"%s\", \"refusal\": \"%s\"", state_names[report.state],
                       rondo_refusal_get_name(report.refusal));
    rondo__text_append(text,
                       ", \"nodes\": %" PRIu64 ", \"words\": %" PRIu64 ", \"recordings\": %" PRIu64
                       ", \"learn_ns\": %" PRIu64,
                       report.node_count, report.word_count, report.recording_count,
                       report.learn_ns);
    if (report.has_node) {
        rondo__text_append(text, ", \"node\": %" PRIu64, report.node);
        append_member(text, "name", report.node_name);
        append_member(text, "label", report.node_label);
        append_member(text, "word", report.word);
    }
    append_member(text, "message", report.message);
    append_member(text, "advice", report.advice);
    rondo__text_append(text, ", \"draws\": %" PRIu64 ", \"specials\": %" PRIu64, report.draw_count,
                       report.special_count);
    if (learned->governed != NULL && report.state == RONDO_LEARNED_PROVED) {
        rondo__text_append(text, ", \"graphs\": ");
        rondo__governed_step_describe(learned->governed, text, true);
    }
    write_findings_json(learned, report.finding_count, text);
    rondo__text_append(text, ", \"slots\": [");
    for (size_t i = 0; i < count_slots(learned); ++i) {
        rondo_learned_slot slot;
        fill_slot(learned, &learned->lesson.solution.slots[i], &slot);
        rondo__text_append(text, "%s\n{\"node\": %" PRIu64 ", \"bytes\": %u", i > 0 ? "," : "",
                           slot.node, (unsigned)slot.bytes);
        append_member(text, "name", slot.node_name);
        append_member(text, "label", slot.node_label);
        append_member(text, "word", slot.word);
        append_member(text, "formula", slot.formula);
        rondo__text_append(text, "}");
    }
    rondo__text_append(text, "]}\n");
}

rondo_status rondo_learned_describe(const rondo_learned *learned, rondo_text_format format,
                                    rondo_write_function write, void *user_data) {
    RETURN_IF_ERROR(rondo__check_pointer(learned, __func__, "learned"));
    if (write == NULL) {
        return rondo__check_fail_null(__func__, "write");
    }
    if (format != RONDO_TEXT_PLAIN && format != RONDO_TEXT_JSON) {
        return RONDO_FAIL(INVALID, "a learned step is written as RONDO_TEXT_PLAIN or _JSON");
    }
    rondo__text text = {0};
    if (format == RONDO_TEXT_PLAIN) {
        write_plain(learned, &text);
    } else {
        write_json(learned, &text);
    }
    rondo_status status = rondo__text_get_status(&text);
    if (status == RONDO_STATUS_OK) {
        (void)write(user_data, text.bytes, text.length);
    }
    rondo__text_deinit(&text);
    return status;
}
