// graph/file/graph_file.c — graphs to files and back; see rondo/update.h.
//
//   about     what the graph was recorded on
//   symbols   for each its name, kind, bytes and alignment, and whether a node uses it
//   graph     the nodes (graph_record.h)
//
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "backend/check.h"
#include "base/error.h"
#include "device/device.h"
#include "device/stream_destroy.h"
#include "graph/file/graph_record.h"
#include "graph/graph_share.h"
#include "graph/template.h"
#include "rondo/node.h"
#include "saved/section_file.h"

// To be raised when the form of a section changes.
enum { ABOUT_VERSION = 1, SYMBOLS_VERSION = 2, GRAPH_VERSION = 2, GENERATION_BYTES = 32 };
// The form of graphs that take memory. It has all that the one before has, so both are read.
enum { GRAPH_VERSION_WITH_MEMORY = 3 };

static const char save_call[] = "rondo_graph_save";
static const char load_call[] = "rondo_graph_load";

// What launch shapes were chosen for.
static rondo_status name_generation(rondo_device *device, char text[GENERATION_BYTES],
                                    rondo_device_info *out_facts) {
    out_facts->struct_size = sizeof *out_facts;
    RETURN_IF_ERROR(rondo__device_get_facts(device, out_facts));
    (void)snprintf(text, GENERATION_BYTES, "%s %d.%d", device->backend->name,
                   (int)out_facts->arch_major, (int)out_facts->arch_minor);
    return RONDO_STATUS_OK;
}

// The failure of a file, in the name of the public call.
static rondo_status fail_file(rondo_status status, const char *call) {
    rondo_error first;
    rondo__error_save(&first);
    return rondo__error_set(status, first.driver_code, first.driver_name, first.file, first.line,
                            call, "%s", first.message);
}

// ---- made again -------------------------------------------------------------------------------

