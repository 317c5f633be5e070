// graph/update.c — a graph takes over what another one recorded.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/update.h"

#include <stdio.h>
#include <string.h>

#include "backend/check.h"
#include "base/clock.h"
#include "base/log/hook.h"
#include "base/log/logging.h"
#include "base/write_struct.h"
#include "graph/executable.h"
#include "graph/graph_share.h"
#include "graph/images.h"
#include "graph/template.h"

static rondo_status check_pair(const rondo_graph *graph, const rondo_graph *source) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, "rondo_graph_update", "graph"));
    RETURN_IF_ERROR(rondo__graph_check_template(source, "rondo_graph_update"));
    if (graph == source) {
        return RONDO_FAIL_AS("rondo_graph_update", INVALID,
                             "graph \"%s\" cannot take over its own work; record into another "
                             "graph, or call rondo_graph_instantiate",
                             graph->label);
    }
    if (graph->device != source->device) {
        return RONDO_FAIL_AS("rondo_graph_update", INVALID,
                             "graph \"%s\" is of %s, graph \"%s\" of %s", graph->label,
                             graph->device->name, source->label, source->device->name);
    }
    if (graph->state == RONDO__GRAPH_RECORDING) {
        return RONDO_FAIL_AS("rondo_graph_update", STATE,
                             "graph \"%s\" records; end or abort that capture first", graph->label);
    }
    return RONDO_STATUS_OK;
}

static void describe(const rondo__difference *entry, rondo_difference *out) {
    *out = (rondo_difference){.struct_size = sizeof *out};
    snprintf(out->place, sizeof out->place, "%s", entry->place);
    snprintf(out->label, sizeof out->label, "%s", entry->label);
    snprintf(out->field, sizeof out->field, "%s", entry->field);
    snprintf(out->before, sizeof out->before, "%s", entry->before);
    snprintf(out->after, sizeof out->after, "%s", entry->after);
}

// Logs why an executable has to be made anew: the first difference between the former template, if
// the graph kept it, and the new one.
static void find_difference(const rondo_graph *graph, const rondo_graph *source,
                            rondo_update_report *report) {
    rondo_error saved;
    rondo__template_diff diff;
    if (graph->recorded == NULL || (report == NULL && !RONDO_LOG_IS_WANTED(RONDO_LOG_DEBUG))) {
        return;
    }
    rondo__error_save(&saved);
    if (rondo__template_compare(graph->recorded, source->recorded,
                                rondo__graph_get_participants(source), 1,
                                &diff) == RONDO_STATUS_OK) {
        char text[512] = "nothing that can be seen has changed";
        if (diff.count > 0) {
            (void)rondo__difference_format(&diff.entries[0], text, sizeof text);
        }
        if (diff.count > 0 && report != NULL) {
            report->has_difference = true;
            describe(&diff.entries[0], &report->difference);
        }
        RONDO_LOG_DEBUG_F("graph \"%s\" gets a new executable, as it could not be patched: %s",
                          graph->label, text);
        rondo__template_diff_deinit(&diff);
    }
    rondo__error_restore(&saved);
}

// Switches the nodes of graph->executable that patches have switched off.
static rondo_status switch_nodes(const rondo_graph *graph, bool is_enabled) {
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < graph->image_count && status == RONDO_STATUS_OK; ++i) {
        if (graph->images[i] != NULL && !graph->images[i]->is_enabled) {
            rondo__node_image image = *graph->images[i];
            image.is_enabled = is_enabled;
            status =
                graph->device->backend->enable_node(graph->executable, graph->recorded, &image);
        }
    }
    return status;
}

// All of `recorded` runs: CUDA's own update leaves off what was switched off.
static rondo_status patch_executable(const rondo_graph *graph, rondo__template *recorded,
                                     bool *out_was_patched) {
    rondo_status status = switch_nodes(graph, true);
    if (status == RONDO_STATUS_OK) {
        status = graph->device->backend->update(graph->executable, recorded, out_was_patched);
    }
    if (!*out_was_patched) {
        rondo_error saved;
        rondo__error_save(&saved);
        (void)switch_nodes(graph, false);
        rondo__error_restore(&saved);
    }
    return status;
}

// An executable of what `source` recorded: a new one, or that of `source`, where the template can
// have no second.
static rondo_status get_executable(rondo_graph *graph, rondo_graph *source,
                                   rondo_graph_stats *stats, rondo__executable **out_executable) {
    bool is_exclusive = false;
    rondo_error saved;
    if (source->executable != NULL) {
        RETURN_IF_ERROR(rondo__graph_check_exclusive(source->recorded, &is_exclusive));
    }
    if (!is_exclusive) {
        rondo__error_save(&saved);
        rondo_status status =
            rondo__graph_make_executable(graph, source->recorded, out_executable, stats);
        if (status != RONDO_STATUS_UNSUPPORTED || source->executable == NULL) {
            return status;
        }
        rondo__error_restore(&saved);
    }
    if (source->images != NULL) {
        // It does what patches said, and not what was recorded.
        rondo__graph_drop_executable(source);
        return rondo__graph_make_executable(graph, source->recorded, out_executable, stats);
    }
    rondo__graph_wait(source);
    *out_executable = source->executable;
    source->executable = NULL;
    return RONDO_STATUS_OK;
}

