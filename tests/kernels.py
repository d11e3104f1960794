"""Compile the kernels that nearly every test needs: processes that start together then find them on disk."""

from __future__ import annotations

from whimbrel.engine.session import Session
from whimbrel.lang.wbl import compile_text

QUERIES = """
define Pairs(n)
  detect A as a then B as b within 10 s where b.v > a.v assign n = b.v - a.v context cumulative
define Lone detect A as a then not B as b for 3 s
define Means(m, d, f, t) over 5 s
  detect A assign m = avg(A.v), d = distinct(A.w), f = first(A.w), t = max(A.w)
define Runs(n) detect A{2,3} as a within 10 s assign n = sum(a.v)
define Float(n) every 5 s detect A assign n = sum(A.w)
"""


def compile_kernels() -> None:
    """Run one query of each kind."""
    session = Session(compile_text(QUERIES, emit="all"))
    rows = [
        {"id": str(n), "type": "AB"[n % 2], "time": n, "v": n, "w": n / 4, "x": 1.0 * n, "y": float(n * n)}
        for n in range(9)
    ]
    session.push(rows)
    session.close()


if __name__ == "__main__":
    compile_kernels()
