// graph/file/write_record.c — a template to bytes; see graph_record.h.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/node_image.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/file/graph_record.h"
#include "graph/template.h"

enum { PLACE_BYTES = 48, TENSOR_MAP_BYTES = 128, TENSOR_MAP_ALIGNMENT = 64, WORD = 8 };

static const char call[] = "rondo_graph_save";

// A level under way.
typedef struct level {
    struct writing *w;
    rondo__template *recorded;
    char place[PLACE_BYTES];  // of its nodes: "", or "3_0_"
    bool is_while;            // the body of one
    size_t count;
    rondo__node_info *infos;
    rondo__edge_table edges;  // by `to`
    size_t *first_edges;      // of each node, and of one past the last
    size_t *numbers;          // in the record; SIZE_MAX: left out
    size_t *order;            // the nodes by number
    size_t written;
    size_t *stamps;  // which node a search met this one for
    size_t *before;  // what the search found
} level;

typedef struct writing {
    rondo__graph_symbols *symbols;
    rondo__text *out;
} writing;

// ---- refusals ---------------------------------------------------------------------------------

RONDO_PRINTF(3, 4)
static rondo_status refuse(const level *l, size_t index, const char *format, ...) {
    const rondo__node_info *info = &l->infos[index];
    char why[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return RONDO_FAIL_AS(call, UNSUPPORTED, "node %s%zu (%s%s%.80s): %s", l->place, index,
                         rondo__node_kind_get_name(info->kind), info->name[0] != '\0' ? " " : "",
                         info->name, why);
}

// ---- addresses --------------------------------------------------------------------------------

static rondo_status put_memory(level *l, size_t index, const char *what, const void *address,
                               uint64_t byte_count) {
    uint64_t offset = 0;
    const size_t symbol =
        rondo__graph_symbols_find(l->w->symbols, RONDO_SYMBOL_MEMORY, address, &offset);
    if (symbol == SIZE_MAX) {
        return refuse(l, index, "its %s %p is no symbol's memory", what, address);
    }
    const rondo_graph_symbol *memory = &l->w->symbols->list[symbol];
    if (byte_count > memory->byte_count - offset) {
        return refuse(l, index, "its %s reaches %" PRIu64 " bytes beyond the memory of %.60s", what,
                      offset + byte_count - memory->byte_count, memory->name);
    }
    rondo__record_put(l->w->out, symbol);
    rondo__record_put(l->w->out, offset);
    return RONDO_STATUS_OK;
}

// Words among a kernel's arguments that are addresses.
typedef struct relocations {
    level *l;
    const rondo__node_image *image;
    rondo__text list;
    size_t count;
} relocations;

static rondo_status take_word(relocations *r, size_t parameter, size_t offset) {
    const rondo__node_image *image = r->image;
    uint64_t word = 0;
    uint64_t behind = 0;
    memcpy(&word, image->arguments + offset, sizeof word);
    const size_t symbol = rondo__graph_symbols_find(r->l->w->symbols, RONDO_SYMBOL_MEMORY,
                                                    (const void *)(uintptr_t)word, &behind);
    if (symbol == SIZE_MAX && !rondo__graph_symbols_is_address(r->l->w->symbols, word)) {
        return RONDO_STATUS_OK;
    }
    char name[72];
    if (parameter != SIZE_MAX) {
        (void)snprintf(name, sizeof name, "parameter %zu (byte %zu of the arguments)", parameter,
                       offset);
    } else {
        (void)snprintf(name, sizeof name, "byte %zu of its arguments", offset);
    }
    if (symbol == SIZE_MAX) {
        return refuse(r->l, image->index, "%s holds 0x%" PRIx64 ", an address of no symbol", name,
                      word);
    }
    const rondo__parameter *place = parameter != SIZE_MAX ? &image->parameters[parameter] : NULL;
    if (place != NULL && place->bytes == TENSOR_MAP_BYTES &&
        place->offset % TENSOR_MAP_ALIGNMENT == 0) {
        return refuse(r->l, image->index, "%s may be a tensor map, which only the driver makes",
                      name);
    }
    memset(image->arguments + offset, 0, sizeof word);
    rondo__record_put(&r->list, offset);
    rondo__record_put(&r->list, symbol);
    rondo__record_put(&r->list, behind);
    ++r->count;
    return RONDO_STATUS_OK;
}

// A parameter of less than eight bytes is no address; where the layout is not known, each word may
// be one.
static rondo_status find_addresses(relocations *r) {
    const rondo__node_image *image = r->image;
    for (size_t i = 0; i < image->parameter_count; ++i) {
        const rondo__parameter *place = &image->parameters[i];
        for (size_t at = (place->offset + WORD - 1) / WORD * WORD;
             at + WORD <= place->offset + place->bytes; at += WORD) {
            RETURN_IF_ERROR(take_word(r, i, at));
        }
    }
    for (size_t at = 0; image->parameter_count == 0 && at + WORD <= image->argument_bytes;
         at += WORD) {
        RETURN_IF_ERROR(take_word(r, SIZE_MAX, at));
    }
    return RONDO_STATUS_OK;
}

// ---- nodes ------------------------------------------------------------------------------------

// The attributes of a launch, as the driver tells them. A hash among them is only compared.
static rondo_status put_attributes(level *l, size_t index) {
    const rondo__backend *backend = l->recorded->device->backend;
    rondo__launch_attributes attributes = {.priority = 0};
    if (backend->read_attributes != NULL) {
        RETURN_IF_ERROR(backend->read_attributes(l->recorded, index, &attributes));
    }
    const uint64_t numbers[] = {
        attributes.cluster[0],     attributes.cluster[1],         attributes.cluster[2],
        attributes.is_cooperative, (uint64_t)attributes.priority, attributes.access_policy,
        attributes.others};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        rondo__record_put(l->w->out, numbers[i]);
    }
    return RONDO_STATUS_OK;
}