static rondo_status build(rondo_graph *graph, const void *bytes, size_t byte_count,
                          const rondo__graph_symbols *symbols) {
    rondo__record record = {.at = bytes, .past = (const uint8_t *)bytes + byte_count};
    RETURN_IF_ERROR(rondo_graph_build_begin(graph));
    rondo_status status = rondo__graph_record_build(graph->builder, &record, symbols);
    if (status == RONDO_STATUS_OK) {
        return rondo_graph_capture_end(graph);
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_graph_capture_abort(graph);
    rondo__error_restore(&saved);
    return status;
}

// The first difference between the graph and the one that the record builds.
static rondo_status fail_different(rondo_graph *graph, rondo_graph *again) {
    rondo__template_diff diff = {0};
    char text[256] = "the order of its nodes";
    RETURN_IF_ERROR(rondo__template_compare(graph->recorded, again->recorded,
                                            rondo__graph_get_participants(graph), 1, &diff));
    if (diff.count > 0) {
        (void)rondo__difference_format(&diff.entries[0], text, sizeof text);
    }
    rondo__template_diff_deinit(&diff);
    return RONDO_FAIL_AS(save_call, UNSUPPORTED,
                         "graph \"%s\" would not be the same when it is made again: %s",
                         graph->label, text);
}

static rondo_status check_again(rondo_graph *graph, rondo_graph *again,
                                rondo__graph_symbols *symbols, const rondo__text *record) {
    rondo__text other = {0};
    bool takes_memory = false;
    RETURN_IF_ERROR(build(again, record->bytes, record->length, symbols));
    rondo_status status =
        rondo__graph_record_write(again->recorded, symbols, &other, &takes_memory);
    if (status == RONDO_STATUS_OK &&
        (other.length != record->length || memcmp(other.bytes, record->bytes, other.length) != 0)) {
        status = fail_different(graph, again);
    }
    rondo__text_deinit(&other);
    return status;
}

static rondo_status check_record(rondo_graph *graph, rondo__graph_symbols *symbols,
                                 const rondo__text *record) {
    const rondo_graph_options options = {
        .struct_size = sizeof options, .keep = RONDO_KEEP_TEMPLATE_ONLY, .label = graph->label};
    rondo_graph *again = NULL;
    RETURN_IF_ERROR(rondo_graph_create(graph->device, &options, &again));
    const rondo_status status = check_again(graph, again, symbols, record);
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_graph_destroy(again);
    rondo__error_restore(&saved);
    return status;
}

// ---- saving -----------------------------------------------------------------------------------

static rondo_status write_file(rondo_graph *graph, const char *path, rondo__text texts[3],
                               bool takes_memory) {
    char generation[GENERATION_BYTES];
    rondo_device_info facts;
    RETURN_IF_ERROR(name_generation(graph->device, generation, &facts));
    rondo__record_put_text(&texts[0], generation);
    rondo__record_put_text(&texts[0], facts.description);
    rondo__record_put_text(&texts[0], graph->label);
    static const char *const names[] = {"about", "symbols", "graph"};
    const uint32_t versions[] = {ABOUT_VERSION, SYMBOLS_VERSION,
                                 takes_memory ? GRAPH_VERSION_WITH_MEMORY : GRAPH_VERSION};
    rondo__section_piece pieces[3];
    rondo__section_source sources[3];
    for (int i = 0; i < 3; ++i) {
        RETURN_IF_ERROR(rondo__text_get_status(&texts[i]));
        pieces[i] = (rondo__section_piece){.bytes = texts[i].bytes, .byte_count = texts[i].length};
        sources[i] = (rondo__section_source){names[i], versions[i], &pieces[i], 1};
    }
    const rondo_status status =
        rondo__section_file_write(&rondo__graph_file_kind, path, sources, 3);
    return status == RONDO_STATUS_OK ? status : fail_file(status, save_call);
}

rondo_status rondo_graph_save(rondo_graph *graph, const char *path,
                              const rondo_graph_symbol *symbols, size_t symbol_count) {
    RETURN_IF_ERROR(rondo__graph_check_template(graph, save_call));
    RETURN_IF_ERROR(rondo__check_pointer(path, save_call, "path"));
    rondo__graph_symbols given;
    rondo__text texts[3] = {{0}};
    bool takes_memory = false;
    rondo_status status =
        rondo__graph_symbols_init(graph->device, symbols, symbol_count, save_call, &given);
    if (status == RONDO_STATUS_OK) {
        status = rondo__graph_record_write(graph->recorded, &given, &texts[2], &takes_memory);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__graph_symbols_check_owners(&given, save_call);
    }
    if (status == RONDO_STATUS_OK) {
        status = check_record(graph, &given, &texts[2]);
    }
    if (status == RONDO_STATUS_OK) {
        rondo__graph_symbols_write(&given, &texts[1]);
        status = write_file(graph, path, texts, takes_memory);
    }
    for (int i = 0; i < 3; ++i) {
        rondo__text_deinit(&texts[i]);
    }
    rondo__graph_symbols_deinit(&given);
    if (status != RONDO_STATUS_OK) {
        rondo__error_set_op(graph->label);
    }
    return status;
}

// ---- loading ----------------------------------------------------------------------------------

static rondo_status find_section(const rondo__section_file *file, const char *name, uint32_t oldest,
                                 uint32_t newest, rondo__record *out_record) {
    const rondo__section *section = rondo__section_file_find(file, name);
    const uint32_t version = section != NULL ? section->version : 0;
    if (version < oldest || version > newest) {
        return RONDO_FAIL_AS(load_call, UNSUPPORTED,
                             "the graph file's section \"%s\" is of version %u, this library reads "
                             "versions %u to %u: save the graph anew",
                             name, (unsigned)version, (unsigned)oldest, (unsigned)newest);
    }
    *out_record =
        (rondo__record){.at = section->bytes, .past = section->bytes + section->byte_count};
    return RONDO_STATUS_OK;
}

static rondo_status check_about(rondo_device *device, rondo__record *about) {
    char generation[GENERATION_BYTES];
    rondo_device_info facts;
    RETURN_IF_ERROR(name_generation(device, generation, &facts));
    const char *recorded = rondo__record_get_text(about);
    const char *description = rondo__record_get_text(about);
    if (about->is_bad) {
        return RONDO_FAIL_AS(load_call, BAD_DATA, "the graph file's section \"about\" is damaged");
    }
    return strcmp(recorded, generation) == 0
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(load_call, UNSUPPORTED,
                               "the graph file was made on %.40s (%.100s), %s is %s: record the "
                               "graph on this device",
                               recorded, description, device->name, generation);
}

static rondo_status load_sections(rondo_graph *graph, const rondo__section_file *file,
                                  rondo__graph_symbols *given, rondo__graph_symbols *symbols) {
    rondo__record about, names, nodes;
    RETURN_IF_ERROR(find_section(file, "about", ABOUT_VERSION, ABOUT_VERSION, &about));
    RETURN_IF_ERROR(find_section(file, "symbols", SYMBOLS_VERSION, SYMBOLS_VERSION, &names));
    RETURN_IF_ERROR(find_section(file, "graph", GRAPH_VERSION, GRAPH_VERSION_WITH_MEMORY, &nodes));
    RETURN_IF_ERROR(check_about(graph->device, &about));
    RETURN_IF_ERROR(rondo__graph_symbols_match(given, &names, load_call, symbols));
    return build(graph, nodes.at, (size_t)(nodes.past - nodes.at), symbols);
}

rondo_status rondo_graph_load(rondo_graph *graph, const char *path,
                              const rondo_graph_symbol *symbols, size_t symbol_count) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, load_call, "graph"));
    RETURN_IF_ERROR(rondo__check_pointer(path, load_call, "path"));
    RETURN_IF_ERROR(rondo__check_alive(graph->device, load_call));
    rondo__graph_symbols given;
    rondo__graph_symbols matched = {0};
    rondo__section_file file = {0};
    rondo_status status =
        rondo__graph_symbols_init(graph->device, symbols, symbol_count, load_call, &given);
    if (status == RONDO_STATUS_OK) {
        status = rondo__section_file_open(&rondo__graph_file_kind, path, &file);
        status = status == RONDO_STATUS_OK ? status : fail_file(status, load_call);
    }
    if (status == RONDO_STATUS_OK) {
        status = load_sections(graph, &file, &given, &matched);
    }
    if (file.storage != NULL) {
        rondo__section_file_close(&file);
    }
    rondo__graph_symbols_deinit(&matched);
    rondo__graph_symbols_deinit(&given);
    if (status == RONDO_STATUS_OK) {
        // A stream takes half a megabyte of a GPU's memory, and graphs that are loaded are many.
        rondo__stream_destroy_own(graph->builder);
        graph->builder = NULL;
    } else {
        rondo__error_set_op(graph->label);
    }
    return status;
}
