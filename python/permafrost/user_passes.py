"""Passes written in Python. They run in the pipeline like other passes, with the same checks afterwards.

    @permafrost.pass_('drop_double_negation', pattern='outer=Neg(inner=Neg(x=*))')
    def drop_double_negation(match, graph):
        graph.replace_uses(match['outer'].name, match['x'])
        return True

    model.transform('drop_double_negation fold_constants')
"""

import inspect
import re
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Optional

from permafrost import _checks, _native, calls, errors, values

_NAME = re.compile(r'[A-Za-z0-9_]+')
_registered: Dict[str, '_Definition'] = {}


def registered():
    """Returns the registered passes by name."""
    return _registered


class Node:
    """A node of the graph that a pass edits. Valid while the pass runs and the node exists."""

    __slots__ = ('_native',)

    def __init__(self, native):
        self._native = native

    @property
    def name(self) -> str:
        return self._native.describe()[0]

    @property
    def op(self) -> str:
        return self._native.describe()[1]

    @op.setter
    def op(self, value: str):
        self._native.set_op(_checks.text(value, 'op'))

    @property
    def device(self) -> str:
        return self._native.describe()[2]

    @device.setter
    def device(self, value: str):
        self._native.set_device(_checks.text(value, 'device'))

    @property
    def inputs(self) -> List[str]:
        """The inputs: 'x' for output 0 of x, 'x:1', or '^x' for a control input. Data inputs come first."""
        return list(self._native.describe()[3])

    @inputs.setter
    def inputs(self, texts):
        self._native.set_inputs(_checks.names(texts, 'inputs'))

    def set_input(self, index: int, text: str) -> None:
        """Replaces one input."""
        self._native.set_input(_checks.integer(index, 'index'), _checks.text(text, 'text'))

    @property
    def attributes(self) -> Dict[str, Any]:
        """A copy of the attributes; `set_attribute` changes one."""
        return self._native.attributes()

    def set_attribute(self, key: str, value: Any) -> None:
        """Sets an attribute to a bool, int, float, str, bytes, `DType`, `Shape`, array, or list."""
        self._native.set_attribute(_checks.text(key, 'key'), value)

    def remove_attribute(self, key: str) -> bool:
        """Removes an attribute. Returns False if it does not exist."""
        return self._native.remove_attribute(_checks.text(key, 'key'))

    @property
    def is_constant(self) -> bool:
        return self._native.is_constant

    @property
    def value(self):
        """The array of a constant. An error for other nodes."""
        return values.array_of(self._native.constant())

    @property
    def num_uses(self) -> int:
        """The number of inputs of other nodes, including control inputs, that read this node."""
        return self._native.num_uses

    @property
    def is_endpoint(self) -> bool:
        """True if the node is an input or output of the model, which a pass must keep."""
        return self._native.is_endpoint

    def rename(self, name: str) -> None:
        self._native.rename(_checks.text(name, 'name'))

    def remove(self) -> None:
        """Removes the node. An error if the node has readers or is an endpoint."""
        self._native.remove()

    def __repr__(self):
        name, op, _, inputs = self._native.describe()
        return f'<Node {name!r} ({op}) of {list(inputs)}>'


class Graph:
    """The graph that a pass edits. Valid while the pass runs."""

    __slots__ = ('_native',)

    def __init__(self, native):
        self._native = native

    @property
    def nodes(self) -> List[Node]:
        """The current nodes, in order."""
        return [Node(native) for native in self._native.nodes()]

    def find(self, name: str) -> Optional[Node]:
        """Returns the node, or None if it does not exist."""
        native = self._native.find(_checks.text(name, 'name'))
        return None if native is None else Node(native)

    def unique_name(self, base: str) -> str:
        return self._native.unique_name(_checks.text(base, 'base'))

    def add_node(self, name: str, op: str, inputs=(), attributes: Optional[Dict[str, Any]] = None,
                 before: Optional[Node] = None) -> Node:
        """Adds a node, at the end or before another node."""
        return Node(self._native.add_node(_checks.text(name, 'name'), _checks.text(op, 'op'),
                                          _checks.names(inputs, 'inputs') or [], dict(attributes or {}),
                                          None if before is None else before._native))  # pylint: disable=protected-access

    def add_constant(self, name: str, array, before: Optional[Node] = None) -> Node:
        """Adds a constant with the values of an array, which is copied."""
        import numpy
        return Node(self._native.add_constant(_checks.text(name, 'name'), numpy.ascontiguousarray(array).reshape(
            numpy.shape(array)), None if before is None else before._native))  # pylint: disable=protected-access

    def replace_uses(self, old: str, new: str) -> None:
        """Replaces every input `old` ('x', 'x:1', or '^x' for control inputs) by `new`."""
        self._native.replace_uses(_checks.text(old, 'old'), _checks.text(new, 'new'))

    def note(self, text: str) -> None:
        """Adds a line to PassReport.notes."""
        self._native.note(_checks.text(text, 'text'))


