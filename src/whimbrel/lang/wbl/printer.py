"""From the tree back to text: expressions, patterns and statements, each in one canonical form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from whimbrel.errors import Span
from whimbrel.lang.wbl import tree as t
from whimbrel.model.time import written_time_point

_NAME = re.compile(r"[^\W\d]\w*")

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _NEGATIVE, _ATOM = range(1, 9)
_INFIX = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}


@dataclass(frozen=True, slots=True)
class PrintedText:
    """A stretch of text that is never broken, and where it came from."""

    text: str
    at: Span | None = None


@dataclass(frozen=True, slots=True)
class PrintedClause:
    """A clause: pieces that stand on one line if they fit, or else one under the other."""

    indent: int
    pieces: tuple[PrintedText, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A statement as lines."""

    kind: type
    lines: tuple[PrintedClause, ...]


# Expressions ---------------------------------------------------------------------------------------


def print_expression(node: t.Expression) -> str:
    """Write an expression with the fewest parentheses that keep its tree."""
    return _expression(node)[0]


def _inside(node: t.Expression, lowest: int) -> str:
    text, level = _expression(node)
    return f"({text})" if level < lowest else text


def _expression(node: t.Expression) -> tuple[str, int]:
    match node:
        case t.Not(operand):
            return f"not {_inside(operand, _NOT)}", _NOT
        case t.Negative(operand):
            return f"-{_inside(operand, _NEGATIVE)}", _NEGATIVE
        case t.Logic(operator, operands):
            level = _OR if operator == "or" else _AND
            return f" {operator} ".join(_inside(operand, level + 1) for operand in operands), level
        case t.Infix(operator, left, right):
            level = _INFIX[operator]
            return f"{_inside(left, level)} {operator} {_inside(right, level + 1)}", level
        case t.Compare() | t.Among() | t.BetweenNode() | t.IsNullNode() | t.InRegionNode() | t.Relation():
            return _test(node), _COMPARISON
    return _atom(node), _ATOM


def _test(node: t.Expression) -> str:
    def side(part: t.Expression) -> str:
        return _inside(part, _SUM)

    match node:
        case t.Compare(operands, operators):
            rest = (f" {sign} {side(operand)}" for sign, operand in zip(operators, operands[1:], strict=True))
            return side(operands[0]) + "".join(rest)
        case t.Among(value, choices, negated):
            listed = ", ".join(print_expression(choice) for choice in choices)
            return f"{side(value)}{_not(negated)} in ({listed})"
        case t.BetweenNode(value, low, high, negated):
            return f"{side(value)}{_not(negated)} between {side(low)} and {side(high)}"
        case t.IsNullNode(value, negated):
            return f"{side(value)} is{_not(negated)} null"
        case t.InRegionNode(value, region, negated):
            return f"{side(value)}{_not(negated)} in {print_shape(region)}"
        case t.Relation(left, relation, right):
            return f"{side(left)} {relation} {side(right)}"
    raise TypeError(f"not a test: {node!r}")


def _not(negated: bool) -> str:
    return " not" if negated else ""


def _atom(node: t.Expression) -> str:
    match node:
        case t.Constant(value):
            return _constant(value)
        case t.QuantityNode():
            return print_amount(node)
        case t.InstantNode(text):
            return f"timestamp {_quoted(text)}"
        case t.Name(name):
            return name
        case t.Dotted(part, name):
            return f"{part}.{name}"
        case t.Apply(function, arguments):
            return f"{function}({_list(arguments)})"
    raise TypeError(f"not an expression: {node!r}")


