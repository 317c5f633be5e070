// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/dnnl_kernel.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/thread_count.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd.h"

rondo_status rondo__dnnl_convert_status(dnnl_status_t status, const char *call) {
    switch (status) {
        case dnnl_success:
            return RONDO_STATUS_OK;
        case dnnl_unimplemented:
        case dnnl_invalid_arguments:
            return RONDO_STATUS_UNSUPPORTED;
        case dnnl_out_of_memory:
            return RONDO_FAIL(NO_MEMORY, "oneDNN ran out of memory in %s", call);
        default:
            return RONDO_FAIL(INTERNAL, "oneDNN status %d in %s", (int)status, call);
    }
}

static atomic_size_t holder_count;

void rondo__dnnl_hold_cache(void) {
    atomic_fetch_add(&holder_count, 1);
}

void rondo__dnnl_release_cache(void) {
    int capacity = 0;
    if (atomic_fetch_sub(&holder_count, 1) == 1 &&
        dnnl_get_primitive_cache_capacity(&capacity) == dnnl_success && capacity > 0) {
        (void)dnnl_set_primitive_cache_capacity(0);
        (void)dnnl_set_primitive_cache_capacity(capacity);
    }
}

static void deinit_kernel(rondo__host_kernel *head) {
    rondo__dnnl_kernel *kernel = (rondo__dnnl_kernel *)head;
    for (int i = 0; i < kernel->slot_count; ++i) {
        (void)dnnl_memory_destroy(kernel->arguments[i].memory);
    }
    if (kernel->primitive != NULL) {
        (void)dnnl_primitive_destroy(kernel->primitive);
    }
    if (kernel->description != NULL) {
        (void)dnnl_primitive_desc_destroy(kernel->description);
    }
    if (kernel->stream != NULL) {
        (void)dnnl_stream_destroy(kernel->stream);
    }
    if (kernel->engine != NULL) {
        (void)dnnl_engine_destroy(kernel->engine);
    }
    rondo__dnnl_release_cache();
}

// Puts the addend where the sum post-op reads it.
static void copy_addend(const void *from, void *to, size_t bytes) {
    enum { CHUNK = 64 * 1024 };
    const int64_t chunk_count = (int64_t)((bytes + CHUNK - 1) / CHUNK);
    RONDO_PARALLEL(parallel for schedule(static) if (chunk_count > 1))
    for (int64_t i = 0; i < chunk_count; ++i) {
        const size_t at = (size_t)i * CHUNK;
        memcpy((char *)to + at, (const char *)from + at, bytes - at < CHUNK ? bytes - at : CHUNK);
    }
}

static void finish_output(const rondo__dnnl_kernel *kernel, float *y) {
    enum { CHUNK = 16 * 1024 };
    const rondo__simd *simd = rondo__simd_get();
    const int64_t count = kernel->output_count;
    const int64_t chunk_count = (count + CHUNK - 1) / CHUNK;
    RONDO_PARALLEL(parallel for schedule(static) if (chunk_count > 1))
    for (int64_t i = 0; i < chunk_count; ++i) {
        const int64_t rest = count - i * CHUNK;
        rondo__simd_activate(simd, kernel->ending, kernel->alpha, kernel->beta, y + i * CHUNK,
                             rest < CHUNK ? rest : CHUNK);
    }
}

static rondo_status execute(rondo__dnnl_kernel *kernel, const void *const *inputs,
                            void *const *outputs, void *workspace) {
    for (int i = 0; i < kernel->slot_count; ++i) {
        rondo__dnnl_slot *slot = &kernel->slots[i];
        void *address = slot->last;
        switch (slot->source) {
            case RONDO__DNNL_INPUT:
                memcpy(&address, &inputs[slot->index], sizeof address);
                break;
            case RONDO__DNNL_OUTPUT:
                address = outputs[slot->index];
                break;
            case RONDO__DNNL_WORKSPACE:
                address = (char *)workspace + slot->index;
                break;
            case RONDO__DNNL_OWNED:
                break;
        }
        if (address != slot->last) {
            dnnl_status_t set = dnnl_memory_set_data_handle(kernel->arguments[i].memory, address);
            if (set != dnnl_success) {
                return RONDO_FAIL(INTERNAL, "oneDNN status %d in dnnl_memory_set_data_handle",
                                  (int)set);
            }
            slot->last = address;
        }
    }
    if (kernel->addend_bytes > 0 && inputs[kernel->addend_input] != outputs[0]) {
        copy_addend(inputs[kernel->addend_input], outputs[0], kernel->addend_bytes);
    }
    dnnl_status_t status = dnnl_primitive_execute(kernel->primitive, kernel->stream,
                                                  kernel->slot_count, kernel->arguments);
    if (status != dnnl_success) {
        return RONDO_FAIL(INTERNAL, "oneDNN status %d in dnnl_primitive_execute", (int)status);
    }
    if (kernel->ending != RONDO__ACTIVATION_NONE) {
        finish_output(kernel, outputs[0]);
    }
    return RONDO_STATUS_OK;
}

