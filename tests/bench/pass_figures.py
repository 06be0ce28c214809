#!/usr/bin/env python3
"""Measures the effect of each pass on a real model, for the examples in docs/passes.md. See README.md beside this file.

    python tests/bench/pass_figures.py [--shared DIR] [--tool FILE] > docs/pass_figures.tsv

Each line of the result is one run of transform_graph: the pass, the graph, its call, the transforms before it, and the nodes,
bytes and rewrites that the tool reports for that call alone. If a pass matches in no shared model, one of its golden cases is
used. bazel run //tests/transforms:print_pass_docs > docs/passes.md updates the page.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
FROZEN = 'strip_unused_nodes fold_constants'
COLUMNS = ['pass', 'graph', 'call', 'before it', 'nodes before', 'nodes after', 'bytes before', 'bytes after', 'rewrites']

# By pass: the model to try first, the transforms before the pass, and its call. Other passes use a golden case.
EXAMPLES = {
    'add_default_attributes': ('mobilenet_v2', '', 'add_default_attributes'),
    'backport_concatv2': ('inception_v3', '', 'backport_concatv2'),
    'common_subexpressions': ('facemesh_attention', '', 'common_subexpressions'),
    'convert_float16_weights': ('mobilenet_v2', '', 'convert_float16_weights'),
    'defuse_ops': ('inception_v3', 'fold_old_batch_norms fuse_activations', 'defuse_ops'),
    'flatten_atrous_conv': ('posenet', '', 'flatten_atrous_conv(dilations=true)'),
    'fold_batch_norms': ('inception_v3', FROZEN, 'fold_batch_norms'),
    'fold_constants': ('inception_v3', '', 'fold_constants'),
    'fold_old_batch_norms': ('inception_v3', '', 'fold_old_batch_norms'),
    'fold_pad_into_conv': ('mobilenet_v2', '', 'fold_pad_into_conv'),
    'fold_preprocessing': ('inception_v3', '', 'fold_preprocessing(mean=127.5, std=127.5, input=uint8)'),
    'fold_transposes': ('blazepose_lite', '', 'fold_transposes'),
    'fuse_activations': ('inception_v3', 'fold_old_batch_norms', 'fuse_activations'),
    'insert_logging': ('inception_v3', '', 'insert_logging(op=Relu)'),
    'lower_to_tflite': ('faceres', '', 'lower_to_tflite'),
    'merge_duplicate_nodes': ('facemesh_attention', '', 'merge_duplicate_nodes'),
    'obfuscate_names': ('inception_v3', '', 'obfuscate_names'),
    'quantize_nodes': ('inception_v3', 'fold_constants fold_old_batch_norms', 'quantize_nodes'),
    'quantize_for_tflite': ('mobilenet_v2', 'prepare_for_tflite', 'quantize_for_tflite(mode=dynamic)'),
    'quantize_weights': ('inception_v3', '', 'quantize_weights'),
    'remove_attribute': ('inception_v3', '', 'remove_attribute(attribute_name=_output_shapes)'),
    'remove_control_dependencies': ('inception_v3', '', 'remove_control_dependencies'),
    'remove_device': ('inception_v3', '', 'remove_device'),
    'remove_no_ops': ('selfie', '', 'remove_no_ops'),
    'remove_nodes': ('inception_v3', '', 'remove_nodes(op=Identity)'),
    'rename_attribute': ('inception_v3', '', 'rename_attribute(old_attribute_name=T, new_attribute_name=type)'),
    'rename_node': ('inception_v3', '', None),
    'rename_op': ('mobilenet_v2', '', 'rename_op(old_op_name=AddV2, new_op_name=Add)'),
    'round_weights': ('inception_v3', '', 'round_weights(num_steps=256)'),
    'set_device': ('inception_v3', '', 'set_device(device="/device:GPU:0")'),
    'simplify_arithmetic': ('efficientpose', '', 'simplify_arithmetic'),
    'sort_by_execution_order': ('inception_v3', '', 'sort_by_execution_order'),
    'strip_unused_nodes': ('inception_v3', '', 'strip_unused_nodes'),
}


def interface(folder):
    spec = json.loads((folder / 'spec.json').read_text())
    return [each['name'] for each in spec['inputs']], spec['outputs']


def golden_case(name):
    """Returns the first case of the pass that changes its graph: folder, call and declared interface."""
    for expected in sorted((REPOSITORY / 'tests/golden' / name).glob('*.expected.pbtxt')):
        graph = expected.with_name(expected.name.replace('.expected', ''))
        head = dict(line[2:].split(': ', 1) for line in graph.read_text().splitlines()
                    if line.startswith('# ') and ': ' in line)
        names = [[each for each in head.get(key, '').split(', ') if each] for key in ('INPUTS', 'OUTPUTS')]
        if head['RUN'] == name or head['RUN'].startswith(name + '('):
            return graph, head['RUN'], names[0], names[1]
    raise SystemExit(f'{name}: no golden case changes its graph')


def measure(tool, graph, inputs, outputs, before, call):
    transforms = f'{before} {call}'.strip()
    with tempfile.TemporaryDirectory() as folder:
        command = [tool, f'--in_graph={graph}', f'--out_graph={folder}/out.pb', f'--transforms={transforms}',
                   '--verify=off', '--json']
        command += [f'--inputs={",".join(inputs)}'] if inputs else []
        command += [f'--outputs={",".join(outputs)}'] if outputs else []
        done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY / 'tests/golden')
    if done.returncode != 0:
        raise SystemExit(f'{graph}: {transforms}: {done.stderr.strip()}')
    return json.loads(done.stdout)['passes'][-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--shared', type=pathlib.Path, default=REPOSITORY.parent / 'shared')
    parser.add_argument('--tool', default='transform_graph')
    options = parser.parse_args()

    print('# ' + '\t'.join(COLUMNS))
    for source in sorted((REPOSITORY / 'transforms/passes').glob('*.cc')):
        name = source.stem
        preferred, before, call = EXAMPLES.get(name, (None, '', name))
        others = sorted(folder.name for folder in (options.shared / 'models').iterdir())
        for shown in ([preferred] if preferred else []) + [each for each in others if each != preferred]:
            folder = options.shared / 'models' / shown
            if name not in EXAMPLES or not (folder / 'model.pb').exists():
                continue
            inputs, outputs = interface(folder)
            asked = call or f'{name}(old_node_name="{inputs[0]}", new_node_name="image")'
            report = measure(options.tool, folder / 'model.pb', inputs, outputs, before, asked)
            if report['rewrites'] > 0:
                call = asked
                break
        else:
            before = ''
            graph, call, inputs, outputs = golden_case(name)
            report = measure(options.tool, graph, inputs, outputs, before, call)
            shown = str(graph.relative_to(REPOSITORY))
        print('\t'.join([name, shown, call, before] +
                        [str(report[key]) for key in
                         ('nodes_before', 'nodes_after', 'bytes_before', 'bytes_after', 'rewrites')]))


if __name__ == '__main__':
    main()
