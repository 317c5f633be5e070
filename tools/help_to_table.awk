# rondo help environment | awk -f help_to_table.awk: its variables as the rows of a Markdown table.
# docs/environment.md holds them, and tests/cli/test_environment.sh compares.
# SPDX-License-Identifier: Apache-2.0

function finish() {
    if (name != "") {
        gsub(/\|/, "\\|", said)
        printf "| `%s` | %s |\n", name, said
    }
    name = ""
    said = ""
}

/^  [^ ]/ {
    finish()
    name = $1
    sub(/^  [^ ]+ */, "")
}
name != "" {
    sub(/^ +/, "")
    said = said (said != "" && $0 != "" ? " " : "") $0
}
END { finish() }
