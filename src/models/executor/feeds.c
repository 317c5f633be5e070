// executor/feeds.c — see feeds.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/feeds.h"

#include <stdio.h>
#include <string.h>

#include "backend/check.h"
#include "base/error.h"
#include "base/log/hook.h"
#include "executor/compile/declared.h"
#include "executor/run/put_states.h"
#include "executor/run/self_check.h"
#include "executor/run/settle.h"
#include "executor/run/transfer.h"
#include "executor/state/limits.h"
#include "executor/state/start_states.h"
#include "executor/variants.h"
#include "tensor/elements.h"

// "\"a\", \"b\" and \"c\"", cut to the buffer.
static const char *list_names(const rondo_program *program, const int32_t *values, size_t count,
                              char *buffer, size_t bytes) {
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < count && used + 1 < bytes; ++i) {
        int written = snprintf(buffer + used, bytes - used, "%s\"%s\"", i > 0 ? ", " : "",
                               program->values[values[i]].name);
        used += written > 0 ? (size_t)written : 0;
    }
    return buffer;
}

// Finds an input by name: its index, or that of an optional input behind the others; -1: no such.
static int64_t find_input(const rondo_executor *executor, const char *name) {
    const int32_t value =
        name != NULL ? rondo__program_find_value(executor->main.source, name) : RONDO__VALUE_NONE;
    return value >= 0 ? executor->ports.input_of[value] : -1;
}

// What an input is declared as, by the index of find_input.
static const rondo__value *get_declared(const rondo_program *program, size_t index) {
    return index < program->input_count
               ? &program->values[program->inputs[index]]
               : &program->optionals[index - program->input_count].declared;
}

// Strings need addresses, and tensors within sequences are looked at like tensors.
static rondo_status check_elements(const char *name, const rondo_tensor *tensor) {
    int64_t count = rondo_shape_get_count(&tensor->shape);
    if (count < 0 || (count > 0 && tensor->data == NULL)) {
        return RONDO_FAIL(INVALID, "feed \"%s\": %s", name,
                          count < 0 ? "its shape is not valid" : "its data is NULL");
    }
    for (int64_t i = 0; tensor->dtype == RONDO_DTYPE_STRING && i < count; ++i) {
        const rondo_string *string = (const rondo_string *)tensor->data + i;
        if (string->data == NULL && string->size > 0) {
            return RONDO_FAIL(INVALID, "feed \"%s\": string %lld has %zu bytes, but no address",
                              name, (long long)i, string->size);
        }
    }
    for (int64_t i = 0; rondo__dtype_is_nested(tensor->dtype) && i < count; ++i) {
        const rondo_tensor *item = (const rondo_tensor *)tensor->data + i;
        bool is_right =
            tensor->shape.rank == 1 &&
            (rondo__dtype_is_plain(item->dtype) || item->dtype == RONDO_DTYPE_STRING ||
             (item->dtype == RONDO_DTYPE_SEQUENCE && tensor->dtype == RONDO_DTYPE_OPTIONAL));
        if (!is_right || (tensor->dtype == RONDO_DTYPE_OPTIONAL && count > 1)) {
            return RONDO_FAIL(
                INVALID, "feed \"%s\": no valid %s; make it with rondo_tensor_init_%s", name,
                rondo_dtype_get_name(tensor->dtype), rondo_dtype_get_name(tensor->dtype));
        }
        RETURN_IF_ERROR(check_elements(name, item));
    }
    return RONDO_STATUS_OK;
}

// The items of a sequence or optional must have the type that the model declares.
static rondo_status check_items(const char *name, const rondo_tensor *tensor,
                                const rondo_dtype *declared, size_t depth) {
    for (size_t i = 0; depth < 2 && declared[depth] != RONDO_DTYPE_NONE; ++i) {
        const rondo_tensor *item = rondo_tensor_get_item(tensor, i);
        if (item == NULL) {
            break;
        }
        if (item->dtype != declared[depth]) {
            return RONDO_FAIL(INVALID, "feed \"%s\" holds %s, the model takes %s", name,
                              rondo_dtype_get_name(item->dtype),
                              rondo_dtype_get_name(declared[depth]));
        }
        RETURN_IF_ERROR(check_items(name, item, declared, depth + 1));
    }
    return RONDO_STATUS_OK;
}

