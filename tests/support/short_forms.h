// support/short_forms.h — structs that tests fill again and again, as expressions.
//
//   OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, 4, -1)));
//   OK(rondo_builder_add_node(b, "ReduceSum", (const char *[]){"x"}, 1, (const char *[]){"y"}, 1,
//                             &WITH(ATTRIBUTE_INT("keepdims", 0))));
//   const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, values, 4);
//
// Like every compound literal they live as long as the block around them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Extents from 0 to RONDO_RANK_MAX of them, and how many.
#define EXTENTS(...) \
    { __VA_ARGS__ }
#define RANK(...) ((int32_t)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t)) - 1)

#define PORT(port_name, port_dtype, ...)             \
    ((rondo_port){.struct_size = sizeof(rondo_port), \
                  .name = (port_name),               \
                  .dtype = (port_dtype),             \
                  .rank = RANK(__VA_ARGS__),         \
                  .extent = EXTENTS(__VA_ARGS__)})

// A value in host memory, which is borrowed.
#define BIND(value_name, value_dtype, values, ...) \
    BIND_SHAPE(value_name, value_dtype, values, {RANK(__VA_ARGS__), EXTENTS(__VA_ARGS__)})
// The same of a rondo_shape.
#define BIND_SHAPE(value_name, value_dtype, values, ...) \
    ((rondo_binding){(value_name),                       \
                     {.dtype = (value_dtype), .shape = __VA_ARGS__, .data = (values)}})

#define ATTRIBUTE_INT(attribute_name, value) \
    ((rondo_attribute){.name = (attribute_name), .kind = RONDO_ATTRIBUTE_INT, .int_value = (value)})
#define ATTRIBUTE_INTS(attribute_name, values, value_count) \
    ((rondo_attribute){.name = (attribute_name),            \
                       .kind = RONDO_ATTRIBUTE_INTS,        \
                       .ints = (values),                    \
                       .count = (value_count)})
#define ATTRIBUTE_FLOAT(attribute_name, value) \
    ((rondo_attribute){                        \
        .name = (attribute_name), .kind = RONDO_ATTRIBUTE_FLOAT, .float_value = (value)})
#define ATTRIBUTE_TEXT(attribute_name, value) \
    ((rondo_attribute){                       \
        .name = (attribute_name), .kind = RONDO_ATTRIBUTE_STRING, .string_value = (value)})
#define ATTRIBUTE_BODY(attribute_name, value) \
    ((rondo_attribute){.name = (attribute_name), .kind = RONDO_ATTRIBUTE_GRAPH, .body = (value)})

// Options of a node with these attributes, or with `count` of a list.
#define WITH(...)                                       \
    WITH_LIST(((const rondo_attribute[]){__VA_ARGS__}), \
              sizeof((const rondo_attribute[]){__VA_ARGS__}) / sizeof(rondo_attribute))
#define WITH_LIST(list, list_count)                                                  \
    ((rondo_builder_node_options){.struct_size = sizeof(rondo_builder_node_options), \
                                  .attributes = (list),                              \
                                  .attribute_count = (list_count)})

// A launch of `blocks` times `threads`.
#define LAUNCH(kernel_name, kernel, blocks, threads, given, given_bytes) \
    ((rondo_launch){.struct_size = sizeof(rondo_launch),                 \
                    .name = (kernel_name),                               \
                    .function = (kernel),                                \
                    .grid = {(blocks), 1, 1},                            \
                    .block = {(threads), 1, 1},                          \
                    .arguments = (given),                                \
                    .argument_bytes = (given_bytes)})

// Of an op's definition: one input, one output.
#define ONE_TO_ONE .input_min = 1, .input_max = 1, .output_min = 1, .output_max = 1