static rondo_status put_arguments(level *l, const rondo__node_image *image) {
    relocations r = {.l = l, .image = image};
    rondo_status status = find_addresses(&r);
    if (status == RONDO_STATUS_OK) {
        rondo__record_put_bytes(l->w->out, image->argument_bytes > 0 ? image->arguments : NULL,
                                image->argument_bytes);
        rondo__record_put(l->w->out, r.count);
        if (r.count > 0) {
            rondo__text_append_bytes(l->w->out, r.list.bytes, r.list.length);
        }
        status = rondo__text_get_status(&r.list);
    }
    rondo__text_deinit(&r.list);
    return status;
}

static rondo_status put_image(level *l, const rondo__node_image *image) {
    uint64_t offset = 0;
    if (image->is_opaque) {
        return refuse(l, image->index, "the driver does not tell its arguments");
    }
    const void *function = image->function != NULL ? image->function : image->kernel;
    const size_t symbol =
        rondo__graph_symbols_find(l->w->symbols, RONDO_SYMBOL_FUNCTION, function, &offset);
    if (symbol == SIZE_MAX) {
        return refuse(l, image->index, "its function %p is no symbol's", function);
    }
    rondo__record_put(l->w->out, symbol);
    for (int d = 0; d < 3; ++d) {
        rondo__record_put(l->w->out, image->info.grid[d]);
        rondo__record_put(l->w->out, image->info.block[d]);
    }
    rondo__record_put(l->w->out, image->info.shared_bytes);
    RETURN_IF_ERROR(put_attributes(l, image->index));
    return put_arguments(l, image);
}

// All that the function is given are bytes of its own, as those of a kernel.
static rondo_status put_host_image(level *l, const rondo__node_image *image) {
    uint64_t offset = 0;
    if (image->is_opaque) {
        return refuse(l, image->index, "only the program knows its arguments");
    }
    const size_t symbol = rondo__graph_symbols_find(l->w->symbols, RONDO_SYMBOL_HOST_FUNCTION,
                                                    image->function, &offset);
    if (symbol == SIZE_MAX) {
        return refuse(l, image->index, "its function %p is no symbol's", image->function);
    }
    rondo__record_put(l->w->out, symbol);
    return put_arguments(l, image);
}

