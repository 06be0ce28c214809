#!/usr/bin/env python3
"""Trains the bundled digits model, freezes it as TensorFlow 1 did, and writes its labelled evaluation set.

    python3 train.py [--out DIR]            trains, and writes every file that README.md lists into DIR
    python3 train.py [--out DIR] --check    runs the model in DIR over its evaluation set and prints its accuracy

The network is small, but its graph is built to hold what a real freeze leaves behind; README.md lists it.
"""
import argparse
import json
import os
import pathlib
import sys

# TensorFlow reads these when it loads: errors only, and its own kernels instead of oneDNN's.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import sklearn.datasets
import sklearn.model_selection
import tensorflow.compat.v1 as tf

SEED = 20160501
EVAL_IMAGES = 540
BATCH = 64
EPOCHS = 80
LEARNING_RATE = 2e-3
MOMENTUM = 0.95  # of the batch norms' moving statistics
EPSILON = 1e-3  # of the batch norms; the default of TensorFlow 1's layers

MINIMUM_ACCURACY = 0.97  # below this, training or the check has failed
TOLERANCE = 1e-5  # between the probabilities of two CPUs

INPUT, LABEL, OUTPUT = "image", "label", "probabilities"
TRAINING_OUTPUTS = ["training/loss", "training/accuracy", "training/gradient_norm"]


def load_data():
    """Returns (train images, evaluation images, train labels, evaluation labels), pixels scaled to 0..1."""
    digits = sklearn.datasets.load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    labels = digits.target.astype(np.int64)
    return sklearn.model_selection.train_test_split(
        images, labels, test_size=EVAL_IMAGES, stratify=labels, random_state=SEED)


def variable(name, shape, value=None, trainable=True):
    """A reference variable, filled with `value` or, without one, drawn for a layer that ends in a Relu."""
    initializer = tf.variance_scaling_initializer(2.0) if value is None else tf.constant_initializer(value)
    return tf.get_variable(name, shape, tf.float32, initializer, trainable=trainable, use_resource=False)


def moving_statistics(channels):
    """The mean and the variance that a batch norm uses at inference."""
    return (variable("moving_mean", [channels], 0.0, trainable=False),
            variable("moving_variance", [channels], 1.0, trainable=False))


def update_statistics(moving, batch):
    """Has each training step pull the moving statistics towards those of its batch."""
    for average, value in zip(moving, batch):
        update = tf.assign_sub(average, (average - value) * (1.0 - MOMENTUM))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)


def fused_batch_norm(x, training):
    """FusedBatchNormV3 with no learned scale: as in TF-Slim, each one brings its own constant of ones."""
    channels = x.shape[-1].value
    with tf.variable_scope("BatchNorm"):
        scale = tf.constant(1.0, shape=[channels])
        offset = variable("beta", [channels], 0.0)
        moving = moving_statistics(channels)
        mean, variance = (None, None) if training else moving
        y, *batch = tf.nn.fused_batch_norm(x, scale, offset, mean, variance, EPSILON, is_training=training)
        if training:
            update_statistics(moving, batch)
    return y


def old_batch_norm(x, training):
    """Batch norm as Rsqrt, Mul, Sub and Add, as in graphs from before the fused op."""
    channels = x.shape[-1].value
    with tf.variable_scope("BatchNorm"):
        scale = variable("gamma", [channels], 1.0)
        offset = variable("beta", [channels], 0.0)
        statistics = moving_statistics(channels)
        if training:
            moving, statistics = statistics, tf.nn.moments(x, [0, 1, 2])
            update_statistics(moving, statistics)
        return tf.nn.batch_normalization(x, *statistics, offset, scale, EPSILON)


def conv(x, size, channels):
    """A Conv2D of stride 1, without bias."""
    weights = variable("weights", [size, size, x.shape[-1].value, channels])
    return tf.nn.conv2d(x, weights, strides=[1, 1, 1, 1], padding="SAME")


def depthwise_conv(x, size):
    """A DepthwiseConv2dNative of stride 1, without bias."""
    weights = variable("depthwise_weights", [size, size, x.shape[-1].value, 1])
    return tf.nn.depthwise_conv2d_native(x, weights, strides=[1, 1, 1, 1], padding="SAME")


def add_bias(x):
    return tf.nn.bias_add(x, variable("biases", [x.shape[-1].value], 0.0))


def dense(x, units):
    """A MatMul with bias."""
    return add_bias(tf.matmul(x, variable("weights", [x.shape[-1].value, units])))


def dropout(x, rate, training):
    """Dropout; at inference the Identity that it leaves behind."""
    with tf.name_scope("dropout"):
        return tf.nn.dropout(x, rate=rate) if training else tf.identity(x)


def checked(image):
    """The image, by way of a check of its rank, which becomes a NoOp, and of its values: control edges either way."""
    with tf.control_dependencies([tf.assert_rank(image, 4)]):
        return tf.verify_tensor_all_finite(image, "the image holds a NaN or an infinity")


def network(image, training):
    """Returns the logits of `image`, 8x8 grey pixels in 0..1."""
    x = checked(image)
    with tf.variable_scope("conv1"):
        x = tf.nn.relu(fused_batch_norm(conv(x, 3, 32), training))
    with tf.variable_scope("conv2"):
        x = tf.nn.relu(fused_batch_norm(conv(x, 3, 32), training))
    x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID", name="pool")
    with tf.variable_scope("conv3_depthwise"):
        x = tf.nn.relu(fused_batch_norm(depthwise_conv(x, 3), training))
    with tf.variable_scope("conv3_pointwise"):
        x = tf.nn.relu(old_batch_norm(conv(x, 1, 64), training))
    with tf.variable_scope("conv4"):
        x = tf.nn.relu(add_bias(conv(x, 3, 64)))
        x = dropout(x, 0.25, training)
    x = tf.reshape(x, [-1, np.prod(x.shape.as_list()[1:])], name="flatten")
    with tf.variable_scope("hidden"):
        x = tf.nn.relu(dense(x, 256))
        x = dropout(x, 0.5, training)
    with tf.variable_scope("logits"):
        return dense(x, 10)


