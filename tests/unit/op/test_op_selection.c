// Awkward semantics of ops that pick by value.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row top_k_rows[] = {
    {"TopK", 11, "f32[5]:1,3,3,nan,2 i64[1]:3", "", "f32[3]:nan,3,3 i64[3]:3,1,2"},
    {"TopK", 11, "i32[2,2]:4,1,2,9 i64[1]:1", "axis=0 largest=0", "i32[1,2]:2,1 i64[1,2]:1,0"},
    {"TopK", 11, "u64[3]:18446744073709551615,1,9223372036854775808 i64[1]:3", "",
     "u64[3]:18446744073709551615,9223372036854775808,1 i64[3]:0,2,1"},
    {"TopK", 11, "f32[3]:0,-0.0,1 i64[1]:2", "largest=0", "f32[2]:0,-0.0 i64[2]:0,1"},
    {"TopK", 11, "f32[9]:1,3,3,0,3,2,3,1,5 i64[1]:4", "", "f32[4]:5,3,3,3 i64[4]:8,1,2,4"},
    {"TopK", 11, "f32[9]:1,3,1,0,3,1,nan,1,5 i64[1]:3", "largest=0", "f32[3]:0,1,1 i64[3]:3,0,2"},
    {"TopK", 11,
     "f32[60]:0,17,14,11,8,5,2,19,16,13,10,7,4,1,18,15,12,9,6,3,0,17,14,11,8,5,2"
     ",19,16,13,10,7,4,1,18,15,12,9,6,3,0,17,14,11,8,5,2,19,16,13,10,7,4,1,18,15"
     ",12,9,6,3 i64[1]:60",
     "largest=1",
     "f32[60]:19,19,19,18,18,18,17,17,17,16,16,16,15,15,15,14,14,14,13,13,13,12,"
     "12,12,11,11,11,10,10,10,9,9,9,8,8,8,7,7,7,6,6,6,5,5,5,4,4,4,3,3,3,2,2,2,1,"
     "1,1,0,0,0 i64[60]:7,27,47,14,34,54,1,21,41,8,28,48,15,35,55,2,22,42,9,29,4"
     "9,16,36,56,3,23,43,10,30,50,17,37,57,4,24,44,11,31,51,18,38,58,5,25,45,12,"
     "32,52,19,39,59,6,26,46,13,33,53,0,20,40"},
    {"TopK", 9, "f32[3]:1,2,3", "k=1", "f32[1]:3 i64[1]:2"},
    {"TopK", 11, "f32[3] i64[1]:0", "", "f32[0] i64[0]"},
    {"TopK", 11, "f32[3] i64[1]:4", "", "!BAD_DATA k is 4"},
    {"TopK", 11, "f32[3] i64[1]:-1", "", "!BAD_DATA k is -1"},
    {"TopK", 11, "f32[3] i64[2]:1", "", "!BAD_DATA k must be one i64"},
};
OP_ROWS_TEST(test_op_selection__top_k, top_k_rows)

