# The rules of tools/lint that read sources, on small trees: each finds what it is for, and no more.
#   check_rules.sh TOOLS_FOLDER
# SPDX-License-Identifier: Apache-2.0
tools=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

# expect NAME PATTERN, of what the last command printed; without a pattern it must print nothing.
expect() {
    if { [ -n "$2" ] && ! grep -q -- "$2" found; } || { [ -z "$2" ] && [ -s found ]; }; then
        echo "$1: expected \"$2\", found:"
        cat found
        failures=$((failures + 1))
    fi
}

mkdir -p src/low src/high include/rondo
printf 'src/low:\nsrc/high: src/low\n' >rooms.txt
: >hooks.txt
circles() { awk -f "$tools/calls.awk" -f "$tools/file_circles.awk" "$@" src/low/*.h src/low/*.c >found; }
arrows() { awk -f "$tools/rooms.awk" -f "$tools/calls.awk" -f "$tools/call_arrows.awk" rooms.txt src/*/*.h src/*/*.c >found; }
hooks() { awk -f "$tools/rooms.awk" -f "$tools/upward_hooks.awk" rooms.txt hooks.txt src/*/*.h src/*/*.c >found; }
structs() { awk -f "$tools/public_structs.awk" "$@" include/rondo/x.h >found; }

cat >src/low/x.h <<'END'
#define CALL_B() rondo__b(1)
typedef struct rondo__table {
    void (*done)(int value);
} rondo__table;
static inline int call_b(int x) {
    return rondo__b(x);
}
END
printf 'int rondo__a(int x) {\n    return rondo__b(x);\n}\n' >src/low/a.c
printf 'int rondo__b(\n    int x) {\n    return x;  // not rondo__a(x)\n}\n' >src/low/b.c
circles
expect "one way" ""
printf 'int rondo__b(int x) {\n    return "rondo__a"[x] + s.rondo__a;\n}\n' >src/low/b.c
circles
expect "texts and members" ""
printf 'int rondo__b(int x) {\n    return rondo__a(x);\n}\n' >src/low/b.c
circles
expect "a circle" 'low/b.c -> src/low/a.c (rondo__a)'
for text in 'CALL_B()' 'call_b(x)'; do
    printf 'int rondo__a(int x) {\n    return %s;\n}\n' "$text" >src/low/a.c
    circles
    expect "through $text" 'low/a.c -> src/low/b.c (rondo__b)'
done
printf 'static int (*const all[])(int) = {rondo__b};\nint rondo__a(int x) {\n}\n' >src/low/a.c
circles
expect "in a table" 'in a circle of 2 files'
printf 'int rondo__a(int x) {\n    return rondo__count;\n}\n' >src/low/a.c
printf 'int rondo__count;\nint rondo__b(int x) {\n    return rondo__a(x);\n}\n' >src/low/b.c
circles
expect "a variable" '(rondo__count)'
sed -i 's/^int rondo__count/const &/' src/low/b.c
circles
expect "a constant" ""

printf 'int rondo_public(void) {\n    return 1;\n}\n' >src/high/p.c
arrows
expect "calls within a room" ""
printf 'int rondo__use(void) {\n    return rondo_public();\n}\n' >src/low/u.c
arrows
expect "a call upwards, by a public header" 'low/u.c: src/low must not use src/high (rondo_public of src/high/p.c)'
printf 'int rondo_public(void) {\n    return rondo__use();\n}\n' >src/high/p.c
printf 'int rondo__use(void) {\n    return 1;\n}\n' >src/low/u.c
arrows
expect "a call downwards" ""
rm src/high/p.c src/low/u.c

hooks
expect "nothing above" ""
printf 'static const rondo__table table = {\n    .done = mine,\n};\n' >src/high/h.c
hooks
expect "a constant table" ""
printf 'void rondo__set(rondo__object *o) {\n    o->done = mine;\n}\n' >src/high/h.c
hooks
expect "an assignment" 'h.c:2: sets rondo__table.done, a function pointer of src/low'
printf 'rondo__table.done: a reason\n' >hooks.txt
hooks
expect "a known one" ""
: >hooks.txt
printf 'struct own {\n    int done;\n};\nvoid rondo__set(own *o) {\n    o->done = 1;\n}\n' >src/high/h.c
hooks
expect "a name of its own" ""
printf 'static _Atomic(const rondo__table *) set;\n' >src/low/c.c
hooks
expect "a variable that is set" 'c.c:1: set can be set to a function (rondo__table)'
printf 'static const rondo__table one;\nvoid rondo__use(rondo__table *t);\n' >src/low/c.c
hooks
expect "a constant and a function" ""

printf 'typedef struct rondo_x {\n    int y;\n} rondo_x;\n' >include/rondo/x.h
structs
expect "no size" 'x.h:1: struct rondo_x neither'
printf '// ABI: fixed\ntypedef struct rondo_x {\n    int y;\n} rondo_x;\n' >include/rondo/x.h
structs
expect "fixed" ""
printf 'typedef struct rondo_x {\n    // The size.\n    size_t struct_size;\n    int y;\n} rondo_x;\n' \
    >include/rondo/x.h
structs
expect "a size" ""
printf 'typedef struct rondo_x rondo_x;\ntypedef struct rondo_y { int z; } rondo_y;\n' >include/rondo/x.h
structs
expect "one line" 'struct rondo_y neither'
printf 'typedef int32_t rondo_x;\nenum { RONDO_X_A };\n' >include/rondo/x.h
structs
expect "a fixed width" ""
printf 'typedef enum rondo_x { RONDO_X_A } rondo_x;\n' >include/rondo/x.h
structs
expect "the compiler's width" 'x.h:1: an enum with a name'

members() { awk -v limit=2 -f "$tools/struct_members.awk" case.c >found; }
printf 'typedef struct pair {\n    int a[2];  // a; b; c;\n    int (*do_it)(int a, int b);\n    int b;\n} pair;\n' >case.c
members
expect "two and a function" ""
printf 'struct three {\n    int a,\n        b;\n    const char *c;\n};\n' >case.c
members
expect "three in two lines" 'case.c:1: struct three has 3 members, the limit is 2'
printf 'struct outer {\n    struct {\n        int a, b;\n    } in;\n    enum { A, B, C } kind;\n};\n' >case.c
members
expect "a struct within" ""
printf 'struct outer {\n    int a;\n    union {\n        int b, c;\n    };\n};\n' >case.c
members
expect "one without a name" 'struct outer has 3 members'
printf 'struct two *make(void) {\n    int a;\n    int b;\n    int c;\n    return 0;\n}\n' >case.c
members
expect "a function's variables" ""

printf '#define RONDO_OP_LIST(X) \\\n    X(OP, Gather) X(ML, Scaler) \\\n    X(OP, Abs)\n' >op_list.h
names() { awk -f "$tools/op_names.awk" op_list.h case.c >found; }
printf 'const char *text = "Gather";\n{"Other", 1},\n    {RONDO__OP_Gather, "Gather"},\nstrcmp(value->name, name);\n' >case.c
names
expect "no names of ops" ""
printf 'static const row rows[] = {{"Scaler", 1}, {"Abs", 2}};\n' >case.c
names
expect "a table of ops" 'case.c:1: a table keyed by the name of an op'
printf 'if (strncmp(node->op.def->name, "Scatter", 7) == 0) {\n' >case.c
names
expect "the prefix of a name" 'case.c:1: compares the name of an op'

suite() { awk -f "$tools/suite_includes.awk" case.c >found; }
printf '#include <cmocka.h>\n#include "suite.h"\n#include "rondo/graph.h"\n#include "support/peek.h"\n' >case.c
suite
expect "public headers" ""
for name in backend/backend.h base/error.h ../inside/inside.h support/../graph/label.h; do
    printf '#include "rondo/graph.h"\n#  include "%s"\n' "$name" >case.c
    suite
    expect "an internal header" "case.c:2: the conformance suite includes $name"
done

core() { awk -v limit="$1" -f "$tools/core_words.awk" include/rondo/rondo.h include/rondo/x.h include/rondo/y.h >found; }
printf '// Core.\n#include "rondo/x.h"\n// Advanced.\n#include "rondo/y.h"\n' >include/rondo/rondo.h
printf '// one two\nint x;  // three\n' >include/rondo/x.h
printf '// not counted at all\n' >include/rondo/y.h
core 11
expect "few words" ""
core 10
expect "many words" 'rondo.h: the core tier has 11 words'

users() { LC_ALL=C awk -f "$tools/public_users.awk" include/rondo/x.h "$@" >found 2>counts; }
{
    printf '// Of rondo_c(x).\nRONDO_API void rondo_a(int x);\nRONDO_API const char *rondo_b(void);\n'
    printf '#if defined(RONDO_EXPERIMENTAL)\nRONDO_API RONDO_MUST_USE rondo_status\nrondo_c(int x);\n'
    printf '#endif  // RONDO_EXPERIMENTAL\nRONDO_API RONDO_MUST_USE rondo_status\nrondo_d(int x);\n'
} >include/rondo/x.h
printf 'int main(void) {\n    rondo_a(1);\n    use(rondo_d);  /* a */\n}\n' >case.c
printf 'lib.rondo_b()\n' >case.py
users case.c case.py
expect "all have a user" ""
grep -q '^users: 3 public functions, 1 more are experimental$' counts ||
    { echo "counts:" && cat counts && failures=$((failures + 1)); }