class _Pattern(NamedTuple):
    label: str  # '' if absent.
    ops: List[str]  # Empty for any op.
    inputs: Optional[List['_Pattern']]  # None for any inputs.


class _PatternParser:
    """Parses `[label=]op[|op ...][(pattern, ...)]`, with * for any node."""

    _TOKEN = re.compile(r'\s*([A-Za-z0-9_]+|[*|=(),])')

    def __init__(self, text):
        self._text = text
        self._position = 0
        self.labels: List[str] = []

    def _peek(self):
        found = self._TOKEN.match(self._text, self._position)
        return found.group(1) if found else ''

    def _next(self):
        found = self._TOKEN.match(self._text, self._position)
        if not found:
            self._fail('an op, a label or *')
        self._position = found.end()
        return found.group(1)

    def _fail(self, expected) -> NoReturn:
        rest = self._text[self._position:].strip()
        raise errors.InvalidArgumentError(
            f"pattern: found {rest[:20]!r} at character {self._position}, expected {expected}")

    def whole(self):
        pattern = self._pattern(0)
        if self._text[self._position:].strip():
            self._fail('the end of the pattern')
        return pattern

    def _word(self):
        token = self._peek()
        if not token or token in '|=(),':
            self._fail('an op, a label or *')
        return self._next()

    def _pattern(self, depth):
        if depth > 50:
            self._fail('a pattern of at most 50 levels')
        label = ''
        word = self._word()
        if self._peek() == '=':
            self._next()
            label, word = word, self._word()
            if label == '*' or label in self.labels:
                raise errors.InvalidArgumentError(f"pattern: the label '{label}' is given twice or is no name")
            self.labels.append(label)
        ops = [word]
        while self._peek() == '|':
            self._next()
            ops.append(self._word())
        inputs = None
        if self._peek() == '(':
            self._next()
            inputs = [self._pattern(depth + 1)]
            while self._peek() == ',':
                self._next()
                inputs.append(self._pattern(depth + 1))
            if self._peek() != ')':
                self._fail("',' or ')'")
            self._next()
        return _Pattern(label, [] if '*' in ops else ops, inputs)


class Match:
    """The nodes matched by a pattern: `match['label']`, or `match.head` for the outermost one."""

    __slots__ = ('head', '_nodes', 'tensors')

    def __init__(self, head):
        self.head = head
        self._nodes: Dict[str, Node] = {}
        #: The texts of the tensors that were matched, by label: 'x' or 'x:1'. What an edit gives another input.
        self.tensors: Dict[str, str] = {}

    def __getitem__(self, label: str) -> Node:
        return self._nodes[label]

    def __contains__(self, label):
        return label in self._nodes


def _split(tensor):
    name, colon, port = tensor.rpartition(':')
    return (name, int(port)) if colon and port.isdigit() else (tensor, 0)


def _match(graph, pattern, tensor, match):
    """Returns whether `tensor` matches, and adds the matched nodes to `match`."""
    node = graph.find(_split(tensor)[0])
    if node is None:
        return False
    _, op, _, inputs = node._native.describe()  # pylint: disable=protected-access
    if pattern.ops and op not in pattern.ops:
        return False
    if pattern.inputs is not None:
        data = [text for text in inputs if not text.startswith('^')]
        if len(data) != len(pattern.inputs):
            return False
        if not all(_match(graph, item, text, match) for item, text in zip(pattern.inputs, data)):
            return False
    if pattern.label:
        match._nodes[pattern.label] = node  # pylint: disable=protected-access
        match.tensors[pattern.label] = tensor
    return True


