// learn/learned_report.c — what was learned, in words.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
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

static void fill_node(const rondo_learned *learned, rondo_learned_report *report) {
    const rondo__finding *finding = &learned->lesson.finding;
    const rondo__recording *recording = &learned->lesson.reference;
    report->has_node = finding->has_node;
    report->node = finding->has_node ? finding->node : 0;
    if (!finding->has_node || finding->node >= recording->count) {
        return;
    }
    const rondo__recorded_node *node = &recording->nodes[finding->node];
    rondo__text_fit(report->node_name, sizeof report->node_name, node->name);
    rondo__text_fit(report->node_label, sizeof report->node_label, node->label);
    if (finding->has_word) {
        rondo__word_format(&finding->word, &node->image, report->word, sizeof report->word);
    }
}

static void fill_report(const rondo_learned *learned, rondo_learned_report *report) {
    const rondo__lesson *lesson = &learned->lesson;
    const refusal_text *text = find_text(lesson->finding.refusal);
    *report = (rondo_learned_report){.struct_size = sizeof *report,
                                     .state = learned->state,
                                     .node_count = lesson->reference.count,
                                     .word_count = lesson->solution.word_count,
                                     .recording_count = lesson->recording_count,
                                     .learn_ns = learned->learn_ns,
                                     .refusal = lesson->finding.refusal,
                                     .what = text->what,
                                     .advice = text->advice,
                                     .step_status = lesson->step_status,
                                     .fallback = learned->fallback.kind};
    if (learned->state == RONDO_LEARNED_PROVED) {
        report->slot_count = lesson->solution.count;
        report->changing_count = learned->changing_count;
    }
    rondo__text_fit(report->message, sizeof report->message, lesson->finding.message);
    fill_node(learned, report);
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

static void write_plain(const rondo_learned *learned, rondo__text *text) {
    rondo_learned_report report;
    fill_report(learned, &report);
    rondo__text_append(text, "state       %s\n", state_names[report.state]);
    rondo__text_append(
        text, "looked at   %" PRIu64 " nodes, %" PRIu64 " words, %" PRIu64 " recordings, %.1f ms\n",
        report.node_count, report.word_count, report.recording_count,
        (double)report.learn_ns / 1e6);
    if (report.state == RONDO_LEARNED_REFUSED) {
        rondo__text_append(text, "why         %s: %s\n", rondo_refusal_get_name(report.refusal),
                           report.what);
        if (report.has_node) {
            rondo__text_append(text, "where       node %" PRIu64 " ", report.node);
            rondo__text_append_escaped(text, report.node_name);
            rondo__text_append(text, report.node_label[0] != '\0' ? " (" : "");
            rondo__text_append_escaped(text, report.node_label);
            rondo__text_append(text, report.node_label[0] != '\0' ? ")" : "");
            rondo__text_append(text, "%s%s\n", report.word[0] != '\0' ? ", " : "", report.word);
        }
        rondo__text_append(text, "seen        ");
        rondo__text_append_escaped(text, report.message);
        rondo__text_append(text, "\nwhat to do  %s\n", report.advice);
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