static rondo_status put_call(level *l, size_t index) {
    rondo__node_image image;
    RETURN_IF_ERROR(l->recorded->device->backend->read_node(l->recorded, index, &image));
    const rondo_status status =
        l->infos[index].kind == RONDO__NODE_HOST ? put_host_image(l, &image) : put_image(l, &image);
    rondo__node_image_deinit(&image);
    return status;
}

static rondo_status put_copy(level *l, size_t index) {
    const rondo__node_info *info = &l->infos[index];
    if (info->height > 1 || info->depth > 1 || info->has_unknown_memory) {
        return refuse(l, index, "%s",
                      info->has_unknown_memory ? "the driver does not tell what memory it copies"
                                               : "it copies several rows");
    }
    rondo__record_put(l->w->out, (uint64_t)info->copy_kind);
    rondo__record_put(l->w->out, info->byte_count);
    RETURN_IF_ERROR(put_memory(l, index, "source", info->source, info->byte_count));
    return put_memory(l, index, "destination", info->destination, info->byte_count);
}

static rondo_status put_fill(level *l, size_t index) {
    const rondo__node_info *info = &l->infos[index];
    if (info->height > 1 || info->element_bytes == 0) {
        return refuse(l, index, "it fills several rows");
    }
    rondo__record_put(l->w->out, rondo__cut_to_element(info->fill_value, info->element_bytes));
    rondo__record_put(l->w->out, info->element_bytes);
    rondo__record_put(l->w->out, info->byte_count / info->element_bytes);
    return put_memory(l, index, "destination", info->destination, info->byte_count);
}

static rondo_status put_event(level *l, size_t index) {
    uint64_t offset = 0;
    const size_t symbol = rondo__graph_symbols_find(l->w->symbols, RONDO_SYMBOL_EVENT,
                                                    l->infos[index].event, &offset);
    if (symbol == SIZE_MAX) {
        return refuse(l, index, "its event %p is no symbol's", l->infos[index].event);
    }
    rondo__record_put(l->w->out, symbol);
    return RONDO_STATUS_OK;
}

static rondo_status put_level(writing *w, rondo__template *recorded, const char *place,
                              bool is_while);

static rondo_status put_inner(level *l, size_t index, uint32_t branch, bool is_while) {
    char place[PLACE_BYTES + 24];
    rondo__template *inner = NULL;
    RETURN_IF_ERROR(rondo__node_get_level(l->recorded, index, &l->infos[index], branch, &inner));
    const int length =
        l->infos[index].kind == RONDO__NODE_CHILD
            ? snprintf(place, sizeof place, "%s%zu_", l->place, index)
            : snprintf(place, sizeof place, "%s%zu_%" PRIu32 "_", l->place, index, branch);
    if (length < 0 || length >= PLACE_BYTES) {
        return refuse(l, index, "it lies too deep in other nodes");
    }
    rondo__record_put(l->w->out, inner != NULL);
    return inner != NULL ? put_level(l->w, inner, place, is_while) : RONDO_STATUS_OK;
}

static rondo_status put_conditional(level *l, size_t index) {
    static const char *const names[] = {"if", "if_else", "switch", "while"};
    const rondo__node_info *info = &l->infos[index];
    size_t kind = 0;
    while (kind < sizeof names / sizeof names[0] && strcmp(info->name, names[kind]) != 0) {
        ++kind;
    }
    if (info->branch_count == 0 || kind == sizeof names / sizeof names[0]) {
        return refuse(l, index, "Rondo did not record it");
    }
    rondo__record_put(l->w->out, kind);
    rondo__record_put(l->w->out, info->branch_count);
    RETURN_IF_ERROR(put_memory(l, index, "predicate", info->predicate, sizeof(uint32_t)));
    for (uint32_t branch = 0; branch < info->branch_count; ++branch) {
        RETURN_IF_ERROR(put_inner(l, index, branch, kind == RONDO_SCOPE_WHILE));
    }
    return RONDO_STATUS_OK;
}

// ---- what nodes come behind -------------------------------------------------------------------

