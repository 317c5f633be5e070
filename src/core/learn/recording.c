// learn/recording.c — see recording.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/recording.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/areas.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/label/label.h"
#include "graph/template.h"

// ---- words ------------------------------------------------------------------------------------

typedef struct field_row {
    const char *name;
    size_t offset;
    uint32_t bytes;
} field_row;

#define FIELD(name, member) \
    { name, offsetof(rondo__node_info, member), sizeof(((rondo__node_info *)0)->member) }

static const field_row fields[] = {
    FIELD("grid.x", grid[0]),
    FIELD("grid.y", grid[1]),
    FIELD("grid.z", grid[2]),
    FIELD("block.x", block[0]),
    FIELD("block.y", block[1]),
    FIELD("block.z", block[2]),
    FIELD("shared bytes", shared_bytes),
    FIELD("destination", destination),
    FIELD("source", source),
    FIELD("bytes", byte_count),
    FIELD("fill value", fill_value),
    FIELD("width", width),
    FIELD("height", height),
    FIELD("depth", depth),
    FIELD("pitch", pitch_bytes),
    FIELD("predicate", predicate),
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

size_t rondo__image_count_regions(const rondo__node_image *image) {
    return FIELD_COUNT +
           (image->parameter_count > 0 ? image->parameter_count : image->argument_bytes > 0);
}

rondo__region rondo__image_get_region(const rondo__node_image *image, size_t index) {
    if (index < FIELD_COUNT) {
        return (rondo__region){
            .is_field = true, .number = (uint32_t)index, .bytes = fields[index].bytes};
    }
    const size_t number = index - FIELD_COUNT;
    if (image->parameter_count == 0) {
        return (rondo__region){.bytes = (uint32_t)image->argument_bytes};
    }
    return (rondo__region){.number = (uint32_t)number,
                           .offset = (uint32_t)image->parameters[number].offset,
                           .bytes = (uint32_t)image->parameters[number].bytes};
}

unsigned char *rondo__image_find_word(const rondo__node_image *image, const rondo__word *word) {
    unsigned char *region = word->region.is_field ? (unsigned char *)(uintptr_t)&image->info +
                                                        fields[word->region.number].offset
                                                  : image->arguments + word->region.offset;
    return region + word->offset;
}

uint64_t rondo__image_read(const rondo__node_image *image, const rondo__word *word) {
    uint64_t value = 0;
    memcpy(&value, rondo__image_find_word(image, word), word->width);
    return value;
}

void rondo__image_write(rondo__node_image *image, const rondo__word *word, uint64_t value) {
    memcpy(rondo__image_find_word(image, word), &value, word->width);
}

uint32_t rondo__region_get_width(const rondo__region *region, uint32_t offset) {
    uint32_t width = 8;
    while (offset % width != 0 || offset + width > region->bytes) {
        width /= 2;
    }
    return width;
}

void rondo__word_format(const rondo__word *word, const rondo__node_image *image, char *text,
                        size_t capacity) {
    char bytes[32];
    if (word->width == 1) {
        snprintf(bytes, sizeof bytes, "byte %u", (unsigned)word->offset);
    } else {
        snprintf(bytes, sizeof bytes, "bytes %u to %u", (unsigned)word->offset,
                 (unsigned)(word->offset + word->width - 1));
    }
    if (word->region.is_field) {
        snprintf(text, capacity, "%s", fields[word->region.number].name);
    } else if (image->parameter_count == 0) {
        snprintf(text, capacity, "arguments, %s", bytes);
    } else {
        snprintf(text, capacity, "parameter %u, %s", (unsigned)word->region.number, bytes);
    }
}

// ---- reading a template -----------------------------------------------------------------------

typedef struct reading {
    rondo__recording *recording;
    const rondo__participant *labels;
    const rondo__trial_memory *trial;
} reading;

static rondo_status add_structure(rondo__recording *recording, uint64_t one, uint64_t two) {
    rondo_status status = RONDO__ARRAY_RESERVE(recording->structure, recording->structure_capacity,
                                               recording->structure_count + 2);
    RETURN_IF_ERROR(status);
    recording->structure[recording->structure_count++] = one;
    recording->structure[recording->structure_count++] = two;
    return RONDO_STATUS_OK;
}

static rondo_status enter_level(void *user_data, rondo__template_level *level) {
    rondo__recording *recording = ((reading *)user_data)->recording;
    RETURN_IF_ERROR(
        add_structure(recording, level->depth, level->node != NULL ? level->node->id : UINT64_MAX));
    RETURN_IF_ERROR(add_structure(recording, level->branch, level->recorded != NULL));
    if (level->recorded == NULL) {
        return RONDO_STATUS_OK;
    }
    rondo__edge_table edges;
    RETURN_IF_ERROR(rondo__edge_table_init(level->recorded, &edges));
    rondo__edge_table_sort(&edges);
    rondo_status status = add_structure(recording, edges.count, 0);
    for (size_t i = 0; i < edges.count && status == RONDO_STATUS_OK; ++i) {
        status = add_structure(recording, edges.edges[i].from,
                               edges.edges[i].to << 8 | edges.edges[i].kind);
    }
    rondo__edge_table_deinit(&edges);
    return status;
}

// Eight bytes a turn; only recordings of one process are compared.
static uint64_t hash_bytes(const unsigned char *bytes, size_t count) {
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) ^ count;
    size_t at = 0;
    for (; at < count; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, count - at < 8 ? count - at : 8);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    return hash;
}