// oneDNN cuts the work when a primitive is made: making and running see the same number of threads.
static rondo_status run_kernel(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    rondo__dnnl_kernel *kernel = (rondo__dnnl_kernel *)head;
    if (!kernel->is_single) {
        return execute(kernel, inputs, outputs, workspace);
    }
    const int32_t former = rondo__host_threads_use(1);
    const rondo_status status = execute(kernel, inputs, outputs, workspace);
    (void)rondo__host_threads_use(former);
    return status;
}

int32_t rondo__dnnl_choose_threads(double multiply_adds, double bytes) {
    return multiply_adds < RONDO__HOST_PARALLEL_MULTIPLY_ADDS && bytes < RONDO__HOST_PARALLEL_BYTES
               ? 1
               : rondo__host_get_thread_count();
}

int32_t rondo__dnnl_kernel_describe_begin(rondo__dnnl_kernel *kernel, double multiply_adds,
                                          double bytes) {
    const int32_t threads = rondo__dnnl_choose_threads(multiply_adds, bytes);
    kernel->is_single = threads == 1;
    return rondo__host_threads_use(threads);
}

void rondo__dnnl_kernel_describe_end(int32_t former_threads) {
    (void)rondo__host_threads_use(former_threads);
}

rondo_status rondo__dnnl_kernel_create(const rondo__kernel_request *request,
                                       rondo__dnnl_kernel **out_kernel) {
    *out_kernel = NULL;
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(rondo__dnnl_kernel),
                                                         "onednn", run_kernel, deinit_kernel);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__dnnl_hold_cache();
    rondo__dnnl_kernel *kernel = (rondo__dnnl_kernel *)head;
    dnnl_status_t status = dnnl_engine_create(&kernel->engine, dnnl_cpu, 0);
    if (status == dnnl_success) {
        status = dnnl_stream_create(&kernel->stream, kernel->engine, dnnl_stream_default_flags);
    }
    if (status != dnnl_success) {
        rondo__kernel_destroy(&head->base);
        return rondo__dnnl_convert_status(status, "dnnl_stream_create");
    }
    *out_kernel = kernel;
    return RONDO_STATUS_OK;
}

dnnl_status_t rondo__dnnl_attributes_create(bool adds_to_output,
                                            dnnl_primitive_attr_t *out_attributes) {
    *out_attributes = NULL;
    dnnl_post_ops_t post_ops = NULL;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&post_ops);
    if (status != dnnl_success) {
        return status;
    }
    status = dnnl_primitive_attr_create(&attributes);
    if (status != dnnl_success) {
        goto destroy_post_ops;
    }
    status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && adds_to_output) {
        status = rondo__dnnl_append_sum(post_ops);
    }
    if (status == dnnl_success && adds_to_output) {
        status = dnnl_primitive_attr_set_post_ops(attributes, post_ops);
    }
    if (status == dnnl_success) {
        *out_attributes = attributes;
    } else {
        (void)dnnl_primitive_attr_destroy(attributes);
    }
destroy_post_ops:
    (void)dnnl_post_ops_destroy(post_ops);
    return status;
}

void rondo__dnnl_kernel_set_ending(rondo__dnnl_kernel *kernel, rondo__activation activation,
                                   float alpha, float beta, int64_t output_count) {
    kernel->ending = activation;
    kernel->alpha = alpha;
    kernel->beta = beta;
    kernel->output_count = output_count;
}

static dnnl_status_t add_slot(rondo__dnnl_kernel *kernel, int argument, rondo__dnnl_source source,
                              size_t index, rondo__dnnl_const_layout layout, void *address) {
    if (kernel->slot_count == RONDO__DNNL_SLOT_MAX) {
        return dnnl_unimplemented;
    }
    dnnl_memory_t memory = NULL;
    dnnl_status_t status = dnnl_memory_create(&memory, layout, kernel->engine, address);
    if (status != dnnl_success) {
        return status;
    }
    int slot = kernel->slot_count++;
    kernel->slots[slot] = (rondo__dnnl_slot){.source = source, .index = index, .last = address};
    kernel->arguments[slot] = (dnnl_exec_arg_t){.arg = argument, .memory = memory};
    return dnnl_success;
}

dnnl_status_t rondo__dnnl_kernel_set_primitive(rondo__dnnl_kernel *kernel,
                                               dnnl_primitive_desc_t description) {
    kernel->description = description;
    dnnl_status_t status = dnnl_primitive_create(&kernel->primitive, description);
    if (status != dnnl_success) {
        return status;
    }
    rondo__dnnl_const_layout scratch =
        dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    size_t bytes = scratch != NULL ? dnnl_memory_desc_get_size(scratch) : 0;
    if (bytes == 0) {
        return dnnl_success;
    }
    kernel->head.base.workspace_bytes = bytes;
    return add_slot(kernel, DNNL_ARG_SCRATCHPAD, RONDO__DNNL_WORKSPACE, 0, scratch,
                    DNNL_MEMORY_NONE);
}