// A feed lies in host memory or on the executor's device.
static rondo_status check_place(const rondo_executor *executor, const char *name,
                                const rondo_tensor *tensor) {
    if (rondo_tensor_is_on_host(tensor)) {
        return RONDO_STATUS_OK;
    }
    if (tensor->device != executor->device) {
        return RONDO_FAIL(INVALID,
                          "feed \"%s\" lies on %s, the executor runs on %s; copy it there, or to "
                          "host memory, with rondo_tensor_copy",
                          name, rondo_device_get_name(tensor->device),
                          rondo_device_get_name(executor->device));
    }
    return tensor->dtype == RONDO_DTYPE_NONE || rondo__dtype_is_plain(tensor->dtype)
               ? RONDO_STATUS_OK
               : RONDO_FAIL(INVALID,
                            "feed \"%s\" is a %s, which is always in host memory, not on %s", name,
                            rondo_dtype_get_name(tensor->dtype),
                            rondo_device_get_name(tensor->device));
}

static rondo_status check_shape(const rondo_program *program, const rondo__value *value,
                                const rondo_tensor *tensor) {
    char have[96];
    char want[128];
    if (value->dtype != RONDO_DTYPE_NONE && tensor->dtype != value->dtype) {
        return RONDO_FAIL(INVALID, "feed \"%s\" is %s, the model takes %s", value->name,
                          rondo_dtype_get_name(tensor->dtype), rondo_dtype_get_name(value->dtype));
    }
    bool fits = !value->has_shape || value->rank == tensor->shape.rank;
    for (int32_t d = 0; fits && value->has_shape && d < value->rank; ++d) {
        const rondo__dimension *dim = &value->dims[d];
        int64_t extent = dim->number >= 0   ? dim->number
                         : dim->symbol >= 0 ? program->symbols[dim->symbol].extent
                                            : -1;
        fits = extent < 0 || extent == tensor->shape.extent[d];
    }
    if (!fits) {
        return RONDO_FAIL(INVALID, "feed \"%s\" has shape %s, the model takes %s", value->name,
                          rondo_shape_format(&tensor->shape, have, sizeof have),
                          rondo__value_format_shape(program, value, want, sizeof want));
    }
    return RONDO_STATUS_OK;
}