// Adds the nodes of the record that `index` comes behind, also by way of nodes that are left out.
static void search(level *l, size_t index, size_t origin, size_t *in_out_count) {
    for (size_t e = l->first_edges[index]; e < l->first_edges[index + 1]; ++e) {
        const size_t from = l->edges.edges[e].from;
        if (l->stamps[from] == origin + 1) {
            continue;
        }
        l->stamps[from] = origin + 1;
        if (l->numbers[from] == SIZE_MAX) {
            search(l, from, origin, in_out_count);
        } else {
            l->before[(*in_out_count)++] = l->numbers[from];
        }
    }
}

static int compare_numbers(const void *a, const void *b) {
    const size_t left = *(const size_t *)a;
    const size_t right = *(const size_t *)b;
    return left < right ? -1 : left > right;
}

static void put_before(level *l, size_t index) {
    size_t count = 0;
    bool overlaps = false;
    search(l, index, index, &count);
    qsort(l->before, count, sizeof *l->before, compare_numbers);
    for (size_t e = l->first_edges[index]; e < l->first_edges[index + 1]; ++e) {
        overlaps = overlaps || l->edges.edges[e].kind != 0;
    }
    rondo__record_put(l->w->out, (uint64_t)l->infos[index].kind);
    rondo__record_put(l->w->out, overlaps);
    rondo__record_put(l->w->out, count);
    for (size_t i = 0; i < count; ++i) {
        rondo__record_put(l->w->out, l->numbers[index] - l->before[i]);
    }
}

static rondo_status put_node(level *l, size_t index) {
    put_before(l, index);
    switch (l->infos[index].kind) {
        case RONDO__NODE_KERNEL:
        case RONDO__NODE_HOST:
            return put_call(l, index);
        case RONDO__NODE_COPY:
            return put_copy(l, index);
        case RONDO__NODE_FILL:
            return put_fill(l, index);
        case RONDO__NODE_EVENT_RECORD:
        case RONDO__NODE_EVENT_WAIT:
            return put_event(l, index);
        case RONDO__NODE_CHILD:
            return put_inner(l, index, 0, false);
        case RONDO__NODE_CONDITIONAL:
            return put_conditional(l, index);
        default:
            return refuse(l, index,
                          l->infos[index].is_memory
                              ? "it takes memory in stream order, or gives it back"
                              : "its kind cannot be made again");
    }
}

// ---- levels -----------------------------------------------------------------------------------

// The order of the record: predecessors first, otherwise that of the template. False: a node that
// is left out would be reached by none.
static bool is_ready(const level *l, size_t index, const bool *is_done) {
    for (size_t e = l->first_edges[index]; e < l->first_edges[index + 1]; ++e) {
        if (!is_done[l->edges.edges[e].from]) {
            return false;
        }
    }
    return true;
}

static bool is_left_out(const level *l, size_t index) {
    const rondo__node_info *info = &l->infos[index];
    if (info->kind != RONDO__NODE_KERNEL || strcmp(info->name, "rondo_condition") != 0) {
        return info->kind == RONDO__NODE_EMPTY;
    }
    bool has_successor = false;
    bool sets_condition = false;
    for (size_t e = 0; e < l->edges.count; ++e) {
        const bool is_next = l->edges.edges[e].from == index;
        has_successor = has_successor || is_next;
        sets_condition = sets_condition || (is_next && l->infos[l->edges.edges[e].to].kind ==
                                                           RONDO__NODE_CONDITIONAL);
    }
    return sets_condition || (l->is_while && !has_successor);
}