static bool overlap(uintptr_t begin, size_t bytes, uintptr_t other, size_t other_bytes) {
    return begin < other + other_bytes && other < begin + bytes;
}

// Whether it is neither made up for the trial nor taken from a pool.
static bool is_own(const reading *r, uintptr_t begin, size_t bytes) {
    for (size_t i = 0; i < r->trial->made_up_count; ++i) {
        const rondo__made_up *made_up = &r->trial->made_up[i];
        if (overlap(begin, bytes, made_up->begin, made_up->bytes)) {
            return false;
        }
    }
    const rondo__capture_blocks *blocks = &r->recording->blocks;
    for (size_t i = 0; i < blocks->count; ++i) {
        if (overlap(begin, bytes, blocks->list[i].begin, blocks->list[i].bytes)) {
            return false;
        }
    }
    return true;
}

// Whether the processor may read there: memory that Rondo or the driver knows as the host's. An
// address that the capture itself allocated is unknown to the driver before there is an executable,
// and a copy from it may be described as one from the host.
static bool is_known_host_memory(rondo_device *device, const rondo__node_info *info) {
    rondo__area area;
    if (rondo_device_is_host(device)) {
        return true;
    }
    if (rondo__areas_find(device, info->source, &area)) {
        return area.kind == RONDO_MEMORY_PINNED &&
               info->byte_count <= area.bytes - ((uintptr_t)info->source - area.begin);
    }
    return !rondo__areas_is_pageable(device, info->source, (size_t)info->byte_count);
}

// The program's own host memory that a copy reads at each replay.
static void note_table(const reading *r, rondo_device *device, size_t index,
                       rondo__recorded_node *node) {
    const rondo__node_info *info = &node->image.info;
    if (r->trial == NULL || info->kind != RONDO__NODE_COPY ||
        info->copy_kind != RONDO_COPY_HOST_TO_DEVICE || info->height > 1 || info->depth > 1 ||
        info->source == NULL || !is_own(r, (uintptr_t)info->source, (size_t)info->byte_count)) {
        return;
    }
    if (!is_known_host_memory(device, info)) {
        node->has_unknown_table = true;
        return;
    }
    const rondo__recording *reference = r->trial->reference;
    const rondo__recorded_node *other =
        reference != NULL && index < reference->count ? &reference->nodes[index] : node;
    const bool is_shorter = other->table_bytes > 0 && other->table_bytes < info->byte_count;
    node->table_bytes = is_shorter ? other->table_bytes : info->byte_count;
    node->table = hash_bytes(info->source, (size_t)node->table_bytes);
}

