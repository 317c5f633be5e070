// executor/feeds.c — named feeds and fetches: every mistake in them is told apart and told in full.
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/plan.h"

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

static int64_t find_name(const rondo_program *program, const int32_t *values, size_t count,
                         const char *name) {
    for (size_t i = 0; i < count; ++i) {
        if (name != NULL && strcmp(program->values[values[i]].name, name) == 0) {
            return (int64_t)i;
        }
    }
    return -1;
}

// "[batch=4, 3, 224]": a symbol with the number it was given, "?" where the model says nothing.
static const char *format_declared(const rondo_program *program, const rondo__value *value,
                                   char *buffer, size_t bytes) {
    size_t used = (size_t)snprintf(buffer, bytes, "[");
    for (int32_t d = 0; d < value->rank && used < bytes; ++d) {
        const rondo__dimension *dim = &value->dims[d];
        int written;
        if (dim->number >= 0) {
            written = snprintf(buffer + used, bytes - used, "%s%lld", d > 0 ? ", " : "",
                               (long long)dim->number);
        } else if (dim->symbol >= 0 && program->symbols[dim->symbol].extent >= 0) {
            const rondo__symbol *symbol = &program->symbols[dim->symbol];
            written = snprintf(buffer + used, bytes - used, "%s%.40s=%lld", d > 0 ? ", " : "",
                               symbol->name, (long long)symbol->extent);
        } else {
            written = snprintf(buffer + used, bytes - used, "%s%.40s", d > 0 ? ", " : "",
                               dim->symbol >= 0 ? program->symbols[dim->symbol].name : "?");
        }
        used += written > 0 ? (size_t)written : 0;
    }
    if (used < bytes) {
        (void)snprintf(buffer + used, bytes - used, "]");
    }
    return buffer;
}

static rondo_status check_feed(const rondo_executor *executor, size_t index,
                               const rondo_tensor *tensor) {
    const rondo_program *program = executor->source;
    const rondo__value *value = &program->values[program->inputs[index]];
    char have[96];
    char want[128];
    int64_t count = rondo_shape_get_count(&tensor->shape);
    if (count < 0 || (count > 0 && tensor->data == NULL)) {
        return RONDO_FAIL(INVALID, "feed \"%s\": %s", value->name,
                          count < 0 ? "its shape is not valid" : "its data is NULL");
    }
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
                          format_declared(program, value, want, sizeof want));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_order_feeds(const rondo_executor *executor, const rondo_binding *feeds,
                                         size_t feed_count, rondo_tensor *out_tensors) {
    const rondo_program *program = executor->source;
    char names[160];
    for (size_t f = 0; f < feed_count; ++f) {
        int64_t index = find_name(program, program->inputs, program->input_count, feeds[f].name);
        if (index < 0) {
            return RONDO_FAIL(
                INVALID, "the model has no input \"%.60s\"; it has %s",
                feeds[f].name != NULL ? feeds[f].name : "(null)",
                list_names(program, program->inputs, program->input_count, names, sizeof names));
        }
        if (out_tensors[index].dtype != RONDO_DTYPE_NONE) {
            return RONDO_FAIL(INVALID, "input \"%.60s\" is fed twice", feeds[f].name);
        }
        RETURN_IF_ERROR(check_feed(executor, (size_t)index, &feeds[f].tensor));
        out_tensors[index] = feeds[f].tensor;
    }
    for (size_t i = 0; i < program->input_count; ++i) {
        if (out_tensors[i].dtype == RONDO_DTYPE_NONE) {
            return RONDO_FAIL(INVALID, "input \"%s\" is not fed",
                              program->values[program->inputs[i]].name);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status order_fetches(const rondo_executor *executor, const rondo_binding *fetches,
                                  size_t fetch_count, rondo_tensor *results, bool *wants) {
    const rondo_program *program = executor->source;
    char names[160];
    for (size_t f = 0; f < fetch_count; ++f) {
        int64_t index =
            find_name(program, program->outputs, program->output_count, fetches[f].name);
        if (index < 0) {
            return RONDO_FAIL(
                INVALID, "the model has no output \"%.60s\"; it has %s",
                fetches[f].name != NULL ? fetches[f].name : "(null)",
                list_names(program, program->outputs, program->output_count, names, sizeof names));
        }
        if (wants[index]) {
            return RONDO_FAIL(INVALID, "output \"%.60s\" is fetched twice", fetches[f].name);
        }
        wants[index] = true;
        results[index] = fetches[f].tensor;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_run(rondo_executor *executor, const rondo_binding *feeds,
                                size_t feed_count, rondo_binding *fetches, size_t fetch_count) {
    if (executor == NULL || (feeds == NULL && feed_count > 0) ||
        (fetches == NULL && fetch_count > 0)) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          executor == NULL                  ? "executor"
                          : feeds == NULL && feed_count > 0 ? "feeds"
                                                            : "fetches");
    }
    const rondo_program *program = executor->source;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo_tensor *tensors = rondo__calloc(program->input_count + 1, sizeof *tensors);
    rondo_tensor *results = rondo__calloc(program->output_count + 1, sizeof *results);
    bool *wants = rondo__calloc(program->output_count + 1, sizeof *wants);
    if (tensors == NULL || results == NULL || wants == NULL) {
        goto free_lists;
    }
    status = rondo__executor_order_feeds(executor, feeds, feed_count, tensors);
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    status = order_fetches(executor, fetches, fetch_count, results, wants);
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    status = rondo__executor_run_tensors(executor, tensors, results, wants);
    for (size_t f = 0; status == RONDO_STATUS_OK && f < fetch_count; ++f) {
        int64_t index =
            find_name(program, program->outputs, program->output_count, fetches[f].name);
        fetches[f].tensor = results[index];
    }

free_lists:
    rondo__free(tensors);
    rondo__free(results);
    rondo__free(wants);
    return status;
}