def build(training):
    """Builds the model into a new graph, for training or for inference, and returns (graph, loss).

    The training branch is there either way, as in the one graph that many TensorFlow 1 programs kept for both.
    """
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(SEED)
        image = tf.placeholder(tf.float32, [None, 8, 8, 1], name=INPUT)
        label = tf.placeholder(tf.int64, [None], name=LABEL)
        logits = network(image, training)
        tf.nn.softmax(logits, name=OUTPUT)
        with tf.name_scope("training"):
            loss = tf.losses.sparse_softmax_cross_entropy(label, logits, reduction=tf.losses.Reduction.MEAN)
            loss = tf.identity(loss, name="loss")
            hits = tf.equal(tf.argmax(logits, axis=1), label)
            tf.reduce_mean(tf.cast(hits, tf.float32), name="accuracy")
            last_layer = tf.trainable_variables("logits/")
            tf.identity(tf.global_norm(tf.gradients(loss, last_layer)), name="gradient_norm")
    return graph, loss


def open_session(graph):
    """A session of one thread, so that sums are always added up in the same order."""
    return tf.Session(graph=graph, config=tf.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1))


def train(images, labels):
    """Trains the model and returns {variable name: value}."""
    graph, loss = build(training=True)
    with graph.as_default():
        steps = EPOCHS * (len(images) // BATCH)
        step = tf.train.get_or_create_global_step()
        rate = tf.train.cosine_decay(LEARNING_RATE, step, steps)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            minimize = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
        initialize = tf.global_variables_initializer()
    rng = np.random.default_rng(SEED)
    with open_session(graph) as session:
        session.run(initialize)
        for epoch in range(1, EPOCHS + 1):
            order = rng.permutation(len(images))
            for start in range(0, len(images) - BATCH + 1, BATCH):
                batch = order[start:start + BATCH]
                feed = {f"{INPUT}:0": images[batch], f"{LABEL}:0": labels[batch]}
                _, value = session.run([minimize, loss], feed)
            if epoch % 10 == 0:
                print(f"epoch {epoch}: loss {value:.4f}")
        variables = graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
        return {v.op.name: value for v, value in zip(variables, session.run(variables))}


def freeze(values):
    """Returns the inference graph as a GraphDef whose variables are constants, with its training branch left in."""
    graph, _ = build(training=False)
    with open_session(graph) as session:
        for v in graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES):
            v.load(values[v.op.name], session)
        return tf.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), [OUTPUT] + TRAINING_OUTPUTS)


def predict(graph_def, images):
    """Returns the class probabilities of `images`."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    with open_session(graph) as session:
        return session.run(f"{OUTPUT}:0", {f"{INPUT}:0": images})


def report_accuracy(probabilities, labels):
    """Prints how many predictions are right, and exits if too few are."""
    right = int(np.sum(np.argmax(probabilities, axis=1) == labels))
    print(f"accuracy: {right} of {len(labels)} ({right / len(labels):.2%})")
    if right < MINIMUM_ACCURACY * len(labels):
        sys.exit(f"expected an accuracy of at least {MINIMUM_ACCURACY:.0%}")


def spec():
    """Returns the content of spec.json: the model's interface and its origin."""
    return {
        "inputs": [{"name": INPUT, "shape": [1, 8, 8, 1], "dtype": "float32"}],
        "outputs": [OUTPUT],
        "source": "trained by train.py on scikit-learn's digits dataset (UCI optical digits, CC BY 4.0)",
    }


def write(out):
    """Trains the model and writes it, its evaluation set and its expected outputs into the folder `out`."""
    train_images, eval_images, train_labels, eval_labels = load_data()
    graph_def = freeze(train(train_images, train_labels))
    probabilities = predict(graph_def, eval_images)
    report_accuracy(probabilities, eval_labels)
    out.mkdir(parents=True, exist_ok=True)
    (out / "digits.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
    (out / "spec.json").write_text(json.dumps(spec(), indent=1) + "\n")
    np.save(out / "eval_images.npy", eval_images)
    np.save(out / "eval_labels.npy", eval_labels)
    np.save(out / "expected_probabilities.npy", probabilities)


def check(out):
    """Runs the model in the folder `out` over its evaluation set; exits if it is not as good or as exact as it was."""
    graph_def = tf.GraphDef.FromString((out / "digits.pb").read_bytes())
    probabilities = predict(graph_def, np.load(out / "eval_images.npy"))
    error = np.max(np.abs(probabilities - np.load(out / "expected_probabilities.npy")))
    print(f"largest difference from expected_probabilities.npy: {error:.1e}")
    report_accuracy(probabilities, np.load(out / "eval_labels.npy"))
    if not error <= TOLERANCE:
        sys.exit(f"expected a difference of at most {TOLERANCE:.0e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent,
                        help="the folder of the model's files (default: beside this script)")
    parser.add_argument("--check", action="store_true", help="train nothing; run the model that is there")
    arguments = parser.parse_args()
    tf.logging.set_verbosity(tf.logging.ERROR)  # every TensorFlow 1 call would warn that it is one
    tf.disable_v2_behavior()
    (check if arguments.check else write)(arguments.out)


if __name__ == "__main__":
    main()
