// backend/cuda/graph/cuda_child.h — recording a template as one node.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BACKEND_CUDA_GRAPH_CUDA_CHILD_H
#define RONDO_BACKEND_CUDA_GRAPH_CUDA_CHILD_H

#include "backend/backend.h"

rondo_status rondo__cuda_add_child(rondo_stream *stream, rondo__template *template_);

#endif  // RONDO_BACKEND_CUDA_GRAPH_CUDA_CHILD_H