// Before CUDA 12.8 a switch and an else are rows of ifs, whose conditions compare the predicate:
// the third argument of the launch. The record would build ifs that ask for a predicate other than
// zero instead.
static rondo_status check_left_out(const level *l, size_t index) {
    enum { HOW_OFFSET = 16, HOW_EQUAL = 1 };
    rondo__node_image image;
    uint32_t how = HOW_EQUAL;
    if (l->infos[index].kind != RONDO__NODE_KERNEL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(l->recorded->device->backend->read_node(l->recorded, index, &image));
    if (image.argument_bytes >= HOW_OFFSET + sizeof how) {
        memcpy(&how, image.arguments + HOW_OFFSET, sizeof how);
    }
    rondo__node_image_deinit(&image);
    return how != HOW_EQUAL ? RONDO_STATUS_OK
                            : refuse(l, index,
                                     "it is of an else or a switch, which drivers before CUDA 12.8 "
                                     "do not have as one node");
}

static rondo_status check_all_left_out(const level *l) {
    for (size_t i = 0; i < l->count; ++i) {
        if (l->numbers[i] == SIZE_MAX) {
            RETURN_IF_ERROR(check_left_out(l, i));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status number_nodes(level *l) {
    bool *is_done = rondo__calloc(l->count + 1, sizeof *is_done);
    if (is_done == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t done = 0;
    for (size_t first = 0, last = SIZE_MAX; done < l->count && done != last;) {
        last = done;
        for (size_t i = first; i < l->count; ++i) {
            if (!is_done[i] && is_ready(l, i, is_done)) {
                is_done[i] = true;
                ++done;
                l->numbers[i] = is_left_out(l, i) ? SIZE_MAX : l->written;
                l->order[l->written] = i;
                l->written += l->numbers[i] != SIZE_MAX;
            }
            first += first == i && is_done[i];
        }
    }
    rondo__free(is_done);
    return done == l->count ? check_all_left_out(l)
                            : RONDO_FAIL_AS(call, STATE, "the graph was edited while it was saved");
}

static rondo_status read_level(level *l) {
    const rondo__backend *backend = l->recorded->device->backend;
    RETURN_IF_ERROR(backend->count_nodes(l->recorded, &l->count));
    const size_t room = l->count + 2;
    l->infos = rondo__calloc(room, sizeof *l->infos);
    l->first_edges = rondo__calloc(5 * room, sizeof *l->first_edges);
    if (l->infos == NULL || l->first_edges == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    l->numbers = l->first_edges + room;
    l->order = l->numbers + room;
    l->stamps = l->order + room;
    l->before = l->stamps + room;
    for (size_t i = 0; i < l->count; ++i) {
        RETURN_IF_ERROR(backend->describe_node(l->recorded, i, &l->infos[i]));
        l->infos[i].name = l->infos[i].name != NULL ? l->infos[i].name : "";
    }
    RETURN_IF_ERROR(rondo__edge_table_init(l->recorded, &l->edges));
    rondo__edge_table_sort(&l->edges);
    for (size_t e = 0; e < l->edges.count; ++e) {
        ++l->first_edges[l->edges.edges[e].to + 1];
    }
    for (size_t i = 0; i < l->count; ++i) {
        l->first_edges[i + 1] += l->first_edges[i];
    }
    return number_nodes(l);
}

static rondo_status put_level(writing *w, rondo__template *recorded, const char *place,
                              bool is_while) {
    level l = {.w = w, .recorded = recorded, .is_while = is_while};
    (void)snprintf(l.place, sizeof l.place, "%s", place);
    rondo_status status = read_level(&l);
    if (status == RONDO_STATUS_OK) {
        rondo__record_put(w->out, l.written);
    }
    for (size_t i = 0; i < l.written && status == RONDO_STATUS_OK; ++i) {
        status = put_node(&l, l.order[i]);
    }
    rondo__edge_table_deinit(&l.edges);
    rondo__free(l.first_edges);
    rondo__free(l.infos);
    return status;
}

rondo_status rondo__graph_record_write(rondo__template *recorded, rondo__graph_symbols *symbols,
                                       rondo__text *out) {
    writing w = {.symbols = symbols, .out = out};
    if (recorded->device->backend->read_node == NULL) {
        return RONDO_FAIL_AS(call, UNSUPPORTED, "%s does not show what its nodes do",
                             recorded->device->name);
    }
    if (symbols->ranges == NULL) {
        RETURN_IF_ERROR(rondo__graph_symbols_list_ranges(symbols));
    }
    RETURN_IF_ERROR(put_level(&w, recorded, "", false));
    return rondo__text_get_status(out);
}
