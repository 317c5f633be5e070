// backend/host/host_child.h — graphs inside graphs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/host/host_template.h"

rondo_status rondo__host_add_child(rondo_stream *stream, rondo__template *template_);
rondo_status rondo__host_clone(rondo__template *template_, rondo__template **out_clone);
rondo_status rondo__host_get_child(rondo__template *template_, size_t index,
                                   rondo__template **out_child);
// The same work without CHILD nodes. *out_flat is `recorded` itself when it has none.
//
// Errors:    NO_MEMORY.
// Ownership: give back with rondo__host_unflatten.
RONDO_MUST_USE rondo_status rondo__host_flatten(const rondo__host_template *recorded,
                                                const rondo__host_template **out_flat);
void rondo__host_unflatten(const rondo__host_template *recorded, const rondo__host_template *flat);
