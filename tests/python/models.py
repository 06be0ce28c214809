"""Models for tests, as text."""

import permafrost

DIGITS = 'tests/models/digits/'

_NODE = 'node { name: "%s" op: "%s" %s %s }\n'
FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'


def node(name, op, inputs=(), attrs=FLOAT):
    return _NODE % (name, op, ' '.join(f'input: "{item}"' for item in inputs), attrs)


def placeholder(name, shape='', dtype='DT_FLOAT'):
    dims = ''.join(f'dim {{ size: {dim} }}' for dim in shape)
    return node(name, 'Placeholder', attrs=f'attr {{ key: "dtype" value {{ type: {dtype} }} }}'
                                           f'attr {{ key: "shape" value {{ shape {{ {dims} }} }} }}')


def constant(name, values, dtype='DT_FLOAT', field='float_val'):
    dims = f'dim {{ size: {len(values)} }}'
    content = ' '.join(f'{field}: {value}' for value in values)
    return node(name, 'Const', attrs=f'attr {{ key: "dtype" value {{ type: {dtype} }} }}'
                                     f'attr {{ key: "value" value {{ tensor {{ dtype: {dtype} tensor_shape {{ {dims} }} '
                                     f'{content} }} }} }}')


# y = relu(-(-x) + w)
SMALL = (placeholder('x', [-1, 4]) + constant('w', [1, 2, 3, 4]) + node('inner', 'Neg', ['x']) +
         node('outer', 'Neg', ['inner']) + node('sum', 'Add', ['outer', 'w']) + node('y', 'Relu', ['sum']))

# A loop that never ends: counts up while a value stays below 0.
ENDLESS = (constant('zero', [0]).replace('dim { size: 1 }', '') +
           node('enter', 'Enter', ['x'], FLOAT + 'attr { key: "frame_name" value { s: "f" } }') +
           node('next', 'NextIteration', ['add']) +
           node('merge', 'Merge', ['enter', 'next'], FLOAT + 'attr { key: "N" value { i: 2 } }') +
           node('bound', 'Enter', ['zero'], FLOAT + 'attr { key: "frame_name" value { s: "f" } }'
                'attr { key: "is_constant" value { b: true } }') +
           node('less', 'Less', ['merge', 'bound']) + node('go', 'LoopCond', ['less'], '') +
           node('switch', 'Switch', ['merge', 'go']) + node('add', 'Neg', ['abs']) +
           node('abs', 'Abs', ['switch:1']) + node('exit', 'Exit', ['switch']) + node('y', 'Identity', ['exit']) +
           placeholder('x'))


def small():
    return permafrost.load(SMALL.encode())


def digits():
    return permafrost.load(DIGITS + 'digits.pb')