// A symbol of the model is one number in one run, in whichever inputs it stands.
static rondo_status bind_symbols(rondo__unit *unit, const rondo_tensor *tensors) {
    const rondo_program *program = unit->source;
    const size_t count = program->input_count + program->optional_count;
    rondo__executor_forget_symbols(unit->executor);
    for (size_t i = 0; i < count; ++i) {
        const rondo__value *declared = get_declared(program, i);
        if (tensors[i].dtype == RONDO_DTYPE_NONE || !declared->has_shape) {
            continue;
        }
        for (int32_t d = 0; d < declared->rank; ++d) {
            const int32_t symbol = declared->dims[d].symbol;
            const int64_t extent = tensors[i].shape.extent[d];
            if (symbol < 0) {
                continue;
            }
            const rondo__bound_symbol *bound =
                rondo__executor_bind_symbol(unit->executor, symbol, extent, declared->name);
            if (bound->extent != extent) {
                return RONDO_FAIL(INVALID,
                                  "dimension \"%.40s\" is %lld in feed \"%.60s\" and %lld in feed "
                                  "\"%.60s\"; it stands for one number",
                                  program->symbols[symbol].name, (long long)bound->extent,
                                  bound->owner != NULL ? bound->owner : "", (long long)extent,
                                  declared->name);
            }
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_find_input(const rondo_executor *executor, const char *name,
                                        size_t *out_index) {
    const rondo_program *program = executor->main.source;
    char names[160];
    const int64_t index = find_input(executor, name);
    if (index < 0) {
        return RONDO_FAIL(
            INVALID, "the model has no input \"%.60s\"; it has %s", name != NULL ? name : "(null)",
            list_names(program, program->inputs, program->input_count, names, sizeof names));
    }
    *out_index = (size_t)index;
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_check_feed(const rondo_executor *executor, size_t index,
                                        const rondo_tensor *tensor) {
    const rondo__value *declared = get_declared(executor->main.source, index);
    RETURN_IF_ERROR(check_place(executor, declared->name, tensor));
    RETURN_IF_ERROR(check_elements(declared->name, tensor));
    RETURN_IF_ERROR(check_items(declared->name, tensor, declared->item_dtype, 0));
    return check_shape(executor->main.source, declared, tensor);
}

rondo_status rondo__executor_check_shape(const rondo_executor *executor, size_t index,
                                         const rondo_tensor *tensor) {
    const rondo__value *declared = get_declared(executor->main.source, index);
    RETURN_IF_ERROR(check_place(executor, declared->name, tensor));
    if (rondo_shape_get_count(&tensor->shape) < 0) {
        return RONDO_FAIL(INVALID, "feed \"%s\": its shape is not valid", declared->name);
    }
    return check_shape(executor->main.source, declared, tensor);
}

rondo_status rondo__executor_complete_feeds(rondo_executor *executor, rondo_tensor *tensors) {
    const rondo_program *program = executor->main.source;
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__state *state = rondo__state_find(executor, i);
        if (tensors[i].dtype == RONDO_DTYPE_NONE && state != NULL) {
            RETURN_IF_ERROR(rondo__state_get_feed(executor, state, &tensors[i]));
        }
        if (tensors[i].dtype == RONDO_DTYPE_NONE) {
            return RONDO_FAIL(INVALID, "input \"%s\" is not fed%s",
                              program->values[program->inputs[i]].name,
                              state != NULL ? ", and its state has no value yet" : "");
        }
    }
    return bind_symbols(&executor->main, tensors);
}

rondo_status rondo__executor_order_feeds(rondo_executor *executor, const rondo_binding *feeds,
                                         size_t feed_count, rondo_tensor *out_tensors) {
    for (size_t f = 0; f < feed_count; ++f) {
        size_t index;
        RETURN_IF_ERROR(rondo__executor_find_input(executor, feeds[f].name, &index));
        if (out_tensors[index].dtype != RONDO_DTYPE_NONE) {
            return RONDO_FAIL(INVALID, "input \"%.60s\" is fed twice", feeds[f].name);
        }
        RETURN_IF_ERROR(rondo__executor_check_feed(executor, index, &feeds[f].tensor));
        out_tensors[index] = feeds[f].tensor;
    }
    return rondo__executor_complete_feeds(executor, out_tensors);
}

// The next position of an output in the list of outputs that no fetch has taken: a model may list
// an output more than once. -1: there is none.
static int64_t find_free_output(const rondo_executor *executor, int32_t value, const bool *wants) {
    const rondo_program *program = executor->main.source;
    int64_t index = value >= 0 ? executor->ports.output_of[value] : -1;
    for (; index >= 0 && (size_t)index < program->output_count; ++index) {
        if (program->outputs[index] == value && (wants == NULL || !wants[index])) {
            return index;
        }
    }
    return -1;
}

rondo_status rondo__executor_find_output(const rondo_executor *executor, const char *name,
                                         const bool *taken, size_t *out_index) {
    const rondo_program *program = executor->main.source;
    char names[160];
    const int32_t value =
        name != NULL ? rondo__program_find_value(program, name) : RONDO__VALUE_NONE;
    const int64_t index = find_free_output(executor, value, taken);
    if (index < 0 && value >= 0 && executor->ports.output_of[value] >= 0) {
        return RONDO_FAIL(INVALID, "output \"%.60s\" is fetched twice", name);
    }
    if (index < 0) {
        return RONDO_FAIL(
            INVALID, "the model has no output \"%.60s\"; it has %s", name != NULL ? name : "(null)",
            list_names(program, program->outputs, program->output_count, names, sizeof names));
    }
    if (rondo__state_find_split(executor, (size_t)index) != NULL) {
        return RONDO_FAIL(
            UNSUPPORTED,
            "each rank makes its part of output \"%.60s\" alone; fetch nothing of it, "
            "and call rondo_executor_gather_variables before the variable is "
            "read",
            name);
    }
    *out_index = (size_t)index;
    return RONDO_STATUS_OK;
}

// Sets places[f] to where fetch `f` stands among the outputs.
static rondo_status order_fetches(const rondo_executor *executor, const rondo_binding *fetches,
                                  size_t fetch_count, rondo_tensor *results, bool *wants,
                                  size_t *places) {
    for (size_t f = 0; f < fetch_count; ++f) {
        size_t index;
        RETURN_IF_ERROR(rondo__executor_find_output(executor, fetches[f].name, wants, &index));
        wants[index] = true;
        results[index] = fetches[f].tensor;
        places[f] = index;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_order_call(rondo_executor *executor, const rondo_binding *feeds,
                                        size_t feed_count, const rondo_binding *fetches,
                                        size_t fetch_count, const char *call) {
    if (executor == NULL || (feeds == NULL && feed_count > 0) ||
        (fetches == NULL && fetch_count > 0)) {
        return RONDO_FAIL_AS(call, INVALID, "%s is NULL",
                             executor == NULL                  ? "executor"
                             : feeds == NULL && feed_count > 0 ? "feeds"
                                                               : "fetches");
    }
    RETURN_IF_ERROR(rondo__check_process(executor->device, call));
    const rondo_program *program = executor->main.source;
    const rondo__call_lists *lists = &executor->ports.lists;
    const size_t input_count = program->input_count + program->optional_count;
    memset(lists->feeds, 0, input_count * sizeof *lists->feeds);
    memset(lists->results, 0, program->output_count * sizeof *lists->results);
    memset(lists->wants, 0, program->output_count * sizeof *lists->wants);
    RETURN_IF_ERROR(rondo__executor_order_feeds(executor, feeds, feed_count, lists->feeds));
    return order_fetches(executor, fetches, fetch_count, lists->results, lists->wants,
                         lists->places);
}
