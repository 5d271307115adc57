"""Writes expressions of an analysed plan in a canonical form.

Columns become their computation, literal casts are applied, commutative operands sorted, and windows written as by the
user. Expression ids, seeds, evaluation modes and the like are dropped.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from slackwater.core.program import Traced, Window
from slackwater.formats.plan_json import CHILDREN, CLASS, PYTHON_FUNCTIONS, TreeNode, object_name, plan_in
from slackwater.runtime.program.event_time import session_window, time_window

LONGEST = 2_000
"""The longest text of an expression; columns computed from each other would make it grow without limit."""
LEFT_OUT = "left out"
"""The node field for data missing in Spark's JSON: the options of ``from_json``, the bytes of a literal."""


class Ref(NamedTuple):
    """A part of a stateful operator's output: operator number, role (``key``), and index."""

    operator: int
    role: str
    part: str


class Value(NamedTuple):
    """A canonical expression with its dependencies. ``type`` is Spark's type name, empty if unknown."""

    text: str
    name: str = ""
    type: str = ""
    literal: bool = False
    random: bool = False
    """Not deterministic: Spark pushes no filter down that has it."""
    reads: frozenset[str] = frozenset()
    refs: frozenset[Ref] = frozenset()
    functions: frozenset[str] = frozenset()
    windows: frozenset[Window] = frozenset()
    operands: tuple[frozenset[Ref], ...] = ()
    """The parts read by the two sides of an equation."""

    def traced(self) -> Traced:
        return Traced(self.name, self.text, tuple(sorted(self.reads)), self.type)


Columns = Mapping[int, Value]

TRANSPARENT = frozenset({
    "Alias", "KnownFloatingPointNormalized", "KnownNotNull", "KnownNullable", "NormalizeNaNAndZero", "OuterReference",
    "PromotePrecision", "TempResolvedColumn",
})  # fmt: skip
INFIX = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%",
    "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "EqualTo": "=", "EqualNullSafe": "<=>",
    "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=",
}  # fmt: skip
COMMUTATIVE = frozenset({"+", "*", "&", "|", "^", "=", "<=>"})
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!="}
INTEGERS = frozenset({"byte", "short", "integer", "long"})
SEEDED = frozenset({"Rand", "Randn", "Uuid", "Shuffle", "RandStr", "Uniform"})
NOT_DETERMINISTIC = SEEDED | {
    "InputFileBlockLength", "InputFileBlockStart", "InputFileName", "MonotonicallyIncreasingID", "SparkPartitionID",
}  # fmt: skip
"""Spark's expressions with the trait ``Nondeterministic``."""
CLOCK_INTERVALS = ("interval hour", "interval minute", "interval second")
WITH_ZONE = re.compile(r"timestamp|date|string|variant|time")
ADDRESS = re.compile(r"@[0-9a-f]{3,8}\b")
NOISE = frozenset({
    CLASS, CHILDREN, "exprId", "qualifier", "nonInheritableMetadataKeys", "explicitMetadata", "metadata", "nullable",
    "evalContext", "evalMode", "resultId", "queryContext", "failOnError", "ansiEnabled", "legacySizeOfNull", "hideSeed",
    "randomSeed", "seed", "mutableAggBufferOffset", "inputAggBufferOffset", "udfDeterministic", "evalType", "func",
    "functionName", "pretty", "nodePatternsInternal", "outerAttrs", "isDistinct", "cteId", LEFT_OUT,
})  # fmt: skip
ARGUMENT = re.compile(r"argument \d+")
"""The generated argument names of a lambda function: its own names have numbers of the JVM process."""