// Patches graph->executable, or puts another one there: a new one, or that of `source`, where the
// template can have no second.
static rondo_status renew_executable(rondo_graph *graph, rondo_graph *source,
                                     rondo_graph_stats *stats, rondo_update_report *report,
                                     bool *out_was_patched) {
    rondo__template *recorded = source->recorded;
    *out_was_patched = false;
    if (graph->executable != NULL) {
        const rondo__hook_scope scope =
            rondo__hook_enter(RONDO__SPAN_INSTANTIATE, "update an executable");
        uint64_t start = rondo__clock_now_ns();
        const rondo_status status = patch_executable(graph, recorded, out_was_patched);
        rondo__hook_leave(&scope);
        RETURN_IF_ERROR(status);
        if (*out_was_patched) {
            stats->instantiate_ns = rondo__clock_now_ns() - start;
            stats->device_bytes = graph->stats.device_bytes;
            stats->device_bytes_is_estimate = graph->stats.device_bytes_is_estimate;
            return RONDO_STATUS_OK;
        }
        find_difference(graph, source, report);
    }
    rondo__executable *executable = NULL;
    RETURN_IF_ERROR(get_executable(graph, source, stats, &executable));
    rondo__graph_set_executable(graph, executable);
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_update(rondo_graph *graph, rondo_graph *source,
                                rondo_update_report *out_report) {
    rondo_update_report report = {.struct_size = sizeof report};
    if (out_report != NULL) {
        RETURN_IF_ERROR(
            rondo__clear_struct(out_report, sizeof *out_report, __func__, "rondo_update_report"));
    }
    RETURN_IF_ERROR(check_pair(graph, source));
    rondo_graph_stats stats = source->stats;
    if (!source->has_kinds) {
        RETURN_IF_ERROR(rondo__graph_count_kinds(source->recorded, &stats));
    }
    bool was_patched = false;
    RETURN_IF_ERROR(
        renew_executable(graph, source, &stats, out_report != NULL ? &report : NULL, &was_patched));

    // Replays in flight may still use what the former work needs.
    if (graph->participants != NULL) {
        rondo__graph_wait(graph);
        rondo__participants_destroy(graph->participants);
    }
    rondo__graph_forget_nodes(graph);
    graph->participants = source->participants;
    source->participants = NULL;
    // The memory of the work lies in the arena that it was captured with.
    rondo_arena *arena = graph->arena;
    bool was_given = graph->has_given_arena;
    graph->arena = source->arena;
    graph->has_given_arena = source->has_given_arena;
    source->arena = arena;
    source->has_given_arena = was_given;
    if (graph->recorded != NULL) {
        graph->device->backend->destroy_template(graph->recorded);
        graph->recorded = NULL;
    }
    if (graph->keeps_template) {
        graph->recorded = source->recorded;
        source->recorded = NULL;
    }
    graph->stats = stats;
    graph->has_kinds = true;
    rondo__graph_clear(source);
    if (out_report != NULL) {
        report.result = was_patched ? RONDO_UPDATE_PATCHED : RONDO_UPDATE_INSTANTIATED;
        rondo__write_struct(out_report, &report);
    }
    return RONDO_STATUS_OK;
}

// ---- differences ------------------------------------------------------------------------------

rondo_status rondo_graph_compare(rondo_graph *before, rondo_graph *after,
                                 rondo_difference *differences, size_t capacity,
                                 size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__graph_check_template(before, __func__));
    RETURN_IF_ERROR(rondo__graph_check_template(after, __func__));
    if (before->device != after->device) {
        return RONDO_FAIL(INVALID, "graph \"%s\" is of %s, graph \"%s\" of %s", before->label,
                          before->device->name, after->label, after->device->name);
    }
    size_t stride = 0;
    RETURN_IF_ERROR(rondo__read_stride(differences, capacity, sizeof *differences, __func__,
                                       "rondo_difference", &stride));
    rondo__template_diff diff;
    RETURN_IF_ERROR(rondo__template_compare(before->recorded, after->recorded,
                                            rondo__graph_get_participants(after), SIZE_MAX, &diff));
    for (size_t i = 0; i < diff.count && i < capacity; ++i) {
        rondo_difference described;
        describe(&diff.entries[i], &described);
        described.struct_size = stride;
        memcpy((char *)differences + i * stride, &described, stride);
    }
    *out_count = diff.count;
    rondo__template_diff_deinit(&diff);
    return RONDO_STATUS_OK;
}

size_t rondo_difference_format(const rondo_difference *difference, char *text, size_t capacity) {
    capacity = text != NULL ? capacity : 0;
    if (capacity > 0) {
        text[0] = '\0';
    }
    if (difference == NULL || difference->struct_size < sizeof difference->struct_size ||
        difference->struct_size > sizeof *difference) {
        return 0;
    }
    rondo_difference whole = {.struct_size = sizeof whole};  // an older program's may end before
    memcpy(&whole, difference, difference->struct_size);
    rondo__difference entry = {.label = whole.label};
    memcpy(entry.place, whole.place, sizeof entry.place);
    memcpy(entry.field, whole.field, sizeof entry.field);
    memcpy(entry.before, whole.before, sizeof entry.before);
    memcpy(entry.after, whole.after, sizeof entry.after);
    return rondo__difference_format(&entry, text, capacity);
}
