// executor/compile/declared.c — see declared.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/declared.h"

#include "base/error.h"
#include "base/log/logging.h"

void rondo__executor_forget_symbols(rondo_executor *executor) {
    const rondo_program *source = executor->main.source;
    for (size_t i = 0; i < source->symbol_count; ++i) {
        executor->ports.symbols[i] = (rondo__bound_symbol){.extent = source->symbols[i].extent};
    }
}

const rondo__bound_symbol *rondo__executor_bind_symbol(rondo_executor *executor, int32_t symbol,
                                                       int64_t extent, const char *owner) {
    rondo__bound_symbol *bound = &executor->ports.symbols[symbol];
    if (bound->extent < 0) {
        *bound = (rondo__bound_symbol){.extent = extent, .owner = owner};
    }
    return bound;
}

static void warn_of_shape(rondo_executor *executor, const rondo__value *declared,
                          const rondo_shape *shape) {
    char have[96];
    char want[128];
    if (!executor->ports.has_warned) {
        executor->ports.has_warned = true;
        RONDO_LOG_WARN_F(
            "output \"%s\" is declared %s, the result is %s; the result counts", declared->name,
            rondo__value_format_shape(executor->main.source, declared, want, sizeof want),
            rondo_shape_format(shape, have, sizeof have));
    }
}

static void warn_of_symbol(rondo_executor *executor, const rondo__value *declared, int32_t symbol,
                           int64_t extent) {
    const rondo__bound_symbol *bound =
        rondo__executor_bind_symbol(executor, symbol, extent, declared->name);
    if (bound->extent != extent && !executor->ports.has_warned) {
        executor->ports.has_warned = true;
        RONDO_LOG_WARN_F("dimension \"%s\" is %lld in \"%s\" and %lld in output \"%s\"",
                         executor->main.source->symbols[symbol].name, (long long)bound->extent,
                         bound->owner != NULL ? bound->owner : "the program's settings",
                         (long long)extent, declared->name);
    }
}

rondo_status rondo__unit_check_output(rondo__unit *unit, size_t index, rondo_dtype dtype,
                                      const rondo_shape *shape) {
    if (unit->depth > 0) {  // a body's outputs are not the program's
        return RONDO_STATUS_OK;
    }
    rondo_executor *executor = unit->executor;
    const rondo_program *source = executor->main.source;
    const rondo__value *declared = &source->values[source->outputs[index]];
    if (declared->constant.dtype != RONDO_DTYPE_NONE) {
        return RONDO_STATUS_OK;
    }
    if (declared->dtype != RONDO_DTYPE_NONE && dtype != declared->dtype) {
        return RONDO_FAIL(BAD_DATA, "output \"%s\" is declared %s, the result is %s",
                          declared->name, rondo_dtype_get_name(declared->dtype),
                          rondo_dtype_get_name(dtype));
    }
    if (!declared->has_shape) {
        return RONDO_STATUS_OK;
    }
    if (declared->rank != shape->rank) {
        warn_of_shape(executor, declared, shape);
        return RONDO_STATUS_OK;
    }
    for (int32_t d = 0; d < declared->rank; ++d) {
        if (declared->dims[d].symbol >= 0) {
            warn_of_symbol(executor, declared, declared->dims[d].symbol, shape->extent[d]);
        } else if (declared->dims[d].number >= 0 && declared->dims[d].number != shape->extent[d]) {
            warn_of_shape(executor, declared, shape);
        }
    }
    return RONDO_STATUS_OK;
}
