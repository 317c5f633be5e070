// program/drawing.h — nodes that draw random numbers.
//
// Executors find the generator of a node with an attribute `seed` by the node's name, so that it
// goes on in other plans and from a checkpoint. All others draw from one generator, in turn: plans
// keep their order, so that the numbers do not depend on where segments are cut, where states lie,
// or whether a branch was decided ahead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "program/program.h"

// Gives nodes with a seed whose name another such node of the program or its bodies has a new one:
// "NAME#3". The first keeps its own. (Names made up for nodes without one count from 0 in each
// body, and files may name two nodes alike.)
//
// in_one_graph   also where both stand in one graph; not after gradients, which write out the turns
//                of a loop: copies of a node go on with one sequence, as the turns did.
RONDO_MUST_USE rondo_status rondo__program_name_draws(rondo_program *program, bool in_one_graph);

// Whether the node, or one in its bodies, draws without a seed of its own.
bool rondo__node_draws_in_turn(const rondo_program *program, const rondo__node *node);