printf '# lib.rondo_b()\n' >case.py
users case.c case.py
expect "a comment of Python" 'x.h:3: rondo_b has no user'
printf '/* rondo_a(1)\n   rondo_d */\n// rondo_d\nint rondo_a2;\n' >case.c
users case.c case.py
expect "comments of C" 'x.h:2: rondo_a has no user'
expect "two lines" 'x.h:9: rondo_d has no user'

labels() { printf '// Does it.\n//\n// Errors:    %s.\nRONDO_API rondo_status rondo_a(int x);\n' "$1" >include/rondo/x.h && comments; }
comments() { awk -f "$tools/doc_labels.awk" include/rondo/x.h >found; }
labels 'STATE (broken, or NO_MEMORY (twice)), NO_MEMORY (its own). INVALID, then'
expect "errors with what they mean" ""
labels 'STATE (broken), NO_MEMORY'
expect "an error of every call" 'x.h:3: NO_MEMORY is an error of every call'
labels 'INVALID, DRIVER'
expect "errors of every call" 'x.h:3: the label Errors says what holds for every call'
printf '// Ownership: of x.\nRONDO_API rondo_status rondo_a(int x);\n' >include/rondo/x.h
comments
expect "a label first" 'x.h:2: the comment of rondo_a does not say what it does'
printf 'RONDO_API rondo_status rondo_a(int x);\n' >include/rondo/x.h
comments
expect "no comment" 'x.h:1: rondo_a has no comment'

[ "$failures" -eq 0 ] && echo "rules: as expected"
exit "$((failures > 0))"
