# SPDX-License-Identifier: Apache-2.0

"""The generators by op, and how attributes are drawn."""
GENERATORS = {}


def generates(*ops, domain=""):
    """Marks `function(draw, op, schema)`, which gives a case of one op."""
    def mark(function):
        for op in ops:
            GENERATORS[domain, op] = function
        return function
    return mark


def some(draw, schema, chance=0.6, **choices):
    """Attributes that this version of the op has, each by chance; a function is called to draw."""
    attrs = {}
    for name, choice in choices.items():
        if schema.has(name) and draw.chance(chance):
            attrs[name] = choice() if callable(choice) else choice
    return attrs
