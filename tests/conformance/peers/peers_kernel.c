// Kernels of the cases' own, on every device.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/peers/peers_kernel.h"

#include "support/peek.h"
#include "support/short_forms.h"

void *peers_get_function(suite_context *context, const peers_kernel *kernel) {
    if (!context->is_cuda) {
        union {
            rondo_host_function function;
            void *address;
        } host = {.function = kernel->host};
        return host.address;
    }
    suite_set_fake_kernel(context, kernel->name, kernel->fake);
    void *function = NULL;
    ASSERT_OK(peek_compile(context->device, kernel->text, kernel->name, &function));
    return function;
}

rondo_status peers_launch(rondo_stream *stream, const peers_kernel *kernel, void *function,
                          uint32_t blocks, const void *arguments, size_t argument_bytes) {
    rondo_launch launch = LAUNCH(kernel->name, function, blocks, 1, arguments, argument_bytes);
    return rondo_stream_launch(stream, &launch);
}