def canonical(expression: TreeNode, columns: Columns) -> Value:
    expression, columns = _replaced(expression, columns)
    written = WRITERS.get(expression.name)
    if written is not None:
        value = written(expression, columns)
    elif expression.name in TRANSPARENT:
        value = canonical(expression.children[0], columns)
    elif expression.name in INFIX:
        left, word, right = _operation(expression, columns)
        type_ = left.type if word in ("+", "-", "*", "%") and left.type == right.type else ""
        operands = (left.refs, right.refs) if word in ("=", "<=>") else ()
        value = merged(f"({left.text} {word} {right.text})", (left, right), type=type_, operands=operands)
    else:
        value = _call(expression, columns)
    called = [expression] if expression.name == "PythonUDTF" else []
    plan = plan_in(expression)
    for node in plan.walk() if plan is not None else ():
        called += [one for one in node.all_expressions() if one.name in PYTHON_FUNCTIONS]
    functions = value.functions.union(str(one.fields.get("name", "")) for one in called)
    random = expression.name in NOT_DETERMINISTIC or expression.fields.get("udfDeterministic") is False
    text = value.text
    if len(text) > LONGEST:
        text = f"{text[:200]}... [{len(text)} characters, sha256 {_digest(text)}]"
    return value._replace(text=text, functions=functions, random=value.random or random)


def conjuncts(expression: TreeNode, columns: Columns) -> list[Value]:
    expression, columns = _replaced(expression, columns)
    if expression.name != "And":
        return [canonical(expression, columns)]
    return [one for child in _flattened(expression, "And") for one in conjuncts(child, columns)]


def _replaced(expression: TreeNode, columns: Columns) -> tuple[TreeNode, Columns]:
    while True:
        if "replacement" in expression.fields and expression.children:
            expression = expression.children[-1]
        elif expression.name == "With":
            expression, *parts = expression.children
            found = {_common_id(part): canonical(part.children[0], columns) for part in parts}
            columns = {**columns, **found}
        else:
            return expression, columns


def _common_id(expression: TreeNode) -> int:
    known = expression.fields.get("id")
    return -2 - int(known["id"] if isinstance(known, Mapping) else known or 0)


def attribute_id(attribute: TreeNode) -> int:
    known = attribute.fields.get("exprId")
    return int(known["id"]) if isinstance(known, Mapping) and "id" in known else -1


