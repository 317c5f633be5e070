# Ops of com.microsoft against ONNX Runtime's results: the cases in tests/vendor, which make_cases.py
# there writes.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"

set -- "$here"/../vendor/*/
expect_status 0 test --device host --rtol 1e-4 --atol 1e-5 "$@"
expect_text "^$# passed, 0 failed, 0 skipped\$"
finish_test
