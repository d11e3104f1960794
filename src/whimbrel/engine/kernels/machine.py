"""A small typed stack machine that tests conditions between events.

A program is a row of (operation, operand, operand) triples; `engine.programs` makes it. Whole numbers,
codes of texts, times and truth values live on the integer stack, the rest on the float stack; a
third stack marks nulls. One machine, compiled once, runs the conditions of every query: compiling a condition
of its own would take longer than most queries run (docs/decisions/0003). Logic is three-valued, as in SQL.
"""

from __future__ import annotations

import math

import numpy as np

from whimbrel.engine.kernels.relation_address import call_related
from whimbrel.space.kernels.jit import kernel
from whimbrel.space.kernels.sphere import sphere

STACK = 64

LOAD_I, LOAD_F, CONST_I, CONST_F, NULL, START, END = 0, 1, 2, 3, 4, 5, 6
TO_F, TO_I = 7, 8
ADD_I, SUB_I, MUL_I, MOD_I, NEG_I, ABS_I, SIGN_I = 10, 11, 12, 13, 14, 15, 16
ADD_F, SUB_F, MUL_F, DIV_F, MOD_F, NEG_F, ABS_F, SIGN_F = 20, 21, 22, 23, 24, 25, 26, 27
SQRT, FLOOR, CEIL, ROUND, EXP, LN, POW = 30, 31, 32, 33, 34, 35, 36
EQ_I, NE_I, LT_I, LE_I, GT_I, GE_I = 40, 41, 42, 43, 44, 45
EQ_F, NE_F, LT_F, LE_F, GT_F, GE_F = 50, 51, 52, 53, 54, 55
AND, OR, NOT, IS_NULL = 60, 61, 62, 63
LEAST_I, GREATEST_I, LEAST_F, GREATEST_F, COALESCE_I, COALESCE_F = 70, 71, 72, 73, 74, 75
PLANE, SPHERE = 80, 81
APART, MEET, INSIDE = 90, 91, 92

INEXACT = frozenset({TO_I, FLOOR, CEIL, ROUND, EXP, LN, POW, MOD_F, PLANE, SPHERE, APART, MEET, INSIDE})
"""What NumPy and compiled code need not round alike, or treat alike where there is no number."""


