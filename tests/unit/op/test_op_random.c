// The references of the ops that draw, from seed 0 and counter 0, whose words are the known answers
// 6627e8d5 e169c58d bc57ac4c 9b00dbd8 (as parts of one: 0.39905 0.88052 0.73571 0.60548).
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row draws_rows[] = {
    {"RandomUniform", 1, "", "shape=I:4", "f32[4]:0.39904642,0.88052022,0.73571277,0.60548186"},
    {"RandomUniform", 1, "", "shape=I:2,1 low=f:-1 high=f:3 seed=f:4 dtype=11",
     "f64[2,1]:2.522081,1.421928"},
    {"RandomUniformLike", 1, "i32[2]:7,8", "dtype=1", "f32[2]:0.39904642,0.88052022"},
    {"RandomNormal", 1, "", "shape=I:3", "f32[3]:0.99113768,-0.92466259,-0.61760896"},
    {"RandomNormalLike", 1, "f32[2]", "mean=f:10 scale=f:2", "f32[2]:11.982275,8.1506748"},
    {"RandomNormal", 1, "", "shape=I:0", "f32[0]"},
    {"Bernoulli", 15, "f32[4]:0.4,0.88,1,0", "", "f32[4]:1,0,1,0"},
    {"Bernoulli", 15, "f64[4]:0.3,0.9,0.7,0.7", "dtype=9", "bool[4]:0,1,0,1"},
    {"Dropout", 13, "f32[4]:1,2,3,4 f32[]:0.6 bool[]:1", "", "f32[4]:0,5,7.5,10 bool[4]:0,1,1,1"},
    {"Dropout", 13, "f32[2]:1,2 f32[]:1 bool[]:1", "", "f32[2]:0,0 bool[2]:0,0"},
    {"Dropout", 13, "f32[2]:1,2 f32[]:0 bool[]:1", "", "f32[2]:1,2 bool[2]:1,1"},
    {"Multinomial", 7, "f32[1,3]:-1000,0,-1000", "sample_size=2", "i32[1,2]:1,1"},
    // Probabilities 1/8, 3/4, 1/8.
    {"Multinomial", 7, "f32[1,3]:0,1.7917595,0", "sample_size=2 dtype=7", "i64[1,2]:2,1"},
};
OP_ROWS_TEST(test_op_random__draws, draws_rows)

static const op_row refuses_rows[] = {
    {"RandomNormal", 1, "", "", "!BAD_DATA no attribute shape"},
    {"RandomNormal", 1, "", "shape=I:-2", "!BAD_DATA is no shape"},
    {"RandomNormal", 1, "", "shape=I:2 dtype=6", "!UNSUPPORTED dtype"},
    {"RandomNormal", 1, "", "shape=I:2 scale=f:-1", "!BAD_DATA no such distribution"},
    {"RandomUniform", 1, "", "shape=I:2 low=f:2", "!BAD_DATA no such distribution"},
    {"Bernoulli", 15, "i32[1]", "", "!UNSUPPORTED input 0 of type i32"},
    {"Dropout", 13, "f32[2]:1,2 f32[]:1.5 bool[]:1", "", "!BAD_DATA not from 0 to 1"},
    {"Multinomial", 7, "f32[3]", "", "!BAD_DATA batch"},
    {"Multinomial", 7, "f32[1,3]", "dtype=1", "!UNSUPPORTED dtype"},
};
OP_ROWS_TEST(test_op_random__refuses, refuses_rows)

TEST_MAIN()
