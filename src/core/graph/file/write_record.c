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
#include "graph/file/memory_nodes.h"
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
    size_t *stamps;        // which node a search met this one for
    size_t *before;        // what the search found
    size_t *next_in_row;   // of an if that stands with others for an else or a switch; or SIZE_MAX
    bool *sets_condition;  // launches that the call which makes a conditional node makes
} level;

typedef struct writing {
    rondo__graph_symbols *symbols;
    rondo__text *out;
    rondo__memory_nodes memory;  // of the graph itself: nodes inside others take none
    size_t top;                  // the graph's node that is being written, or has what is
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
                         info->is_memory ? "memory" : rondo__node_kind_get_name(info->kind),
                         info->name[0] != '\0' ? " " : "", info->name, why);
}

// ---- addresses --------------------------------------------------------------------------------

// Memory of a symbol, or that a node takes: those are numbered behind the symbols.
typedef struct memory_place {
    size_t number;
    uint64_t offset, byte_count;  // of the address in the memory; of the memory
    char name[72];
} memory_place;

// *out_place, or `number` SIZE_MAX: the address is of no memory that is known.
static rondo_status find_place(level *l, size_t index, const void *address,
                               memory_place *out_place) {
    writing *w = l->w;
    size_t found = 0;
    *out_place = (memory_place){.number = SIZE_MAX};
    for (int takes_end = 0; takes_end < 2; ++takes_end) {
        const rondo__memory_result result = rondo__memory_nodes_find(
            &w->memory, w->top, (uintptr_t)address, takes_end != 0, &found);
        if (result == RONDO__MEMORY_LIVE) {
            const rondo__taken_memory *memory = &w->memory.list[found];
            *out_place = (memory_place){.number = w->symbols->count + memory->number,
                                        .offset = (uintptr_t)address - memory->begin,
                                        .byte_count = memory->byte_count};
            (void)snprintf(out_place->name, sizeof out_place->name, "node %zu", memory->taker);
            return RONDO_STATUS_OK;
        }
        if (result == RONDO__MEMORY_NOT_LIVE && takes_end == 0) {
            return refuse(l, index,
                          "it uses memory that node %zu takes, and is not behind that node and "
                          "before the one that gives the memory back: order them in the capture",
                          w->memory.list[found].taker);
        }
        const size_t symbol = takes_end == 0
                                  ? rondo__graph_symbols_find(w->symbols, RONDO_SYMBOL_MEMORY,
                                                              address, &out_place->offset)
                                  : SIZE_MAX;
        if (symbol != SIZE_MAX) {
            const rondo_graph_symbol *memory = &w->symbols->list[symbol];
            out_place->number = symbol;
            out_place->byte_count = memory->byte_count;
            (void)snprintf(out_place->name, sizeof out_place->name, "%.60s", memory->name);
            return RONDO_STATUS_OK;
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status put_memory(level *l, size_t index, const char *what, const void *address,
                               uint64_t byte_count) {
    memory_place at;
    RETURN_IF_ERROR(find_place(l, index, address, &at));
    if (at.number == SIZE_MAX) {
        return refuse(l, index, "its %s %p is no symbol's memory", what, address);
    }
    if (byte_count > at.byte_count - at.offset) {
        return refuse(l, index, "its %s reaches %" PRIu64 " bytes beyond the memory of %.60s", what,
                      at.offset + byte_count - at.byte_count, at.name);
    }
    rondo__record_put(l->w->out, at.number);
    rondo__record_put(l->w->out, at.offset);
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
    memory_place at;
    memcpy(&word, image->arguments + offset, sizeof word);
    RETURN_IF_ERROR(find_place(r->l, image->index, (const void *)(uintptr_t)word, &at));
    if (at.number == SIZE_MAX && !rondo__graph_symbols_is_address(r->l->w->symbols, word)) {
        return RONDO_STATUS_OK;
    }
    char name[72];
    if (parameter != SIZE_MAX) {
        (void)snprintf(name, sizeof name, "parameter %zu (byte %zu of the arguments)", parameter,
                       offset);
    } else {
        (void)snprintf(name, sizeof name, "byte %zu of its arguments", offset);
    }
    if (at.number == SIZE_MAX) {
        return refuse(r->l, image->index, "%s holds 0x%" PRIx64 ", an address of no symbol", name,
                      word);
    }
    const rondo__parameter *known = parameter != SIZE_MAX ? &image->parameters[parameter] : NULL;
    if (known != NULL && known->bytes == TENSOR_MAP_BYTES &&
        known->offset % TENSOR_MAP_ALIGNMENT == 0) {
        return refuse(r->l, image->index, "%s may be a tensor map, which only the driver makes",
                      name);
    }
    memset(image->arguments + offset, 0, sizeof word);
    rondo__record_put(&r->list, offset);
    rondo__record_put(&r->list, at.number);
    rondo__record_put(&r->list, at.offset);
    ++r->count;
    return RONDO_STATUS_OK;
}

// A parameter of less than eight bytes is no address; where the layout is not known, each word may
// be one.
static rondo_status find_addresses(relocations *r) {
    const rondo__node_image *image = r->image;
    for (size_t i = 0; i < image->parameter_count; ++i) {
        const rondo__parameter *known = &image->parameters[i];
        for (size_t at = (known->offset + WORD - 1) / WORD * WORD;
             at + WORD <= known->offset + known->bytes; at += WORD) {
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

// The driver knows nothing of the memory that nodes take.
static bool is_taken(const level *l, const void *address) {
    size_t found = 0;
    return rondo__memory_nodes_find(&l->w->memory, l->w->top, (uintptr_t)address, false, &found) ==
           RONDO__MEMORY_LIVE;
}

static rondo_status put_copy(level *l, size_t index) {
    const rondo__node_info *info = &l->infos[index];
    const bool is_unknown = (info->is_source_unknown && !is_taken(l, info->source)) ||
                            (info->is_destination_unknown && !is_taken(l, info->destination));
    if (info->height > 1 || info->depth > 1 || is_unknown) {
        return refuse(l, index, "%s",
                      is_unknown ? "the driver does not tell what memory it copies"
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

// Taken: bytes and alignment. Given back: what, by its number.
static rondo_status put_memory_node(level *l, size_t index) {
    rondo__memory_nodes *nodes = &l->w->memory;
    const bool is_inside = l->place[0] != '\0' || nodes->rows == NULL;
    rondo__taken_memory *memory = NULL;
    for (size_t i = 0; i < nodes->count && !is_inside; ++i) {
        memory = nodes->list[i].taker == index ? &nodes->list[i] : memory;
    }
    if (is_inside) {
        return refuse(l, index, "it takes memory in stream order, or gives it back");
    }
    if (memory != NULL && !memory->has_giver) {
        return refuse(l, index,
                      "it takes %" PRIu64
                      " bytes that no node gives back, and the loading program "
                      "could not know where they lie; free them in the capture, or take them "
                      "before it, as the memory of a symbol",
                      memory->byte_count);
    }
    if (memory != NULL) {
        memory->number = nodes->written++;
        rondo__record_put(l->w->out, 1);
        rondo__record_put(l->w->out, memory->byte_count);
        rondo__record_put(l->w->out, rondo__graph_symbols_get_alignment(memory->begin));
        return RONDO_STATUS_OK;
    }
    const size_t given = nodes->given_back[index];
    if (given == SIZE_MAX || nodes->list[given].is_given_back) {
        return refuse(l, index,
                      "it gives back memory %p that no node before it has taken; free memory from "
                      "outside of the graph behind its replays",
                      (void *)nodes->given[index]);
    }
    nodes->list[given].is_given_back = true;
    rondo__record_put(l->w->out, 0);
    rondo__record_put(l->w->out, nodes->list[given].number);
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

// The branches of one node, or of a row.
static rondo_status put_branches(level *l, size_t index, size_t kind) {
    const rondo__node_info *info = &l->infos[index];
    size_t node = index;
    for (uint32_t branch = 0; branch < (info->row_count > 0 ? info->row_count : info->branch_count);
         ++branch) {
        if (node == SIZE_MAX) {
            return refuse(l, index, "it is of an else or a switch of which nodes are missing");
        }
        RETURN_IF_ERROR(
            put_inner(l, node, info->row_count > 0 ? 0 : branch, kind == RONDO_SCOPE_WHILE));
        node = info->row_count > 0 ? l->next_in_row[node] : node;
    }
    return RONDO_STATUS_OK;
}

static rondo_status put_conditional(level *l, size_t index) {
    static const char *const names[] = {"if", "if_else", "switch", "while"};
    const rondo__node_info *info = &l->infos[index];
    size_t kind = info->row_count > 0 ? (size_t)info->row_kind : 0;
    while (info->row_count == 0 && kind < sizeof names / sizeof names[0] &&
           strcmp(info->name, names[kind]) != 0) {
        ++kind;
    }
    if (info->branch_count == 0 || info->row_index > 0 || kind == sizeof names / sizeof names[0]) {
        return refuse(l, index, "Rondo did not record it");
    }
    rondo__record_put(l->w->out, kind);
    rondo__record_put(l->w->out, info->row_count > 0 ? info->row_count : info->branch_count);
    RETURN_IF_ERROR(put_memory(l, index, "predicate", info->predicate, sizeof(uint32_t)));
    return put_branches(l, index, kind);
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
    l->w->top = l->place[0] == '\0' ? index : l->w->top;
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
            return l->infos[index].is_memory ? put_memory_node(l, index)
                                             : refuse(l, index, "its kind cannot be made again");
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

static bool has_successor(const level *l, size_t index) {
    bool has = false;
    for (size_t e = 0; e < l->edges.count; ++e) {
        has = has || l->edges.edges[e].from == index;
    }
    return has;
}

static bool is_condition(const level *l, size_t index) {
    return l->infos[index].kind == RONDO__NODE_KERNEL &&
           strcmp(l->infos[index].name, "rondo_condition") == 0;
}

// SIZE_MAX: none, or several.
static size_t get_predecessor(const level *l, size_t index) {
    return l->first_edges[index + 1] == l->first_edges[index] + 1
               ? l->edges.edges[l->first_edges[index]].from
               : SIZE_MAX;
}

// The launches that set the conditions of a node, or of a row of them: one for each node, all
// before the first.
static void mark_conditions(level *l, size_t index) {
    const rondo__node_info *info = &l->infos[index];
    size_t before = get_predecessor(l, index);
    const uint32_t count = info->row_count > 0 ? info->row_count : 1;
    for (uint32_t i = 0; i < count && before != SIZE_MAX && is_condition(l, before); ++i) {
        l->sets_condition[before] = true;
        before = get_predecessor(l, before);
    }
}

static void mark_all_conditions(level *l) {
    for (size_t i = 0; i < l->count; ++i) {
        if (l->infos[i].kind == RONDO__NODE_CONDITIONAL && l->infos[i].row_index == 0) {
            mark_conditions(l, i);
        }
        if (l->is_while && is_condition(l, i) && !has_successor(l, i)) {
            l->sets_condition[i] = true;
        }
    }
}

static bool is_left_out(const level *l, size_t index) {
    return l->infos[index].kind == RONDO__NODE_EMPTY || l->sets_condition[index];
}

// Of the rest of a row, whose first node is the one of the record; false: it is none, or not behind
// the node before it.
static bool join_row(level *l, size_t index) {
    const rondo__node_info *info = &l->infos[index];
    const size_t before = get_predecessor(l, index);
    if (info->row_index == 0 || before == SIZE_MAX || l->next_in_row[before] != SIZE_MAX ||
        l->infos[before].row_count != info->row_count ||
        l->infos[before].row_index + 1 != info->row_index ||
        l->infos[before].row_kind != info->row_kind ||
        l->infos[before].predicate != info->predicate) {
        return false;
    }
    l->next_in_row[before] = index;
    l->numbers[index] = l->numbers[before];
    return true;
}

// Nothing else comes behind a node of a row but its last.
static rondo_status check_rows(const level *l) {
    for (size_t e = 0; e < l->edges.count; ++e) {
        const size_t from = l->edges.edges[e].from;
        const rondo__node_info *info = &l->infos[from];
        if (info->row_count > 0 && info->row_index + 1 < info->row_count &&
            l->next_in_row[from] != l->edges.edges[e].to) {
            return refuse(l, from,
                          "it is of an else or a switch, which drivers before CUDA 12.8 do not "
                          "have as one node, and was edited");
        }
    }
    return RONDO_STATUS_OK;
}

static void number_node(level *l, size_t index) {
    if (join_row(l, index)) {
        return;
    }
    l->numbers[index] = is_left_out(l, index) ? SIZE_MAX : l->written;
    l->order[l->written] = index;
    l->written += l->numbers[index] != SIZE_MAX;
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
                if (l->place[0] == '\0') {
                    rondo__memory_nodes_note(&l->w->memory, i, l->edges.edges, l->first_edges[i],
                                             l->first_edges[i + 1]);
                }
                number_node(l, i);
            }
            first += first == i && is_done[i];
        }
    }
    rondo__free(is_done);
    return done == l->count ? check_rows(l)
                            : RONDO_FAIL_AS(call, STATE, "the graph was edited while it was saved");
}

// What a node takes is no symbol's: the memory is new in each process.
static rondo_status check_symbols(const level *l) {
    const rondo__memory_nodes *nodes = &l->w->memory;
    for (size_t i = 0; i < nodes->count; ++i) {
        for (size_t k = 0; k < l->w->symbols->count; ++k) {
            const rondo_graph_symbol *symbol = &l->w->symbols->list[k];
            const uintptr_t begin = (uintptr_t)symbol->address;
            if (symbol->kind == RONDO_SYMBOL_MEMORY &&
                begin < nodes->list[i].begin + nodes->list[i].byte_count &&
                nodes->list[i].begin < begin + symbol->byte_count) {
                return RONDO_FAIL_AS(call, INVALID,
                                     "symbol %.60s is memory that node %zu of the graph takes; "
                                     "leave that symbol out",
                                     symbol->name, nodes->list[i].taker);
            }
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_level(level *l) {
    const rondo__backend *backend = l->recorded->device->backend;
    RETURN_IF_ERROR(backend->count_nodes(l->recorded, &l->count));
    const size_t room = l->count + 2;
    l->infos = rondo__calloc(room, sizeof *l->infos);
    l->first_edges = rondo__calloc(6 * room, sizeof *l->first_edges);
    l->sets_condition = rondo__calloc(room, sizeof *l->sets_condition);
    if (l->infos == NULL || l->first_edges == NULL || l->sets_condition == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    l->numbers = l->first_edges + room;
    l->order = l->numbers + room;
    l->stamps = l->order + room;
    l->before = l->stamps + room;
    l->next_in_row = l->before + room;
    for (size_t i = 0; i < l->count; ++i) {
        RETURN_IF_ERROR(backend->describe_node(l->recorded, i, &l->infos[i]));
        l->infos[i].name = l->infos[i].name != NULL ? l->infos[i].name : "";
        l->next_in_row[i] = SIZE_MAX;
    }
    RETURN_IF_ERROR(rondo__edge_table_init(l->recorded, &l->edges));
    rondo__edge_table_sort(&l->edges);
    for (size_t e = 0; e < l->edges.count; ++e) {
        ++l->first_edges[l->edges.edges[e].to + 1];
    }
    for (size_t i = 0; i < l->count; ++i) {
        l->first_edges[i + 1] += l->first_edges[i];
    }
    if (l->place[0] == '\0') {
        RETURN_IF_ERROR(rondo__memory_nodes_init(l->recorded, l->infos, l->count, &l->w->memory));
        RETURN_IF_ERROR(check_symbols(l));
    }
    mark_all_conditions(l);
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
    rondo__free(l.sets_condition);
    rondo__free(l.first_edges);
    rondo__free(l.infos);
    return status;
}

rondo_status rondo__graph_record_write(rondo__template *recorded, rondo__graph_symbols *symbols,
                                       rondo__text *out, bool *out_takes_memory) {
    writing w = {.symbols = symbols, .out = out};
    *out_takes_memory = false;
    if (recorded->device->backend->read_node == NULL) {
        return RONDO_FAIL_AS(call, UNSUPPORTED, "%s does not show what its nodes do",
                             recorded->device->name);
    }
    if (symbols->ranges == NULL) {
        RETURN_IF_ERROR(rondo__graph_symbols_list_ranges(symbols));
    }
    rondo_status status = put_level(&w, recorded, "", false);
    if (status == RONDO_STATUS_OK) {
        status = rondo__text_get_status(out);
    }
    *out_takes_memory = w.memory.written > 0;
    rondo__memory_nodes_deinit(&w.memory);
    return status;
}
