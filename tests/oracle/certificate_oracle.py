"""Loads models with a certificate at their end in TensorFlow and LiteRT, and compares their outputs with the same models
without it.

optimize_model writes the GraphDef. Of TensorFlow Lite models, for which no tool writes a certificate yet, the bytes of one
are appended here. certificate.json records versions and outcome; PERMAFROST_UPDATE_ORACLE=1 rewrites it.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
DIGITS = WORKSPACE / 'tests/models/digits'
TOOL = pathlib.Path(os.environ.get('PERMAFROST', WORKSPACE / 'bazel-bin/tools/permafrost'))
RECORD = pathlib.Path(__file__).with_name('certificate.json')


def run(*command):
    subprocess.run([str(part) for part in command], check=True, capture_output=True)


def tensorflow_outputs(content, images):
    import tensorflow as tf
    definition = tf.compat.v1.GraphDef()
    definition.ParseFromString(content)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name='')
        with tf.compat.v1.Session(graph=graph) as session:
            return session.run('probabilities:0', {'image:0': images})


def litert_outputs(content, images):
    from ai_edge_litert import interpreter as litert
    model = litert.Interpreter(model_content=content, num_threads=1)
    model.resize_tensor_input(model.get_input_details()[0]['index'], images.shape)
    model.allocate_tensors()
    model.set_tensor(model.get_input_details()[0]['index'], images)
    model.invoke()
    return model.get_tensor(model.get_output_details()[0]['index'])


class CertificateInModel(unittest.TestCase):
    def test_is_skipped(self):
        import ai_edge_litert
        import tensorflow as tf
        images = np.load(DIGITS / 'eval_images.npy')[:32].astype(np.float32)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            run(TOOL, 'optimize_model', DIGITS / 'digits.pb', folder / 'best.pb', f'--inputs=image={DIGITS}/eval_images.npy',
                '--output_layer=probabilities', '--samples=50', '--minimize=size', '--delegates=reference', '--threads=1')
            run(TOOL, 'convert_model', DIGITS / 'digits.pb', folder / 'model.tflite', '--outputs=probabilities')
            whole = (folder / 'best.pb').read_bytes()
            size = json.loads((folder / 'best.json').read_text())['result']['bytes']
            lite = (folder / 'model.tflite').read_bytes()
        certificate = whole[size:]
        self.assertTrue(certificate.endswith(b'PFcertv1'))
        found = {'tensorflow': tf.__version__, 'litert': ai_edge_litert.__version__}
        for tool, outputs, before, after in [('GraphDef', tensorflow_outputs, whole[:size], whole),
                                             ('tflite', litert_outputs, lite, lite + certificate)]:
            found[tool] = 'identical' if np.array_equal(outputs(before, images), outputs(after, images)) else 'different'
        if os.environ.get('PERMAFROST_UPDATE_ORACLE'):
            RECORD.write_text(json.dumps(found, indent=2) + '\n')
        self.assertEqual(found['GraphDef'], 'identical')
        self.assertEqual(found['tflite'], 'identical')
        self.assertEqual(json.loads(RECORD.read_text()), found)


if __name__ == '__main__':
    unittest.main()
