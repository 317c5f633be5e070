// executor/describe/describe_svg.h — a plan as a picture: segments with their ops, and what is
// bypassed between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

void rondo__describe_svg(rondo__text *text, rondo__unit *unit, rondo__plan *plan);
