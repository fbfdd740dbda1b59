"""Caches that are renewed in time, and functions chosen by type, beside the same programs without the renewal.

Each safe program is run on torch, each faulty one is refused by it.
"""

from __future__ import annotations

from tests.interp.running import carried, cleared, safe

# -- caches ----------------------------------------------------------------------------------------------------------


CACHED_PROPERTY = """
    from functools import cached_property
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(3))
        @cached_property
        def p(self):
            return self.w.softmax(0)
    m = Model()
"""


def test_a_cached_property_is_computed_again_after_it_was_deleted() -> None:
    for clearing in (
        'm.__dict__.pop("p", None)',
        'vars(m).pop("p", None)',
        'delattr(m, "p") if "p" in m.__dict__ else None',
    ):
        cleared(
            CACHED_PROPERTY,
            """
            for _ in range(3):
                CLEAR
                ((m.p ** 2).sum() + m.p[0]).backward()
        """,
            clearing,
        )
    for clearing in ("del m.p", 'del m.__dict__["p"]'):
        cleared(
            CACHED_PROPERTY,
            """
            for _ in range(3):
                ((m.p ** 2).sum() + m.p[0]).backward()
                CLEAR
        """,
            clearing,
        )


def test_a_function_with_a_cache_computes_again_after_the_cache_was_cleared() -> None:
    loop = """
        for _ in range(3):
            CLEAR
            ((probs() ** 2).sum() + probs()[0]).backward()
    """
    for decorator in ("@lru_cache(None)", "@cache", "@lru_cache"):
        cleared(
            f"""
            from functools import cache, lru_cache
            w = nn.Parameter(torch.randn(3))
            {decorator}
            def probs():
                return w.softmax(0)
        """,
            loop,
            "probs.cache_clear()",
        )
    cleared(
        """
        from functools import lru_cache
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.randn(3))
            @lru_cache(maxsize=4)
            def probs(self):
                return self.w.softmax(0)
        m = Model()
        probs = m.probs
    """,
        loop,
        "Model.probs.cache_clear()",
    )


def test_a_cache_that_is_cleared_when_it_holds_something_is_cleared() -> None:
    cleared(
        """
        from functools import lru_cache
        w = nn.Parameter(torch.randn(3))
        @lru_cache
        def probs():
            return w.softmax(0)
        """,
        """
        for _ in range(3):
            CLEAR
            (probs() ** 2).sum().backward()
        """,
        "probs.cache_clear() if probs.cache_info().currsize else None",
    )
    for clearing in ("kept.popitem()", 'del kept["p", w]', 'kept.pop(("p", w))'):
        cleared(
            """
            w = nn.Parameter(torch.randn(3))
            kept = {}
            def probs():
                if ("p", w) not in kept:
                    kept["p", w] = w.softmax(0)
                return kept["p", w]
            """,
            """
            for _ in range(3):
                (probs() ** 2).sum().backward()
                CLEAR
            """,
            clearing,
        )


def test_a_cache_keeps_no_more_results_than_it_is_allowed() -> None:
    safe("""
        from functools import lru_cache
        w = nn.Parameter(torch.randn(3))
        @lru_cache(maxsize=1)
        def probs(scale):
            return (w * scale).softmax(0)
        for step in range(4):
            (probs(step % 2) ** 2).sum().backward()
    """)
    safe("""
        from functools import lru_cache
        w = nn.Parameter(torch.randn(3))
        @lru_cache(maxsize=0)
        def probs():
            return w.softmax(0)
        for step in range(3):
            (probs() ** 2).sum().backward()
    """)


def test_a_cache_keyed_on_the_version_of_a_parameter_is_renewed_by_a_step() -> None:
    loop = """
        opt = torch.optim.SGD([w], lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            (weight() ** 2).sum().backward()
            CLEAR
    """
    for start, key in (
        ("-1", "w._version"),
        ("None", "w._version"),
        ("None", "(id(w), w._version)"),
        ("-1", "sum(p._version for p in [w, b])"),
        ("-1", "max(p._version for p in [w])"),
        ("''", "f'w{w._version}'"),
        ("None", "hash((w._version, b._version))"),
    ):
        cleared(
            f"""
            w, b = nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(3))
            seen, kept = {start}, None
            def weight():
                global seen, kept
                if seen != {key}:
                    kept, seen = w.softmax(0), {key}
                return kept
        """,
            loop,
            "opt.step()",
        )
    cleared(
        """
        w = nn.Parameter(torch.randn(3))
        kept = {}
        def weight():
            if w._version not in kept:
                kept[w._version] = w.softmax(0)
            return kept[w._version]
    """,
        loop,
        "opt.step()",
    )


# -- overloads -------------------------------------------------------------------------------------------------------


def test_the_overload_for_the_type_is_called() -> None:
    loop = """
cell = nn.RNNCell(2, 2)
h = torch.zeros(1, 2)
for _ in range(3):
    h = cell(torch.randn(1, 2), cut(h))
    h.sum().backward()
"""
    for register in (
        "@cut.register\ndef _(x: torch.Tensor): return x.detach()",
        "@cut.register(torch.Tensor)\ndef _(x): return x.detach()",
        "cut.register(torch.Tensor, lambda x: x.detach())",
        "@cut.register\ndef _(x: dict): return {}\n@cut.register\ndef _(x: torch.Tensor): return x.detach()",
    ):
        carried(
            f"from functools import singledispatch\n@singledispatch\ndef cut(x): return x\n{register}\n", loop
        )
    carried(
        """
        from functools import singledispatchmethod
        class Cutter:
            @singledispatchmethod
            def cut(self, x):
                return x
            @cut.register
            def _(self, x: torch.Tensor):
                return x.detach()
        cut = Cutter().cut
    """,
        loop,
    )