class _Definition:
    """The definition of a pass."""

    def __init__(self, function, name, pattern):
        self._function = function
        self._name = name
        self._pattern = None if pattern is None else _PatternParser(_checks.text(pattern, 'pattern')).whole()
        first = 1 if pattern is None else 2
        parameters = list(inspect.signature(function).parameters.values())
        self._parameters = {item.name: item.default for item in parameters[first:]}
        if len(parameters) < first:
            raise errors.InvalidTypeError(f"pass '{name}': the function takes {len(parameters)} arguments, expected "
                                          f"{'(graph, ...)' if pattern is None else '(match, graph, ...)'}")
        for parameter, default in self._parameters.items():
            if not isinstance(default, (bool, int, float, str)):
                raise errors.InvalidTypeError(
                    f"pass '{name}': parameter '{parameter}' has no default that is a bool, int, float or str")

    def check(self, arguments):
        """Raises ValueError for invalid arguments."""
        self._parse(arguments)

    def _parse(self, arguments):
        given = {}
        for key, text in arguments:
            if key not in self._parameters:
                raise errors.InvalidArgumentError(
                    f"{self._name}: unknown parameter '{key}', expected one of {sorted(self._parameters)}")
            if key in given:
                raise errors.InvalidArgumentError(f"{self._name}: parameter '{key}' is given twice")
            given[key] = self._value(key, text)
        return given

    def _value(self, key, text):
        kind = type(self._parameters[key])
        if kind is bool:
            if text.lower() in ('true', 'false'):
                return text.lower() == 'true'
        else:
            try:
                return kind(text)
            except ValueError:
                pass
        raise errors.InvalidArgumentError(f"{self._name}: parameter '{key}' is '{text}', expected a {kind.__name__}")

    def run(self, editor, arguments):
        """Runs the function, for each match if there is a pattern, and returns the number of rewrites."""
        given = self._parse(arguments)
        graph = Graph(editor)
        if self._pattern is None:
            if not editor.allow([]):
                return 0
            rewrites = self._function(graph, **given)
            if isinstance(rewrites, bool) or not isinstance(rewrites, int) or rewrites < 0:
                raise errors.InvalidTypeError(f"pass '{self._name}': the function returned "
                                              f'{_checks.type_name(rewrites)}, expected the number of its rewrites')
            return rewrites
        count = 0
        for name in [native.describe()[0] for native in editor.nodes()]:
            head = graph.find(name)
            if head is None:
                continue  # Removed by a previous rewrite.
            match = Match(head)
            if not _match(graph, self._pattern, name, match):
                continue
            if not editor.allow([head._native]):  # pylint: disable=protected-access
                continue
            if self._function(match, graph, **given):
                count += 1
        return count


def pass_(name: Optional[str] = None, *, pattern: Optional[str] = None) -> Callable:
    """Decorates a function as a pass with the given `name` (default: its own) for transform strings in this process.

    With a pattern, the function is called as `function(match, graph, **arguments)` for each match, and returns whether it
    rewrote the match. Without a pattern, it is called once as `function(graph, **arguments)` and returns the number of
    rewrites. Its other parameters, which need defaults of type bool, int, float or str, are the parameters of the pass.
    Afterwards the graph is validated, and the number of rewrites is compared with the changes, as after every pass.

    A pattern is `[label=]op[|op ...][(pattern, ...)]` with * for any op; patterns in parentheses match all data inputs.

    The decorated function takes the arguments of the pass and returns a call of it, like those in `permafrost.passes`. The
    original function is its attribute `function`.
    """
    if callable(name):
        return pass_()(name)

    def decorate(function):
        chosen = function.__name__ if name is None else _checks.text(name, 'name')
        if not _NAME.fullmatch(chosen):
            raise errors.InvalidArgumentError(f'name: found {chosen!r}, expected letters, digits and underscores')
        if _native.is_pass(chosen):
            raise errors.InvalidArgumentError(f"name: there is a pass '{chosen}' already")
        _registered[chosen] = _Definition(function, chosen, pattern)

        def call(*, ignore_errors=False, **arguments):
            return calls.call(chosen, arguments.items(), ignore_errors)

        make: Any = call  # Functions may have attributes, which mypy does not support.
        make.__doc__ = function.__doc__
        make.__name__ = chosen
        make.function = function
        make.pass_name = chosen
        return make

    return decorate
