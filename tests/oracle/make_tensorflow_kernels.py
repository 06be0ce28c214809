"""Writes tools/selective/tensorflow_kernels.txt: the kernel classes of TensorFlow's registry, by op, device and
attributes.

    python tests/oracle/make_tensorflow_kernels.py > tools/selective/tensorflow_kernels.txt

The registry lists the conditions of each kernel, but not the text of its class, by which selective registration selects
kernels. So the script creates a matching node for each kernel and queries TensorFlow for the class of the node. Kernels of one op
whose texts differ only in types share a line; the head of the file describes its grammar.
"""

import collections
import itertools
import re

import tensorflow as tf
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import kernels
from tensorflow.python.framework import op_def_registry
from tensorflow.python.util import _pywrap_kernel_registry

DEVICES = {'CPU': 'cpu', 'GPU': 'gpu', 'DEFAULT': 'any'}
DEVICE = '@'
TOKEN = re.compile(r'(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*')
MAX_CANDIDATES = 2000
MIN_SET_USES = 3

HEAD = """\
# The kernel classes of TensorFlow {version}, made by tests/oracle/make_tensorflow_kernels.py from its registry. Facts
# only: which text stands in the registration of the kernel that TensorFlow chooses for a node.
#
#   type NUMBER NAME S0 S1 S2 S3     how C++ spells an element type in those texts, in four styles; "." for as before
#   set NAME VALUES                  a list of values that many kernels share
#   OP ATTR=DEFAULT ...              an op, and the defaults of the attributes that its kernels ask about
#    @=DEVICES ATTR=VALUES ...: CLASS     its kernels, one line for those whose texts are alike
#
# A kernel serves a node when the node's device is among its devices and every named attribute has one of the values.
# Kernels for the device "any" come last. "!N" is the priority, where it is not 0; a line without _kernel serves nodes
# without that attribute. Of ATTR*=VALUES all elements of the list must be among the values. In CLASS, {{ATTR:N}}
# stands for the spelling of the attribute's type in style N, {{ATTR}} for style 0, and {{@}} for the name of the
# device.
"""


def spellings():
    """Returns spellings by type name in four styles: type macros, short, C, and short with the old int64."""
    styles = {}
    for bits in (8, 16, 32, 64):
        for sign in ('int', 'uint'):
            name = f'{sign}{bits}'
            short = f'{name}_t' if name == 'int64' else name
            styles[name] = [f'::{name}_t', short, f'{name}_t', name]
    for name in ('bfloat16', 'complex64', 'complex128', 'qint8', 'quint8', 'qint16', 'quint16', 'qint32', 'int2',
                 'uint2', 'int4', 'uint4', 'float8_e4m3fn', 'float8_e5m2', 'float4_e2m1fn'):
        styles[name] = [f'::tensorflow::{name}', name, name, f'Eigen::{name}' if name == 'bfloat16' else name]
    for name, text in (('string', 'tstring'), ('resource', 'ResourceHandle'), ('variant', 'Variant')):
        styles[name] = [f'::tensorflow::{text}', text, text, text]
    styles['half'] = ['Eigen::half', 'Eigen::half', 'Eigen::half', 'half']
    for name, text in (('float', 'float'), ('double', 'double'), ('bool', 'bool')):
        styles[name] = [text] * 4
    styles['cpu'], styles['gpu'], styles['any'] = [['CPUDevice'] * 4, ['GPUDevice'] * 4, ['CPUDevice'] * 4]
    return styles


STYLES = spellings()


def type_name(number):
    return {'float16': 'half', 'float32': 'float', 'float64': 'double'}.get(dtypes.as_dtype(number).name,
                                                                             dtypes.as_dtype(number).name)


def value_text(value):
    """Returns an attribute's value in the syntax of the file; None if no kernel depends on it."""
    kind = value.WhichOneof('value')
    if kind == 'type':
        return type_name(value.type)
    if kind == 'list':
        return '[' + ','.join(type_name(t) for t in value.list.type) + ']'
    return {'s': lambda: f'"{value.s.decode()}"', 'i': lambda: str(value.i),
            'b': lambda: 'true' if value.b else 'false'}.get(kind, lambda: None)()


class Entry:
    """One registered kernel."""

    def __init__(self, kernel, op):
        self.device, self.label, self.priority = DEVICES[kernel.device_type], kernel.label, kernel.priority
        kinds = {a.name: a.type for a in op.attr}
        node = node_def_pb2.NodeDef(op=kernel.op, name='n')
        # On a device with specific kernels, those for any device would not be selected.
        node.device = f'/device:{"FAKE" if self.device == "any" else kernel.device_type}:0'
        if kernel.label:
            node.attr['_kernel'].s = kernel.label.encode()
        self.attrs, self.values = [], []
        for constraint in kernel.constraint:
            allowed = constraint.allowed_values.list
            is_list = kinds.get(constraint.name) == 'list(type)'
            self.attrs.append(constraint.name + ('*' if is_list else ''))
            attr = node.attr[constraint.name]
            if allowed.type:
                self.values.append([type_name(t) for t in allowed.type])
                if is_list:
                    attr.list.type.append(allowed.type[0])
                else:
                    attr.type = allowed.type[0]
            elif allowed.s:
                self.values.append([f'"{s.decode()}"' for s in allowed.s])
                attr.s = allowed.s[0]
            elif allowed.i:
                self.values.append([str(i) for i in allowed.i])
                attr.i = allowed.i[0]
            else:
                self.values.append(['true' if b else 'false' for b in allowed.b])
                attr.b = allowed.b[0]
        # An attribute that another kernel of the op constrains must be present, or TensorFlow finds no kernel.
        for attr in op.attr:
            if attr.type == 'type' and not attr.HasField('default_value') and attr.name not in node.attr:
                node.attr[attr.name].type = dtypes.variant.as_datatype_enum
        found = _pywrap_kernel_registry.TryFindKernelClass(node.SerializeToString())
        self.text = found.decode() if found else ''

    def cases(self):
        """Returns its values one by one, starting with the device. The values of a list stay together."""
        choices = [[(self.device,)]]
        for attr, values in zip(self.attrs, self.values):
            choices.append([tuple(values)] if attr.endswith('*') else [(v,) for v in values])
        return itertools.product(*choices)


