# awk -f suite_includes.awk FILE...: prints each #include of a conformance file that is none of rondo/,
# of tests/conformance, of tests/support, or of the system.
# SPDX-License-Identifier: Apache-2.0
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, parts, "\"")
    name = parts[2]
    if (name ~ /\// && name !~ /^(rondo|conformance|support)\/([a-z]+\/)?[a-z0-9_]+\.h$/) {
        print FILENAME ":" FNR ": the conformance suite includes " name ", which is not public"
    }
}