dnnl_status_t rondo__dnnl_kernel_bind(rondo__dnnl_kernel *kernel, int argument,
                                      rondo__dnnl_source source, size_t index,
                                      rondo__dnnl_const_layout layout) {
    return add_slot(kernel, argument, source, index, layout, DNNL_MEMORY_NONE);
}

// Runs a reorder to its end.
static dnnl_status_t reorder_alone(rondo__dnnl_kernel *kernel, rondo__dnnl_const_layout from,
                                   const void *source, rondo__dnnl_const_layout to, void *target) {
    void *readable;
    memcpy(&readable, &source, sizeof readable);  // oneDNN takes no const; it only reads
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_exec_arg_t arguments[2] = {{.arg = DNNL_ARG_FROM}, {.arg = DNNL_ARG_TO}};
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&description, from, kernel->engine,
                                                              to, kernel->engine, NULL);
    if (status != dnnl_success) {
        return status;
    }
    status = dnnl_primitive_create(&primitive, description);
    if (status != dnnl_success) {
        goto destroy_description;
    }
    status = dnnl_memory_create(&arguments[0].memory, from, kernel->engine, readable);
    if (status != dnnl_success) {
        goto destroy_primitive;
    }
    status = dnnl_memory_create(&arguments[1].memory, to, kernel->engine, target);
    if (status != dnnl_success) {
        goto destroy_source;
    }
    status = dnnl_primitive_execute(primitive, kernel->stream, 2, arguments);
    if (status == dnnl_success) {
        status = dnnl_stream_wait(kernel->stream);
    }
    (void)dnnl_memory_destroy(arguments[1].memory);
destroy_source:
    (void)dnnl_memory_destroy(arguments[0].memory);
destroy_primitive:
    (void)dnnl_primitive_destroy(primitive);
destroy_description:
    (void)dnnl_primitive_desc_destroy(description);
    return status;
}

// On one thread, which oneDNN fixes when a primitive is described: the number is asked for before
// that (see host_threads.h).
static dnnl_status_t reorder(rondo__dnnl_kernel *kernel, rondo__dnnl_const_layout from,
                             const void *source, rondo__dnnl_const_layout to, void *target) {
    const int32_t former = rondo__host_threads_use(1);
    const dnnl_status_t status = reorder_alone(kernel, from, source, to, target);
    (void)rondo__host_threads_use(former);
    return status;
}

// The key of a packed weight: the layout it comes in and the one it is in.
enum { PACKED_FORM_BYTES_MAX = 4096 };

typedef struct packing {
    rondo__dnnl_kernel *kernel;
    rondo__dnnl_const_layout from, to;
} packing;

static rondo_status fill_packed(const rondo__weight_want *want, void *bytes) {
    const packing *p = want->data;
    return rondo__dnnl_convert_status(
        reorder(p->kernel, p->from, want->constant->data, p->to, bytes), "packing weights");
}

static size_t write_form(const packing *p, unsigned char *form) {
    static const char kind[8] = "onednn";
    memcpy(form, kind, sizeof kind);
    size_t bytes = sizeof kind;
    const rondo__dnnl_const_layout layouts[] = {p->from, p->to};
    for (size_t i = 0; i < 2; ++i) {
        const size_t room = PACKED_FORM_BYTES_MAX - bytes;
        const size_t written = rondo__dnnl_layout_write(layouts[i], form + bytes, room);
        if (written == 0 || written > room) {
            return 0;
        }
        bytes += written;
    }
    return bytes;
}

dnnl_status_t rondo__dnnl_kernel_bind_packed(rondo__dnnl_kernel *kernel, int argument,
                                             rondo__weight_list *weights,
                                             const rondo_tensor *constant,
                                             rondo__dnnl_const_layout layout,
                                             rondo__dnnl_const_layout wanted) {
    unsigned char form[PACKED_FORM_BYTES_MAX];
    const packing how = {.kernel = kernel, .from = layout, .to = wanted};
    const rondo__weight_want want = {
        .constant = constant,
        .form = form,
        .form_bytes = write_form(&how, form),
        .bytes = dnnl_memory_desc_get_size(wanted),
        .fill = fill_packed,
        .data = &how,
    };
    void *packed = NULL;
    if (want.form_bytes == 0) {
        return dnnl_unimplemented;
    }
    switch (rondo__weight_list_add(weights, &want, &packed)) {
        case RONDO_STATUS_OK:
            return add_slot(kernel, argument, RONDO__DNNL_OWNED, 0, wanted, packed);
        case RONDO_STATUS_NO_MEMORY:
            return dnnl_out_of_memory;
        case RONDO_STATUS_UNSUPPORTED:
            return dnnl_unimplemented;
        default:
            return dnnl_runtime_error;
    }
}