def render(template, attrs, case):
    for i, attr in enumerate(attrs):
        for style in range(4):
            hole = '{%s%s}' % (attr, f':{style}' if style else '')
            if hole in template:
                template = template.replace(hole, STYLES[case[i][0]][style])
    return template


def candidates(text, attrs, case):
    """Returns templates that produce the text of the case, those with most holes first."""
    tokens = sorted(set(TOKEN.findall(text)))
    options = []
    for token in tokens:
        holes = []
        for i, attr in enumerate(attrs):
            for style in range(4):
                spelled = STYLES.get(case[i][0], [])
                if spelled and spelled[style] == token and token not in spelled[:style]:
                    holes.append('{%s%s}' % (attr, f':{style}' if style else ''))
                elif spelled and spelled[style] == token and style and len(case[i]) == 1:
                    holes.append('{%s:%d}' % (attr, style))
        options.append(holes + [token])
    for choice in itertools.islice(itertools.product(*options), MAX_CANDIDATES):
        by_token = dict(zip(tokens, choice))
        yield TOKEN.sub(lambda m: by_token[m.group()], text)


def templates(group, attrs):
    """Yields (template, cases) that together cover the group: {case: text}."""
    left = dict(group)
    while left:
        # A case whose types all differ identifies most of the holes.
        case = max(left, key=lambda c: (len(set(c)), -list(left).index(c)))
        best, covered = None, []
        for template in candidates(left[case], attrs, case):
            hits = [c for c, text in left.items() if render(template, attrs, c) == text]
            if len(hits) > len(covered):
                best, covered = template, hits
        yield best, covered
        for c in covered:
            del left[c]


def merged(cases, attrs):
    """Returns the cases as a small number of products of sets."""
    best = None
    for order in itertools.islice(itertools.permutations(range(len(attrs))), 24):
        products = [tuple(frozenset(v) for v in case) for case in cases]
        for dimension in order:
            if attrs[dimension].endswith('*'):
                continue
            groups = collections.OrderedDict()
            for product in products:
                rest = product[:dimension] + (None,) + product[dimension + 1:]
                groups[rest] = groups.get(rest, frozenset()) | product[dimension]
            products = [r[:dimension] + (values,) + r[dimension + 1:] for r, values in groups.items()]
        if best is None or len(products) < len(best):
            best = products
    return best


def kernel_lines(entries):
    """Returns the lines of one op as (head, [(attr, frozenset)], class)."""
    groups = collections.OrderedDict()
    for entry in entries:
        if not entry.text:
            continue
        key = entry.priority, entry.label, tuple(entry.attrs)
        for case in entry.cases():
            groups.setdefault(key, {})[case] = entry.text
    for (priority, label, attrs), group in groups.items():
        names = (DEVICE,) + attrs
        for template, cases in templates(group, names):
            for product in merged(cases, names):
                head = (f' !{priority}' if priority else '') + (f' _kernel="{label}"' if label else '')
                yield head, list(zip(names, product)), template


def joined(values):
    return ','.join(sorted(values))


def main():
    by_op = collections.defaultdict(list)
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in DEVICES:
            by_op[kernel.op].append(Entry(kernel, op_def_registry.get(kernel.op)))
    lines = {op: list(kernel_lines(entries)) for op, entries in sorted(by_op.items())}
    uses = collections.Counter(v for found in lines.values() for _, attrs, _ in found for _, v in attrs if len(v) > 2)
    named = {values: f'S{i}' for i, (values, count) in enumerate(
        sorted(uses.items(), key=lambda item: (-item[1], joined(item[0])))) if count >= MIN_SET_USES}
    print(HEAD.format(version=tf.__version__), end='')
    for name, styles in sorted(STYLES.items()):
        if name not in DEVICES.values():
            print('type', dtypes.as_dtype(name).as_datatype_enum, name, *(s if i == 0 or s != styles[i - 1] else '.' for i, s in enumerate(styles)))
    for values, name in named.items():
        print('set', name, joined(values))
    for op, found in lines.items():
        asked = {attr.rstrip('*') for _, attrs, _ in found for attr, _ in attrs}
        defaults = [(a.name, value_text(a.default_value)) for a in op_def_registry.get(op).attr if a.name in asked]
        print(op, *(f'{name}={text}' for name, text in defaults if text is not None))
        for head, attrs, text in found:
            print(f'{head} ' + ' '.join(f'{attr}={named.get(v, joined(v))}' for attr, v in attrs) + f': {text}')


if __name__ == '__main__':
    main()