def type_name(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    if value.get("type") == "struct":
        return "struct<" + ",".join(f"{one['name']}:{type_name(one['type'])}" for one in value["fields"]) + ">"
    if value.get("type") == "array":
        return f"array<{type_name(value['elementType'])}>"
    if value.get("type") == "map":
        return f"map<{type_name(value['keyType'])},{type_name(value['valueType'])}>"
    return str(value.get("class") or value.get("type") or "")


def merged(text: str, parts: Iterable[Value], **others: Any) -> Value:
    values = list(parts)
    return Value(
        text,
        reads=frozenset[str]().union(*(one.reads for one in values)),
        refs=frozenset[Ref]().union(*(one.refs for one in values)),
        functions=frozenset[str]().union(*(one.functions for one in values)),
        windows=frozenset[Window]().union(*(one.windows for one in values)),
        random=any(one.random for one in values),
        **others,
    )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _reference(expression: TreeNode, columns: Columns) -> Value:
    if expression.name == "CommonExpressionRef":
        return columns.get(_common_id(expression)) or _call(expression, columns)
    known = columns.get(attribute_id(expression))
    name, type_ = str(expression.fields.get("name", "")), type_name(expression.fields.get("dataType", ""))
    return known if known is not None else Value(name, name, type_, reads=frozenset({name}))


def _literal(expression: TreeNode, _: Columns) -> Value:
    value: Any = expression.fields.get("value")
    type_ = type_name(expression.fields.get("dataType", ""))
    if LEFT_OUT in expression.fields:
        text = f"X'{expression.fields[LEFT_OUT]}'"
    elif value is None:
        text = "NULL"
    elif type_.startswith(("string", "char", "varchar")):
        text = "'" + str(value).replace("'", "''") + "'"
    elif type_ in INTEGERS or type_.startswith("decimal") or type_ == "boolean":
        text = str(value).lower()
    elif type_ in ("double", "float"):
        text = repr(float(value))
    else:
        text = f"{type_} '{ADDRESS.sub('', str(value))}'"
    return Value(text, type=type_, literal=True)


def _cast(expression: TreeNode, columns: Columns) -> Value:
    child = canonical(expression.children[0], columns)
    to = type_name(expression.fields.get("dataType", ""))
    if child.literal and (child.type in INTEGERS or child.type.startswith("decimal")):
        if to in ("double", "float"):
            return child._replace(text=repr(float(child.text)), type=to)
        if to in INTEGERS or to.startswith("decimal"):
            return child._replace(type=to)
    # Spark's ``SimplifyCasts`` removes such a cast.
    if child.type == to:
        return child
    if to == "interval":
        return child._replace(type=to)
    zone = expression.fields.get("timeZoneId")
    zoned = zone and WITH_ZONE.search(to) and (not child.type or WITH_ZONE.search(child.type))
    # Only a string is written in a zone, or read in one.
    zoned = zoned and not (to.startswith("string") and child.type and not WITH_ZONE.search(child.type))
    zoned = zoned and not (to.startswith("string") and child.type.startswith("string"))
    text = f"cast({child.text} as {to}{f' in {zone}' if zoned else ''})"
    return child._replace(text=text, type=to, name="", literal=False)


def _and_or(expression: TreeNode, columns: Columns) -> Value:
    word = " AND " if expression.name == "And" else " OR "
    values = {
        value.text: value for value in (canonical(one, columns) for one in _flattened(expression, expression.name))
    }
    text = word.join(sorted(values))
    return merged(f"({text})" if len(values) > 1 else text, values.values(), type="boolean")


def _flattened(expression: TreeNode, name: str) -> list[TreeNode]:
    """Operands of nested equal operators, without recursion: there may be thousands."""
    found: list[TreeNode] = []
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if node.name == name:
            waiting += reversed(node.children)
        else:
            found.append(node)
    return found


def _operation(expression: TreeNode, columns: Columns) -> tuple[Value, str, Value]:
    left, right = (canonical(child, columns) for child in expression.children)
    word = INFIX[expression.name]
    if (left.literal, left.text) > (right.literal, right.text):
        if word in COMMUTATIVE:
            left, right = right, left
        elif word in MIRRORED:
            left, right, word = right, left, MIRRORED[word]
    return left, word, right


def _not(expression: TreeNode, columns: Columns) -> Value:
    inner = expression.children[0]
    if inner.name == "Not":
        return canonical(inner.children[0], columns)
    value = canonical(inner, columns)
    if INFIX.get(inner.name) in NEGATED:
        left, word, right = _operation(inner, columns)
        # A text that was too long is a digest, in which no operator can be replaced.
        if value.text == f"({left.text} {word} {right.text})":
            return value._replace(text=f"({left.text} {NEGATED[word]} {right.text})")
    return merged(f"NOT {value.text}", [value], type="boolean")


def _composed(expression: TreeNode, columns: Columns) -> Value:
    """Write an expression whose text is made of its children's texts."""
    fields, type_ = expression.fields, ""
    parts = [canonical(child, columns) for child in expression.children]
    texts = [one.text for one in parts]
    match expression.name:
        case "TimeAdd" | "TimestampAddInterval":
            # The first in Spark 3.5 and 4.0, then the second. Hours are equal in every time zone.
            zone = "" if parts[1].type.startswith(CLOCK_INTERVALS) else f" in {fields.get('timeZoneId')}"
            text, type_ = f"({texts[0]} + {texts[1]}{zone})", parts[0].type or "timestamp"
        case "IsNull" | "IsNotNull":
            text, type_ = f"({texts[0]} IS {'' if expression.name == 'IsNull' else 'NOT '}NULL)", "boolean"
        case "In":
            listed, type_ = sorted(set(texts[1:])), "boolean"
            # Spark's ``OptimizeIn`` makes an equation of a list with one value.
            text = f"({texts[0]} = {listed[0]})" if len(listed) == 1 else f"({texts[0]} IN ({', '.join(listed)}))"
        case "CaseWhen":
            arms = [f"WHEN {when} THEN {then}" for when, then in zip(texts[::2], texts[1::2], strict=False)]
            otherwise = [f"ELSE {texts[-1]}"] if len(parts) % 2 and texts[-1] != "NULL" else []
            text = " ".join(["CASE", *arms, *otherwise, "END"])
        case "GetStructField":
            name = fields.get("name") or f"[{fields.get('ordinal')}]"
            text = f"{texts[0]}.{name}"
        case _:  # AggregateExpression
            text, type_ = texts[0], parts[0].type
            if fields.get("isDistinct"):
                text = text.replace("(", "(DISTINCT ", 1)
            if len(texts) > 1:
                text += f" FILTER (WHERE {texts[1]})"
    return merged(text, parts, type=type_)


def _struct(expression: TreeNode, columns: Columns) -> Value:
    def expand(node: TreeNode) -> str:
        return canonical(node, columns).text

    window = time_window(expression, expand) or session_window(expression, expand)
    parts = [canonical(child, columns) for child in expression.children]
    if window is None:
        return merged(f"named_struct({', '.join(one.text for one in parts)})", parts)
    value = merged(window.text, parts, type="struct<start:timestamp,end:timestamp>")
    return value._replace(windows=value.windows | {window})


def _python_function(expression: TreeNode, columns: Columns) -> Value:
    name = str(expression.fields.get("name", ""))
    parts = [canonical(child, columns) for child in expression.children]
    value = merged(f"{name}({', '.join(one.text for one in parts)})", parts)
    type_ = type_name(expression.fields.get("dataType", ""))
    return value._replace(functions=value.functions | {name}, type=type_)


def _subquery(expression: TreeNode, columns: Columns) -> Value:
    parts = [canonical(child, columns) for child in expression.children]
    plan = _digest(repr(_without_ids(expression.fields.get("plan"))))
    return merged(f"{_word(expression.name)}({', '.join([*(one.text for one in parts), 'plan ' + plan])})", parts)


def _without_ids(value: Any) -> Any:
    if isinstance(value, Mapping):
        noise = NOISE | {"id"} if str(value.get(CLASS, "")).endswith(".CTERelationDef") else NOISE
        return {key: _without_ids(one) for key, one in sorted(value.items()) if key not in noise or key == CLASS}
    return [_without_ids(one) for one in value] if isinstance(value, list) else value


def _call(expression: TreeNode, columns: Columns) -> Value:
    parts = [canonical(child, columns) for child in expression.children]
    arguments = [one.text for one in parts if expression.name not in SEEDED]
    for key, value in sorted(expression.fields.items()):
        if key in NOISE or value is None or value is False or value in ([], {}):
            continue
        # An integer may be the index of a child.
        is_place = isinstance(value, int) and not isinstance(value, bool) and value in range(len(expression.children))
        if is_place or (
            isinstance(value, list)
            and all(isinstance(one, (int, list)) or (isinstance(one, Mapping) and CLASS in one) for one in value)
        ):
            continue
        arguments.append(f"{key} {object_name(value) or type_name(value)}")
    text = ", ".join(arguments)
    if expression.name in ("StaticInvoke", "Invoke"):
        text += f" {{function {expression.fields.get('functionName')}}}"
    if options := expression.fields.get(LEFT_OUT):
        text += f" {{options {options}}}"
    return merged(f"{_word(expression.name)}({text})", parts)


def _lambda(expression: TreeNode, columns: Columns) -> Value:
    body, *arguments = expression.children
    around = sum(ARGUMENT.fullmatch(value.text) is not None for value in columns.values())
    named = {
        attribute_id(one): Value(f"argument {number}", type=type_name(one.fields.get("dataType", "")))
        for number, one in enumerate(arguments, start=around + 1)
    }
    value = canonical(body, {**columns, **named})
    return merged(f"({', '.join(one.text for one in named.values())}) -> {value.text}", [value], type=value.type)


def _word(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


WRITERS: Mapping[str, Callable[[TreeNode, Columns], Value]] = {
    **dict.fromkeys(("AttributeReference", "NamedLambdaVariable", "CommonExpressionRef"), _reference),
    "LambdaFunction": _lambda,
    "Literal": _literal,
    "Cast": _cast,
    **dict.fromkeys(("And", "Or"), _and_or),
    "Not": _not,
    **dict.fromkeys(("TimeAdd", "TimestampAddInterval", "IsNull", "IsNotNull", "In", "CaseWhen"), _composed),
    **dict.fromkeys(("GetStructField", "AggregateExpression"), _composed),
    "CreateNamedStruct": _struct,
    **dict.fromkeys(("PythonUDF", "PythonUDAF"), _python_function),
    **dict.fromkeys(("ScalarSubquery", "Exists", "ListQuery", "InSubquery"), _subquery),
}
