// backend/cuda/graph/cuda_child.h — copies of a template: as one node, and as a template.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__cuda_add_child(rondo_stream *stream, rondo__template *template_);
rondo_status rondo__cuda_clone(rondo__template *template_, rondo__template **out_clone);
