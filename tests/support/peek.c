#include "support/peek.h"

#include "backend/backend.h"
#include "base/memory.h"

rondo_status peek_compile(rondo_device *device, const char *text, const char *name,
                          void **out_function) {
    return rondo__device_get_function(device, text, NULL, 0, name, out_function);
}

static bool fail_always(void *user_data) {
    (void)user_data;
    return true;
}

void peek_fail_allocations(bool do_fail) {
    rondo__memory_set_fault(do_fail ? fail_always : NULL, NULL);
}

void peek_set_lost(rondo_device *device, bool is_lost) {
    atomic_store(&device->is_lost, is_lost);
}

uint32_t peek_get_number(const rondo_stream *stream) {
    return stream->number;
}