static const op_row data_dependent_rows[] = {
    {"NonZero", 13, "f32[2,2]:0,nan,-0.0,4", "", "i64[2,2]:0,1,1,1"},
    {"NonZero", 13, "i32[]:3", "", "i64[1,1]:0"},
    {"NonZero", 13, "bool[3]", "", "i64[1,0]"},
    {"Compress", 11, "i32[2,3]:1,2,3,4,5,6 bool[2]:0,1", "axis=1", "i32[2,1]:2,5"},
    {"Compress", 11, "i32[2,3]:1,2,3,4,5,6 bool[6]:1,0,0,0,0,1", "", "i32[2]:1,6"},
    {"Compress", 11, "i32[2] bool[3]:0,0,1", "", "!BAD_DATA picks element 2 of 2"},
    {"Compress", 11, "i32[2] i32[2]", "", "!BAD_DATA must be a list of bool"},
    {"Unique", 11, "f32[6]:2,1,1,3,4,3", "",
     "f32[4]:1,2,3,4 i64[4]:1,0,3,4 i64[6]:1,0,0,2,3,2 i64[4]:2,1,2,1"},
    {"Unique", 11, "i32[3]:5,1,5", "sorted=0", "i32[2]:5,1 i64[2]:0,1 i64[3]:0,1,0 i64[2]:2,1"},
    {"Unique", 11, "i32[3,2]:1,0,0,9,1,0", "axis=0",
     "i32[2,2]:0,9,1,0 i64[2]:1,0 i64[3]:1,0,1 i64[2]:1,2"},
    {"Unique", 11, "i32[0]", "", "i32[0] i64[0] i64[0] i64[0]"},
    {"Unique", 11, "string[5]:b,a,b,,ab", "",
     "string[4]:,a,ab,b i64[4]:3,1,4,0 i64[5]:3,1,3,0,2 i64[4]:1,1,1,2"},
    {"Unique", 11, "string[3,2]:b,a,a,b,b,a", "axis=0 sorted=0",
     "string[2,2]:b,a,a,b i64[2]:0,1 i64[3]:0,1,0 i64[2]:2,1"},
    {"NonMaxSuppression", 11,
     "f32[1,3,4]:0,0,1,1,0,0.1,1,1.1,0,10,1,11 f32[1,1,3]:0.9,0.75,0.6 i64[1]:3 f32[1]:0.5 "
     "f32[1]:0",
     "", "i64[2,3]:0,0,0,0,0,2"},
    // Overlaps that are the threshold in f32: numbers from ONNX Runtime
    {"NonMaxSuppression", 11,
     "f32[1,2,4]:1,0.7,0.5,0.7,0.8,0.7,0.7,0.7 f32[1,1,2]:0.9,0.8 i64[1]:2 f32[1]:0.5",
     "center_point_box=1", "i64[2,3]:0,0,0,0,0,1"},
    {"NonMaxSuppression", 11,
     "f32[1,3,4]:0.2,0.2,0.6,0.3,0.5,0.5,0.6,0.3,0.2,0.1,0.2,0.3 f32[1,1,3]:0.9,0.8,0.7 "
     "i64[1]:3 f32[1]:0.2",
     "center_point_box=1", "i64[2,3]:0,0,0,0,0,1"},
    // A box of a negative width covers nothing
    {"NonMaxSuppression", 11, "f32[1,2,4]:1,1,-2,2,1,1,-2,2 f32[1,1,2]:0.9,0.8 i64[1]:2 f32[1]:0.5",
     "center_point_box=1", "i64[2,3]:0,0,0,0,0,1"},
    {"NonMaxSuppression", 11, "f32[1,1,4] f32[1,1,1]", "", "i64[0,3]"},
    {"NonMaxSuppression", 11, "f32[1,0,4] f32[1,1,0] i64[1]:9", "", "i64[0,3]"},
    {"NonMaxSuppression", 11, "f32[1,2,4] f32[1,1,1]", "", "!BAD_DATA boxes must be"},
};
OP_ROWS_TEST(test_op_selection__data_dependent, data_dependent_rows)

TEST(test_op_selection__ngrams) {
    static const char pool[] =
        "mode=s:TF min_gram_length=1 max_gram_length=2 max_skip_count=1 ngram_counts=I:0,2 "
        "ngram_indexes=I:0,1,3 pool_int64s=I:2,3,5,4";
    static const char bad_counts[] =
        "mode=s:TF min_gram_length=2 max_gram_length=2 max_skip_count=0 ngram_counts=I:0,1 "
        "ngram_indexes=I:0,1 pool_int64s=I:2,3";
    static const char strings[] =
        "mode=s:TFIDF min_gram_length=1 max_gram_length=2 max_skip_count=1 ngram_counts=I:0,3 "
        "ngram_indexes=I:0,1,2,3,4 pool_strings=S:b,a,c,a,b,c,a weights=F:0.5,2,1,3,0.25";
    const op_row rows[] = {
        {"TfIdfVectorizer", 9, "i32[5]:2,5,3,4,2", pool, "f32[4]:2,1,0,1"},
        {"TfIdfVectorizer", 9, "i64[2,2]:5,4,3,3", pool, "f32[2,4]:0,0,0,1,0,2,0,0"},
        {"TfIdfVectorizer", 9, "f32[2]", pool, "!UNSUPPORTED input 0 of type f32"},
        {"TfIdfVectorizer", 9, "i32[2]", bad_counts, "!BAD_DATA entry 1 of ngram_counts"},
        {"TfIdfVectorizer", 9, "string[2,4]:a,b,c,a,c,x,a,b", strings,
         "f32[2,5]:0.5,4,1,3,0.25,0.5,2,1,3,0.25"},
        {"TfIdfVectorizer", 9, "i32[2]", strings, "!UNSUPPORTED input 0 of type i32"},
        {"TfIdfVectorizer", 9, "string[2]", pool, "!UNSUPPORTED input 0 of type string"},
    };
    OP_ROWS_CHECK(rows);
}

TEST_MAIN()
