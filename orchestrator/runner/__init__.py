"""What runs inside the judge's and the candidate's processes: the standard library alone, loaded by path.

Protocol `orchestrator.runner/1`. The judge's process holds the eval suite and the report's pipe, the candidate's
process holds the candidate; between them there is one socket that carries lines of JSON.

    judge's process                                     candidate's process
    suite ─► stand-in of candidate.f ─► peer ═ socket ═ peer ─► candidate.f
                                        values, handles

Values cross by value and are compared where the judge is. Everything else crosses as a handle: the other side
makes a stand-in of it, whose class has the special methods of the original's class and asks for each of them.
Stand-ins need what ordinary code does without: classes made at run time, a metaclass and `__getattr__`.

Neither side trusts the bytes of the other; the judge moreover trusts nothing that a stand-in says of a value it
compares (see `standins`), and lets the candidate do little with the suite's objects (see `grants`).
"""