static rondo_status read_texts(const reading *r, const rondo__template_node *from,
                               rondo__recorded_node *node) {
    const char *name = node->image.info.name;
    const char *label = rondo__label_of_node(r->labels, from->id);
    node->name = rondo__strdup(
        name != NULL && name[0] != '\0' ? name : rondo__node_kind_get_name(from->info.kind));
    if (node->name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (label[0] != '\0') {
        node->label = rondo__strdup(label);
        return node->label != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    }
    return RONDO_STATUS_OK;
}

static rondo_status enter_node(void *user_data, const rondo__template_node *from) {
    reading *r = user_data;
    rondo__recording *recording = r->recording;
    rondo__template *level = from->level->recorded;
    rondo_status status =
        RONDO__ARRAY_RESERVE(recording->nodes, recording->capacity, recording->count + 1);
    RETURN_IF_ERROR(status);
    rondo__recorded_node *node = &recording->nodes[recording->count];
    *node = (rondo__recorded_node){.is_inner = from->level->depth > 0};
    RETURN_IF_ERROR(add_structure(recording, from->index, from->info.kind));
    RETURN_IF_ERROR(level->device->backend->read_node(level, from->index, &node->image));
    ++recording->count;
    RETURN_IF_ERROR(read_texts(r, from, node));
    note_table(r, level->device, recording->count - 1, node);
    // The kernel that sets a condition (backend/cuda/graph/cuda_conditional.c) begins with the
    // number of its conditional node, which is another one in each capture.
    if (strcmp(node->name, "rondo_condition") == 0) {
        node->first_ignored = sizeof(uint64_t);
    }
    node->image.info.name = "";
    return RONDO_STATUS_OK;
}

rondo_status rondo__recording_read(rondo__recording *recording, rondo__template *recorded,
                                   const rondo__participant *labels,
                                   const rondo__trial_memory *trial) {
    static const rondo__template_visitor visitor = {.enter_level = enter_level,
                                                    .enter_node = enter_node};
    reading r = {recording, labels, trial};
    return rondo__template_visit(recorded, &visitor, &r);
}

void rondo__recording_deinit(rondo__recording *recording) {
    for (size_t i = 0; i < recording->count; ++i) {
        rondo__node_image_deinit(&recording->nodes[i].image);
        rondo__free(recording->nodes[i].name);
        rondo__free(recording->nodes[i].label);
    }
    rondo__free(recording->nodes);
    rondo__free(recording->structure);
    rondo__free(recording->blocks.list);
    rondo__values_deinit(&recording->values);
    *recording = (rondo__recording){0};
}

bool rondo__recordings_agree(const rondo__recording *before, const rondo__recording *after,
                             uint64_t word_before, uint64_t word_after, uint32_t width) {
    if (word_before == word_after) {
        return true;
    }
    const rondo__capture_blocks *blocks = &before->blocks;
    for (size_t i = 0; width == 8 && i < blocks->count && i < after->blocks.count; ++i) {
        const uint64_t offset = word_before - blocks->list[i].begin;
        if (offset < blocks->list[i].bytes && word_after - after->blocks.list[i].begin == offset) {
            return true;
        }
    }
    return false;
}

// ---- differences ------------------------------------------------------------------------------

void rondo__finding_set(rondo__finding *finding, rondo_refusal refusal, size_t node,
                        const char *format, ...) {
    va_list arguments;
    *finding = (rondo__finding){.refusal = refusal, .has_node = node != SIZE_MAX, .node = node};
    va_start(arguments, format);
    vsnprintf(finding->message, sizeof finding->message, format, arguments);
    va_end(arguments);
}

static bool have_same_parameters(const rondo__node_image *one, const rondo__node_image *other) {
    return one->argument_bytes == other->argument_bytes &&
           one->parameter_count == other->parameter_count &&
           (one->parameter_count == 0 ||
            memcmp(one->parameters, other->parameters,
                   one->parameter_count * sizeof *one->parameters) == 0);
}

static void refuse_attributes(const rondo__recorded_node *before, const rondo__recorded_node *after,
                              size_t index, rondo__finding *finding) {
    const rondo__launch_attributes *one = &before->image.attributes;
    const rondo__launch_attributes *other = &after->image.attributes;
    const bool is_cluster = memcmp(one->cluster, other->cluster, sizeof one->cluster) != 0;
    if (is_cluster) {
        rondo__finding_set(
            finding, RONDO_REFUSAL_LAUNCH, index,
            "\"%.60s\" in clusters of %ux%ux%u blocks once, of %ux%ux%u another time", before->name,
            (unsigned)one->cluster[0], (unsigned)one->cluster[1], (unsigned)one->cluster[2],
            (unsigned)other->cluster[0], (unsigned)other->cluster[1], (unsigned)other->cluster[2]);
        return;
    }
    const char *what = one->is_cooperative != other->is_cooperative ? "being cooperative or not"
                       : one->priority != other->priority           ? "priority"
                       : one->access_policy != other->access_policy ? "access policy window"
                                                                    : "attributes";
    rondo__finding_set(finding, RONDO_REFUSAL_LAUNCH, index,
                       "\"%.60s\" differs in its %s from one recording to another", before->name,
                       what);
}

static bool match_nodes(const rondo__recorded_node *before, const rondo__recorded_node *after,
                        size_t index, rondo__finding *finding) {
    const rondo__node_image *one = &before->image;
    const rondo__node_image *other = &after->image;
    if (one->info.kind != other->info.kind) {
        rondo__finding_set(finding, RONDO_REFUSAL_NODES, index,
                           "\"%.60s\" once, \"%.60s\" another time", before->name, after->name);
    } else if (strcmp(before->name, after->name) != 0 || one->function != other->function ||
               one->kernel != other->kernel || one->context != other->context ||
               !have_same_parameters(one, other)) {
        rondo__finding_set(
            finding, RONDO_REFUSAL_FUNCTION, index,
            "\"%.60s\" with %zu bytes of arguments once, \"%.60s\" with %zu another time",
            before->name, one->argument_bytes, after->name, other->argument_bytes);
    } else if (one->info.copy_kind != other->info.copy_kind ||
               one->info.element_bytes != other->info.element_bytes ||
               one->info.branch_count != other->info.branch_count ||
               one->info.event != other->info.event || one->is_enabled != other->is_enabled) {
        rondo__finding_set(finding, RONDO_REFUSAL_FUNCTION, index,
                           "its direction, element size or event is another one");
    } else if (memcmp(&one->attributes, &other->attributes, sizeof one->attributes) != 0) {
        refuse_attributes(before, after, index, finding);
    } else if (before->table_bytes > 0 && before->table_bytes == after->table_bytes &&
               before->table != after->table && one->info.source == other->info.source) {
        rondo__finding_set(finding, RONDO_REFUSAL_TABLE, index,
                           "the %" PRIu64 " bytes at %p, which it copies, were others",
                           before->table_bytes, one->info.source);
    } else if (before->has_unknown_table || after->has_unknown_table) {
        rondo__finding_set(finding, RONDO_REFUSAL_TABLE, index,
                           "it copies %" PRIu64
                           " bytes from %p, which neither Rondo nor the driver knows, so no check "
                           "sees whether they change; pin that memory",
                           one->info.byte_count, one->info.source);
    } else {
        return true;
    }
    return false;
}

// ---- lists ------------------------------------------------------------------------------------

rondo_status rondo__findings_add(rondo__findings *findings, const rondo__finding *finding) {
    if (findings->count == RONDO__FINDINGS_MAX) {
        return RONDO_STATUS_OK;
    }
    rondo_status status =
        RONDO__ARRAY_RESERVE(findings->list, findings->capacity, findings->count + 1);
    RETURN_IF_ERROR(status);
    findings->list[findings->count++] = *finding;
    return RONDO_STATUS_OK;
}

rondo_status rondo__findings_take(rondo__findings *findings, const rondo__findings *others) {
    for (size_t i = 0; i < others->count; ++i) {
        RETURN_IF_ERROR(rondo__findings_add(findings, &others->list[i]));
    }
    return RONDO_STATUS_OK;
}

void rondo__findings_deinit(rondo__findings *findings) {
    rondo__free(findings->list);
    *findings = (rondo__findings){0};
}

// ---- two recordings ---------------------------------------------------------------------------

static bool match_blocks(const rondo__recording *before, const rondo__recording *after,
                         rondo__finding *finding) {
    if (before->blocks.count != after->blocks.count) {
        rondo__finding_set(finding, RONDO_REFUSAL_MEMORY, SIZE_MAX,
                           "%zu blocks were taken from pools once, %zu another time",
                           before->blocks.count, after->blocks.count);
        return false;
    }
    for (size_t i = 0; i < before->blocks.count; ++i) {
        if (before->blocks.list[i].bytes != after->blocks.list[i].bytes) {
            rondo__finding_set(finding, RONDO_REFUSAL_MEMORY, SIZE_MAX,
                               "block %zu from a pool has %zu bytes once, %zu another time", i,
                               before->blocks.list[i].bytes, after->blocks.list[i].bytes);
            return false;
        }
    }
    return true;
}

rondo_status rondo__recordings_list_differences(const rondo__recording *before,
                                                const rondo__recording *after,
                                                rondo__findings *findings) {
    const size_t common = before->count < after->count ? before->count : after->count;
    rondo__finding finding;
    for (size_t i = 0; i < common; ++i) {
        if (!match_nodes(&before->nodes[i], &after->nodes[i], i, &finding)) {
            RETURN_IF_ERROR(rondo__findings_add(findings, &finding));
        }
    }
    return RONDO_STATUS_OK;
}

bool rondo__recordings_match(const rondo__recording *before, const rondo__recording *after,
                             rondo__finding *out_finding) {
    if (!match_blocks(before, after, out_finding)) {
        return false;
    }
    const size_t common = before->count < after->count ? before->count : after->count;
    for (size_t i = 0; i < common; ++i) {
        if (!match_nodes(&before->nodes[i], &after->nodes[i], i, out_finding)) {
            return false;
        }
    }
    if (before->count != after->count) {
        rondo__finding_set(out_finding, RONDO_REFUSAL_NODES, SIZE_MAX,
                           "it has %zu nodes once, %zu another time", before->count, after->count);
        return false;
    }
    if (before->structure_count != after->structure_count ||
        (before->structure_count > 0 &&
         memcmp(before->structure, after->structure,
                before->structure_count * sizeof *before->structure) != 0)) {
        rondo__finding_set(out_finding, RONDO_REFUSAL_NODES, SIZE_MAX,
                           "the %zu nodes depend on each other in another way", before->count);
        return false;
    }
    return true;
}
