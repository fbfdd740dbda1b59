"""Statements that compute new tensors: elementwise and matrix operators, reductions, views and copies."""

from __future__ import annotations

from gradsight_dev.fuzz.grammar.draft import NAMES, Draft, Shape, Var
from gradsight_dev.fuzz.grammar.tables import (
    BINARY,
    REDUCTIONS,
    SCALAR_UNARY,
    UNARY,
    VIEWS,
    Fits,
    Template,
    ViewTemplate,
)
from gradsight_dev.fuzz.grammar.values import bind

WEIGHED_UNARY = tuple((template, template.weight) for template in UNARY)
WEIGHED_BINARY = tuple((template, template.weight) for template in BINARY)
WEIGHED_REDUCTIONS = tuple((template, template.weight) for template in REDUCTIONS)
WEIGHED_SCALAR = tuple((template, template.weight) for template in SCALAR_UNARY)
WEIGHED_VIEWS = tuple((template, template.weight) for template in VIEWS)


def fits(template_fits: Fits, shape: Shape) -> bool:
    """Whether a template takes a main tensor of this shape; single rows are left out so that `[1:]` is never empty."""
    if not shape or len(shape) > 2 or shape[0] < 2 or shape[-1] < 2:
        return False
    if template_fits == "vector":
        return len(shape) == 1
    if template_fits == "matrix":
        return len(shape) == 2
    if template_fits == "square":
        return len(shape) == 2 and shape[0] == shape[1]
    return True


def filled(draft: Draft, text: str, main: Var, partners: list[Var] | None = None) -> str:
    """The template's text with its holes filled; chosen partners are appended to `partners`."""
    holes = {"a": main.text, "n": draft.number()}
    wanted: list[tuple[str, Shape, str]] = [("b", main.shape, f"{main.text}.clone()")]
    if main.shape:
        wide = main.shape[-1]
        wanted += [("row", (wide,), f"torch.ones({wide})"), ("square", (wide, wide), f"torch.eye({wide})")]
    for hole, shape, substitute in wanted:
        if "{" + hole + "}" not in text:
            continue
        partner = draft.find(shape=shape, where=lambda known: known.text != main.text)
        if partner is None:
            holes[hole] = substitute
            continue
        holes[hole] = partner.text
        if partners is not None:
            partners.append(partner)
    return text.format(**holes)


def expression(draft: Draft, main: Var, *, keep_shape: bool = False) -> tuple[str, Var]:
    """A random expression over `main` and others, and what its value is like."""
    if not main.shape:
        template = draft.weighted(WEIGHED_SCALAR)
    else:
        for _ in range(8):
            table = draft.weighted(((WEIGHED_UNARY, 5.0), (WEIGHED_BINARY, 5.0), (WEIGHED_REDUCTIONS, 1.0)))
            template = draft.weighted(table)
            if fits(template.fits, main.shape) and not (keep_shape and template.result != "same"):
                break
        else:
            template = Template("{a} * {n}")
    partners: list[Var] = []
    text = filled(draft, template.text, main, partners)
    grad = draft.scope.recording and any(one.grad for one in (main, *partners))
    result = Var("", _result_shape(template, main.shape), draft.group(), grad=grad)
    if grad and template.keeps in ("in", "both"):
        draft.keep(main, *partners)
    if grad and template.keeps in ("out", "both"):
        draft.keep(result)
    return text, result


def compute(draft: Draft) -> bool:
    """`z = x * y`."""
    main = draft.find(where=lambda known: known.grad) or draft.find()
    if main is None:
        return False
    text, result = expression(draft, main)
    bind(draft, text, result)
    return True


def nested(draft: Draft) -> bool:
    """Two operators in one statement: the value in between has no name."""
    main = draft.find(where=lambda known: known.grad and bool(known.shape))
    if main is None or not fits("any", main.shape):
        return False
    inner, middle = expression(draft, main, keep_shape=True)
    outer = draft.weighted(WEIGHED_UNARY)
    if not fits(outer.fits, middle.shape) or outer.text.count("{a}") > 1:
        outer = Template("{a} * {n}")
    text = filled(draft, outer.text, Var(f"({inner})", middle.shape, middle.group))
    bind(draft, text, Var("", middle.shape, draft.group(), grad=middle.grad))
    return True


def view(draft: Draft) -> bool:
    """`v = y[1:]`."""
    base = draft.find(where=lambda known: fits("any", known.shape))
    if base is None:
        return False
    for _ in range(6):
        template = draft.weighted(WEIGHED_VIEWS)
        if fits(template.fits, base.shape):
            break
    else:
        return False
    name = draft.fresh(NAMES)
    draft.say(f"{name} = {template.text.format(a=base.text)}")
    same_object = template.text in ("{a}.contiguous()", "{a}.squeeze()")
    draft.add(
        Var(
            name,
            _view_shape(template, base.shape),
            draft.group() if template.copies else base.group,
            grad=base.grad and not template.cuts,
            leaf=base.leaf and same_object,
            refuses=template.refuses or (base.refuses and not template.copies),
        )
    )
    return True


def unpacked_views(draft: Draft) -> bool:
    """`left, right = y.chunk(2)`."""
    base = draft.find(where=lambda known: fits("any", known.shape) and known.shape[0] in (2, 3, 4))
    if base is None:
        return False
    rows, rest = base.shape[0], base.shape[1:]
    half = (rows + 1) // 2
    forms: list[tuple[str, list[Shape]]] = [
        (f"{base.text}.chunk(2)", [(half, *rest), (rows - half, *rest)]),
        (f"torch.chunk({base.text}, 2, dim=0)", [(half, *rest), (rows - half, *rest)]),
        (f"{base.text}.split([1, {rows - 1}])", [(1, *rest), (rows - 1, *rest)]),
        (f"torch.tensor_split({base.text}, 2)", [(half, *rest), (rows - half, *rest)]),
    ]
    if len(base.shape) == 2:
        forms += [(f"{base.text}.unbind(0)", [rest] * rows), (f"torch.unbind({base.text})", [rest] * rows)]
        forms += [(base.text, [rest] * rows)]
    text, shapes = draft.pick(forms)
    names = [draft.fresh(NAMES) for _ in shapes]
    draft.say(f"{', '.join(names)} = {text}")
    for name, shape in zip(names, shapes):
        draft.add(Var(name, shape, base.group, grad=base.grad, refuses=True))
    return True


def alias(draft: Draft) -> bool:
    """`kept = y`: one tensor, two names."""
    base = draft.find()
    if base is None:
        return False
    name = draft.fresh(NAMES)
    draft.say(f"{name} = {base.text}")
    draft.add(Var(name, base.shape, base.group, base.grad, base.leaf, base.refuses))
    return True


def _result_shape(template: Template, shape: Shape) -> Shape:
    if template.result == "scalar":
        return ()
    if template.result == "drop_last":
        return shape[:-1]
    if template.result == "drop_first":
        return shape[1:]
    return shape


def _view_shape(template: ViewTemplate, shape: Shape) -> Shape:
    if template.result == "flat":
        return (shape[0] * shape[1],) if len(shape) == 2 else shape
    if template.result == "drop_first":
        return shape[1:]
    if template.result == "drop_last":
        return shape[:-1]
    if template.result == "turned":
        return shape[::-1]
    if template.result == "tail":
        return (shape[0] - 1, *shape[1:])
    if template.result == "raised":
        return (1, *shape)
    if template.result == "first_row_kept":
        return (2, *shape)
    if template.result == "many":
        return ((shape[0] + 1) // 2, *shape[1:])
    return shape