def _constant(value: bool | int | float | str | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else _number(value)


def _number(value: int | float) -> str:
    return str(value) if isinstance(value, int) else repr(value)


def _quoted(text: str) -> str:
    escapes = (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r"))
    for plain, escaped in escapes:
        text = text.replace(plain, escaped)
    return f"'{text}'"


def _list(arguments: tuple[t.Expression, ...]) -> str:
    return ", ".join(print_expression(argument) for argument in arguments)


def print_shape(shape: t.ShapeNode) -> str:
    """Write a region."""
    if shape.text is not None:
        return _quoted(shape.text)
    return shape.name if shape.name is not None else f"{shape.function}({_list(shape.arguments)})"


def print_amount(amount: t.Amount) -> str:
    """Write an amount of time, of length or of events."""
    match amount:
        case t.QuantityNode(amounts):
            # Units follow decimals, never exponents: 1e-05 s is no quantity.
            return " ".join(f"{_decimal(number)} {unit}" for number, unit in amounts)
        case t.NamedAmount(name, unit):
            return name if unit is None else f"{name} {unit}"
        case t.Count(count):
            return f"{count} events"


def _decimal(value: int | float) -> str:
    text = _number(value)
    if "e" not in text:
        return text
    exact = format(Decimal(text), "f")
    return exact if "." in exact else f"{exact}.0"


# Patterns ------------------------------------------------------------------------------------------


def print_pattern(pattern: t.PatternNode) -> str:
    """Write a pattern on one line."""
    return " ".join(piece.text for piece in pattern_pieces(pattern))


def pattern_pieces(pattern: t.PatternNode) -> tuple[PrintedText, ...]:
    """Write a pattern so that it can be broken before each connective and before `within`."""
    pieces = []
    for index, part in enumerate(pattern.parts):
        joint = part.follows if pattern.connective == t.STEPS else pattern.connective
        before = f"{joint} " if index else ""
        pieces.append(PrintedText(before + print_part(part), part.at))
    if pattern.within is not None:
        pieces.append(PrintedText(f"within {print_amount(pattern.within)}", pattern.within.at))
    if pattern.gaps is not None:
        if pattern.within is None and _ends_with_a_loop(pattern):
            # Straight behind a loop, it would be about the events of the loop alone.
            pieces[0] = PrintedText(f"({pieces[0].text}", pieces[0].at)
            pieces[-1] = PrintedText(f"{pieces[-1].text})", pieces[-1].at)
        pieces.append(PrintedText(f"within {print_amount(pattern.gaps)} between events", pattern.gaps.at))
    return tuple(pieces)


def _ends_with_a_loop(pattern: t.PatternNode) -> bool:
    """Tell whether the last words of a pattern say how often, and no name or bound stands behind them."""
    last = pattern.parts[-1]
    return last.times is not None and last.alias is None and not last.gaps


def print_part(part: t.PatternPartNode) -> str:
    """Write one part of a pattern."""
    words = ["not"] if part.negated else []
    words += ["outer"] if part.outer else []
    words += [part.select] if part.select else []
    words.append(_core(part.what) + _quantity(part))
    words += [mark for mark in part.marks if mark != "optional" or _says_optional(part)]
    words += [f"until {_occurrence(part.until)}"] if part.until else []
    words += [f"within {print_amount(part.window)} between events"] if part.window else []
    words += [f"as {part.alias}"] if part.alias else []
    words += [f"within {print_amount(gap.duration)} from {gap.other}" for gap in part.gaps]
    words += [f"for {print_amount(part.lasting)}"] if part.lasting else []
    return " ".join(words)


def _detected(detect: t.PatternNode | t.MotionNode) -> tuple[PrintedText, ...]:
    return pattern_pieces(detect) if isinstance(detect, t.PatternNode) else motion_pieces(detect)


def print_motion(motion: t.MotionNode) -> str:
    """Write how something moves on one line."""
    return " ".join(piece.text for piece in motion_pieces(motion))


def motion_pieces(motion: t.MotionNode) -> tuple[PrintedText, ...]:
    """Write how something moves so that it can be broken before each detail."""
    words = [_occurrence(motion.mover)]
    words += [f"as {motion.alias}"] if motion.alias else []
    words.append(motion.verb)
    words += [f"{print_amount(motion.near)} of"] if motion.near is not None else []
    words += [_target(motion.target)] if motion.target is not None else []
    details = (PrintedText(_detail(detail), detail.at) for detail in motion.details)
    return (PrintedText(" ".join(words), motion.at), *details)


def _target(target: t.TargetNode) -> str:
    if target.text is not None:
        return _quoted(target.text)
    arguments = "" if target.arguments is None else f"({_list(target.arguments)})"
    alias = f" as {target.alias}" if target.alias else ""
    return f"{target.name}{arguments}{alias}"


def _detail(detail: t.Detail) -> str:
    if detail.value is None:
        return detail.word
    if isinstance(detail.value, t.QuantityNode | t.NamedAmount | t.Count):
        return f"{detail.word} {print_amount(detail.value)}"
    return f"{detail.word} {print_expression(detail.value)}"


def _core(what: t.Occurrence | t.PatternNode) -> str:
    return _occurrence(what) if isinstance(what, t.Occurrence) else f"({print_pattern(what)})"


def _occurrence(what: t.Occurrence) -> str:
    if isinstance(what, t.TimePoint):
        return written_time_point(what.type)
    return f"{what.type}({_list(what.conditions)})" if what.conditions else what.type


def _quantity(part: t.PatternPartNode) -> str:
    if "optional" in part.marks and not _says_optional(part):
        return "?" if part.times is None else "*"
    return _times(part.times) if part.times else ""


def _says_optional(part: t.PatternPartNode) -> bool:
    """Tell whether no sign stands for its being optional together with its number of times."""
    times = part.times
    return times is not None and (times.at_least, times.at_most) != (1, None)


def _times(times: t.TimesNode) -> str:
    if times.at_most == times.at_least:
        return f"{{{times.at_least}}}"
    if times.at_most is None:
        return "+" if times.at_least == 1 else f"{{{times.at_least},}}"
    return f"{{{times.at_least},{times.at_most}}}"


# Statements ----------------------------------------------------------------------------------------


def print_statement(statement: t.Statement) -> Block:
    """Lay out a statement as lines."""
    lines: tuple[PrintedClause, ...]
    match statement:
        case t.CoordinatesStatement(name):
            lines = (_line(0, f"coordinates {name}", statement.at),)
        case t.ParamNode(name, value):
            lines = (_line(0, f"param {name} = {print_expression(value)}", statement.at),)
        case t.EventNode(name, attributes, columns):
            lines = (_line(0, f"event {name}({_declared(attributes)})", statement.at), *_mapped(columns))
        case t.RegionNode(name, shape):
            lines = (_line(0, f"region {name} = {print_shape(shape)}", statement.at),)
        case t.Definition():
            lines = (_line(0, _header(statement), statement.at), *_cases(statement.cases))
        case t.SubscriptionNode():
            lines = (_line(0, _subscription_header(statement), statement.at), *_cases(statement.cases))
        case t.MobileNode():
            lines = (_line(0, _around(statement), statement.at), *_mobile_clauses(statement))
    return Block(type(statement), lines)


def _line(indent: int, text: str, at: Span | None) -> PrintedClause:
    return PrintedClause(indent, (PrintedText(text, at),))


def _declared(attributes: tuple[t.Declared, ...]) -> str:
    return ", ".join(item.name if item.type is None else f"{item.name}: {item.type}" for item in attributes)


def _mapped(columns: tuple[t.Mapped, ...]) -> tuple[PrintedClause, ...]:
    if not columns:
        return ()
    pairs = ", ".join(f"{item.name} = {' + '.join(map(_column, item.columns))}" for item in columns)
    return (_line(2, f"from columns {pairs}", columns[0].at),)


def _column(name: str) -> str:
    return name if _NAME.fullmatch(name) else _quoted(name)


def _header(statement: t.Definition) -> str:
    words = [f"define {statement.name}"]
    if statement.attributes is not None:
        words[0] += f"({_declared(statement.attributes)})"
    words += ["aggr"] if statement.aggr else []
    window = statement.window
    if window is not None:
        words += [f"over {print_amount(window.over)}"] if window.over else []
        words += [f"every {print_amount(window.every)}"] if window.every else []
        words += [f"within {print_amount(window.within)}"] if window.within else []
    return " ".join(words)


def _subscription_header(statement: t.SubscriptionNode) -> str:
    name = f" {statement.name}" if statement.name else ""
    return f"Subscription{name} seq {statement.sequence} from {statement.subscriber} to {statement.actor}"


# Mobile queries ------------------------------------------------------------------------------------


def _around(statement: t.MobileNode) -> str:
    alias = f" as {statement.alias}" if statement.alias else ""
    return f"around {_occurrence(statement.focal)}{alias}"


def _mobile_clauses(statement: t.MobileNode) -> Iterator[PrintedClause]:
    """Write the clauses that are there, each on a line, in their one order."""
    for word, pieces in _about_interest(statement):
        if pieces:
            yield PrintedClause(2, _started(word, pieces))
    for text, at in (*_about_guarantees(statement), *_about_events(statement)):
        yield _line(2, text, at)


def _about_interest(statement: t.MobileNode) -> Iterator[tuple[str, tuple[PrintedText, ...]]]:
    yield "group by", _separated(PrintedText(_key(item), item.at) for item in statement.group_by)
    if statement.listed is not None:
        yield "listed in", (PrintedText(print_expression(statement.listed), statement.listed.at),)
    interest = statement.interest
    yield interest.word, (PrintedText(_interest(interest), interest.at),)
    yield "report", _separated(PrintedText(item.name, item.at) for item in statement.report)


def _interest(interest: t.InterestNode) -> str:
    pieces = [_quoted(interest.outline)] if interest.outline is not None else []
    pieces += [print_expression(interest.route)] if interest.route is not None else []
    pieces += [interest.function] if interest.function is not None else []
    pieces += map(print_amount, interest.amounts)
    pieces += [f"{_number(interest.degrees)} degrees"] if interest.degrees is not None else []
    return ", ".join(pieces) + (" of situations" if interest.of_situations else "")


def _about_guarantees(statement: t.MobileNode) -> Iterator[tuple[str, Span | None]]:
    if statement.lifetime is not None:
        yield f"lifetime {print_amount(statement.lifetime)}", statement.lifetime.at
    if statement.refresh is not None:
        yield f"refresh {_refresh(statement.refresh)}", statement.refresh.at
    if statement.quality is not None:
        yield f"quality {_quality(statement.quality)}", statement.quality.at
    if statement.order is not None:
        yield f"order {statement.order.name}", statement.order.at
    if statement.completeness is not None:
        grid = statement.completeness.grid
        where = "" if grid is None else f" on a grid of {print_amount(grid)}"
        yield f"completeness {statement.completeness.word}{where}", statement.completeness.at


def _refresh(refresh: t.RefreshNode) -> str:
    if refresh.amount is None:
        return refresh.word
    over = " over" if refresh.word == "when quality falls" else ""
    return f"{refresh.word}{over} {print_amount(refresh.amount)}"


def _quality(quality: t.QualityNode) -> str:
    if quality.precision == quality.recall:
        return _number(quality.precision)
    return f"precision {_number(quality.precision)}, recall {_number(quality.recall)}"


def _about_events(statement: t.MobileNode) -> Iterator[tuple[str, Span | None]]:
    if statement.prediction is not None:
        yield _prediction(statement.prediction), statement.prediction.at
    if statement.reuse is not None:
        yield f"reuse {statement.reuse.name}", statement.reuse.at
    if statement.deliver is not None:
        yield f"deliver {statement.deliver.name}", statement.deliver.at
    if statement.excluding_itself is not None:
        yield statement.excluding_itself.name, statement.excluding_itself.at
    if statement.silent is not None:
        yield f"until silent for {print_amount(statement.silent)}", statement.silent.at
    if statement.motion_within is not None:
        yield statement.motion_within.name, statement.motion_within.at


def _prediction(prediction: t.PredictionNode) -> str:
    steps = f"predict {prediction.steps} {'step' if prediction.steps == 1 else 'steps'}"
    if prediction.candidates is None:
        return steps
    places = "candidate" if prediction.candidates == 1 else "candidates"
    return f"{steps}, {prediction.candidates} {places} by {prediction.by}"


# Clauses -------------------------------------------------------------------------------------------


def _cases(cases: tuple[t.CaseNode, ...]) -> list[PrintedClause]:
    return [line for case in cases for line in _case(case)]


def _case(case: t.CaseNode) -> list[PrintedClause]:
    indent = 2 if case.label is None else 4
    lines = [] if case.label is None else [_line(2, f"case {case.label}:", case.at)]
    lines += [_line(indent, "<pre>", case.detect.at)] if case.pre else []
    clauses = [
        ("detect", _detected(case.detect)),
        ("where", _condition(case.where)),
        ("assign", _assignments(case.assign)),
    ]
    lines += [PrintedClause(indent, _started(word, pieces)) for word, pieces in clauses if pieces]
    if case.post:
        lines.append(_line(indent, "<post>", case.post[0].at))
    return lines + [PrintedClause(indent, _started(word, pieces)) for word, pieces in _ending(case) if pieces]


def _ending(case: t.CaseNode) -> Iterator[tuple[str, tuple[PrintedText, ...]]]:
    """Write the clauses behind the first assignments: each by its word, and what it says."""
    yield "where", _assignments(case.post)
    yield "having", _condition(case.having)
    yield "consuming", _separated(PrintedText(item.name, item.at) for item in case.consuming)
    yield "group by", _separated(PrintedText(_key(item), item.at) for item in case.group_by)
    if case.context is not None:
        yield "context", (PrintedText(case.context.name, case.context.at),)
    yield "among", _separated(PrintedText(item.name, item.at) for item in case.among)
    if case.skip is not None:
        words = (case.skip.strategy, case.skip.step, "or fail" if case.skip.or_fail else "")
        yield "skip", (PrintedText(" ".join(word for word in words if word), case.skip.at),)
    if case.counting:
        yield "counting", (PrintedText("matches", case.at),)
    if case.limit is not None:
        dropping = f" dropping {case.limit.drop}" if case.limit.drop else ""
        yield "limit", (PrintedText(f"{case.limit.runs} runs{dropping}", case.limit.at),)
    if case.timing_out is not None:
        yield "timing out as", (PrintedText(case.timing_out.name, case.timing_out.at),)


def _started(word: str, pieces: tuple[PrintedText, ...]) -> tuple[PrintedText, ...]:
    first = pieces[0]
    return (PrintedText(f"{word} {first.text}", first.at), *pieces[1:])


def _condition(node: t.Expression | None) -> tuple[PrintedText, ...]:
    if node is None:
        return ()
    if not isinstance(node, t.Logic):
        return (PrintedText(print_expression(node), node.at),)
    level = _OR if node.operator == "or" else _AND
    texts = [_inside(operand, level + 1) for operand in node.operands]
    joined = [texts[0], *(f"{node.operator} {text}" for text in texts[1:])]
    return tuple(PrintedText(text, operand.at) for text, operand in zip(joined, node.operands, strict=True))


def _assignments(items: tuple[t.Assignment, ...]) -> tuple[PrintedText, ...]:
    return _separated(PrintedText(f"{item.name} = {print_expression(item.value)}", item.at) for item in items)


def _separated(pieces: Iterable[PrintedText]) -> tuple[PrintedText, ...]:
    listed = tuple(pieces)
    return (*(PrintedText(f"{piece.text},", piece.at) for piece in listed[:-1]), *listed[-1:])


def _key(item: t.GroupKey) -> str:
    return item.name if item.size is None else f"{item.name}({print_expression(item.size)})"
