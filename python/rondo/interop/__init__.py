# SPDX-License-Identifier: Apache-2.0
"""What makes captures safe around the code of other libraries: rondo.interop.torch, .cupy."""
