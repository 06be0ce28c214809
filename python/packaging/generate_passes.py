"""Writes permafrost/passes.py from the output of `transform_graph --list_passes --json` on standard input."""

import json
import keyword
import sys
import textwrap

HEADER = '''"""A function for each pass and preset, for `Model.transform([...])`. Generated from their definitions.

    model.transform([passes.strip_unused_nodes(), passes.quantize_weights(minimum_size=1024)])

Every function takes `ignore_errors`: if the pass fails, the graph stays as it was before the pass.
"""

from typing import Sequence, Tuple, Union

from permafrost.calls import PassCall, call


'''

TYPES = {'string': 'str', 'bool': 'bool', 'int32': 'int', 'int64': 'int', 'float': 'float'}


def default(param):
    """Returns the Python default. Absent parameters are omitted from the call; the definition has their defaults."""
    return '' if param['is_required'] else ' = None'


def annotation(param):
    kind = TYPES[param['type']]
    if param['is_list']:
        return f'Union[None, {kind}, Sequence[{kind}]]' if not param['is_required'] else f'Union[{kind}, Sequence[{kind}]]'
    return kind if param['is_required'] else f'Union[None, {kind}]'


def wrap(text, indent):
    return textwrap.fill(text, 110, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
                         break_on_hyphens=False)


def docstring(entry, params):
    summary = ' '.join(filter(None, [entry['summary'], entry.get('why', '')]))
    lines = [wrap(summary, '    ').strip()]
    if entry.get('transforms'):
        lines += ['', '    Expands to:', textwrap.indent(entry['transforms'].strip(), '        ')]
    if entry.get('numerics'):
        lines += ['', wrap(f'Numerics: {entry["numerics"]}.', '    ')]
    if params:
        lines += ['', '    Args:']
        for param in params:
            notes = param['help']
            if param['default'] and not param['is_required']:
                notes += f' Default: {param["default"]}.'
            if param['bounds']:
                notes += f' Expected: {param["bounds"]}.'
            lines.append(textwrap.fill(f'{name_of(param)}: {notes}', 110, initial_indent='      ',
                                       subsequent_indent='        ', break_long_words=False, break_on_hyphens=False))
    body = '\n'.join(lines).replace('\\', '\\\\').replace('"""', '\\"\\"\\"')
    return f'    """{body}\n    """' if '\n' in body else f'    """{body}"""'


def name_of(param):
    return param['name'] + '_' if keyword.iskeyword(param['name']) else param['name']


def function(entry):
    params = entry.get('params', [])
    arguments = ''.join(f'{name_of(param)}: {annotation(param)}{default(param)}, ' for param in params)
    given = ''.join(f"('{param['name']}', {name_of(param)}), " for param in params)
    return (f"def {entry['name']}(*, {arguments}ignore_errors: bool = False) -> PassCall:\n"
            f'{docstring(entry, params)}\n'
            f"    return call('{entry['name']}', ({given}), ignore_errors)\n")


def main():
    entries = sorted(json.load(sys.stdin), key=lambda entry: entry['name'])
    sys.stdout.write(HEADER + '\n\n'.join(function(entry) for entry in entries) + '\n\n')
    names = ''.join(f"    '{entry['name']}',\n" for entry in entries)
    sys.stdout.write(f'__all__: Tuple[str, ...] = (\n{names})\n')


if __name__ == '__main__':
    main()