@kernel
def holds(code, begin, stop, int_constants, float_constants, bound, hot, ints, floats, nulls, si, sf, sn):
    """Run the program code[begin:stop] on the bound events; true only if its result is true.

    `hot` has the ends and starts of the events in its first two columns.
    """
    top = -1
    pc = begin
    while pc < stop:
        op = code[pc]
        a = code[pc + 1]
        b = code[pc + 2]
        pc += 3
        if op == LOAD_I:
            top += 1
            entry = bound[a]
            si[top] = ints[entry, b]
            sn[top] = (nulls[entry] >> np.uint64(b)) & np.uint64(1)
        elif op == LOAD_F:
            top += 1
            entry = bound[a]
            sf[top] = floats[entry, b]
            sn[top] = (nulls[entry] >> np.uint64(32 + b)) & np.uint64(1)
        elif op == START:
            top += 1
            si[top] = hot[bound[a], 1]
            sn[top] = 0
        elif op == END:
            top += 1
            si[top] = hot[bound[a], 0]
            sn[top] = 0
        elif op == CONST_I:
            top += 1
            si[top] = int_constants[a]
            sn[top] = 0
        elif op == CONST_F:
            top += 1
            sf[top] = float_constants[a]
            sn[top] = 0
        elif op == NULL:
            top += 1
            si[top] = 0
            sf[top] = 0.0
            sn[top] = 1
        elif op == TO_F:
            # a: how deep below the top the operand lies
            sf[top - a] = float(si[top - a])
        elif op == TO_I:
            sf[top] = np.rint(sf[top])
            si[top] = int(sf[top])
        elif op == NOT:
            si[top] = 1 - si[top]
        elif op == IS_NULL:
            si[top] = sn[top]
            sn[top] = 0
        elif op == AND:
            top -= 1
            # False wins over null, which wins over true.
            false_left = sn[top] == 0 and si[top] == 0
            false_right = sn[top + 1] == 0 and si[top + 1] == 0
            if false_left or false_right:
                si[top] = 0
                sn[top] = 0
            else:
                sn[top] = sn[top] | sn[top + 1]
                si[top] = 1
        elif op == OR:
            top -= 1
            # And here true wins over null, which wins over false.
            true_left = sn[top] == 0 and si[top] == 1
            true_right = sn[top + 1] == 0 and si[top + 1] == 1
            if true_left or true_right:
                si[top] = 1
                sn[top] = 0
            else:
                sn[top] = sn[top] | sn[top + 1]
                si[top] = 0
        elif op == NEG_I:
            si[top] = -si[top]
        elif op == ABS_I:
            si[top] = abs(si[top])
        elif op == SIGN_I:
            si[top] = (si[top] > 0) - (si[top] < 0)
        elif op == NEG_F:
            sf[top] = -sf[top]
        elif op == ABS_F:
            sf[top] = abs(sf[top])
        elif op == SIGN_F:
            sf[top] = float((sf[top] > 0) - (sf[top] < 0))
        elif op == FLOOR:
            sf[top] = math.floor(sf[top])
        elif op == CEIL:
            sf[top] = math.ceil(sf[top])
        elif op == ROUND:
            sf[top] = np.rint(sf[top])
        elif op == SQRT or op == LN or op == EXP:
            x = sf[top]
            if op == SQRT:
                x = np.sqrt(x) if x >= 0 else np.nan
            elif op == LN:
                x = np.log(x) if x > 0 else np.nan
            else:
                x = np.exp(x)
            if x != x:
                sn[top] = 1  # what has no number is null, as a division by zero is
            sf[top] = x
        elif op == PLANE or op == SPHERE:
            top -= 3
            sn[top] = sn[top] | sn[top + 1] | sn[top + 2] | sn[top + 3]
            if op == PLANE:
                sf[top] = math.hypot(sf[top] - sf[top + 2], sf[top + 1] - sf[top + 3])
            else:
                sf[top] = sphere(sf[top], sf[top + 1], sf[top + 2], sf[top + 3])
        elif op >= APART and op <= INSIDE:
            # Two times x, y and the code of a shape, null for a point; a: where places of shapes stand.
            top -= 5
            sn[top] = sn[top] | sn[top + 1] | sn[top + 3] | sn[top + 4]
            if sn[top] == 0:
                one = -1 if sn[top + 2] == 1 else int_constants[int_constants[a] + si[top + 2]]
                two = -1 if sn[top + 5] == 1 else int_constants[int_constants[a] + si[top + 5]]
                sf[top] = call_related(
                    int_constants[a + 1], op - APART, b, np.int64(float_constants.ctypes.data),
                    np.int64(float_constants.size), one, sf[top], sf[top + 1], two, sf[top + 3], sf[top + 4],
                )  # fmt: skip
                si[top] = sf[top] == 1.0
        elif op >= LEAST_I and op <= COALESCE_F:
            # A null is no value to choose: the other one is taken, be it null, too.
            top -= 1
            pick = 0
            if sn[top] == 1:
                pick = 1
            elif sn[top + 1] == 0:
                if op == LEAST_I:
                    pick = 1 if si[top + 1] < si[top] else 0
                elif op == GREATEST_I:
                    pick = 1 if si[top + 1] > si[top] else 0
                elif op == LEAST_F:
                    pick = 1 if sf[top + 1] < sf[top] else 0
                elif op == GREATEST_F:
                    pick = 1 if sf[top + 1] > sf[top] else 0
            if pick == 1:
                si[top] = si[top + 1]
                sf[top] = sf[top + 1]
                sn[top] = sn[top + 1]
        else:
            # The rest takes two operands and is null if either is.
            top -= 1
            sn[top] = sn[top] | sn[top + 1]
            if sn[top] == 0:
                if op >= EQ_F and op <= GE_F:
                    x = sf[top]
                    y = sf[top + 1]
                    if op == LT_F:
                        si[top] = x < y
                    elif op == LE_F:
                        si[top] = x <= y
                    elif op == GT_F:
                        si[top] = x > y
                    elif op == GE_F:
                        si[top] = x >= y
                    elif op == EQ_F:
                        si[top] = x == y
                    else:
                        si[top] = x != y
                elif op >= EQ_I and op <= GE_I:
                    i = si[top]
                    j = si[top + 1]
                    if op == EQ_I:
                        si[top] = i == j
                    elif op == NE_I:
                        si[top] = i != j
                    elif op == LT_I:
                        si[top] = i < j
                    elif op == LE_I:
                        si[top] = i <= j
                    elif op == GT_I:
                        si[top] = i > j
                    else:
                        si[top] = i >= j
                elif op == ADD_I:
                    si[top] = si[top] + si[top + 1]
                elif op == SUB_I:
                    si[top] = si[top] - si[top + 1]
                elif op == MUL_I:
                    si[top] = si[top] * si[top + 1]
                elif op == MOD_I:
                    if si[top + 1] == 0:
                        sn[top] = 1
                    else:
                        si[top] = si[top] % si[top + 1]
                else:
                    x = sf[top]
                    y = sf[top + 1]
                    if op == ADD_F:
                        x = x + y
                    elif op == SUB_F:
                        x = x - y
                    elif op == MUL_F:
                        x = x * y
                    elif op == DIV_F:
                        x = x / y if y != 0.0 else np.nan
                    elif op == MOD_F:
                        x = np.mod(x, y) if y != 0.0 else np.nan
                    elif op == POW:
                        x = np.power(x, y)
                    if x != x:
                        sn[top] = 1
                    sf[top] = x
    return sn[0] == 0 and si[0] == 1
