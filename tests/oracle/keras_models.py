"""Keras 3 models that keras_end_to_end_oracle.py takes from export to a benchmark, with inputs for each.

Nothing is downloaded: weights are random from a seed. Batch norms take their statistics from random images, and the scales
of layers that start near zero are set to ordinary values, so that outputs depend on inputs as in trained models.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

IMAGE = (96, 96, 3)  # Smaller than the 224 pixels of the originals, for a shorter run. The graphs are the same.
CLASSES = 10
SENTENCES = np.array(['the cat sat on the mat', 'a dog and a cat', 'dogs run far; cats do not', 'Hello, hello world!'])


def calibrate(model, images):
    """Sets the statistics of batch norms from `images`, and the scales of residual branches to 0.1 to 0.5."""
    random = np.random.default_rng(7)
    normalised = [layer for layer in model._flatten_layers() if isinstance(layer, layers.BatchNormalization)]
    for layer in normalised:
        layer.momentum = 0.0
    if normalised:
        model(images, training=True)
    for weight in model.weights:
        values = weight.numpy()
        if values.ndim == 1 and values.size > 1 and np.ptp(values) == 0 and np.abs(values).max() < 1e-3:
            weight.assign(random.uniform(0.1, 0.5, values.shape) if 'gamma' in weight.name
                          else random.normal(0, 0.05, values.shape))
    return model


def application(function, shape=IMAGE):
    images = np.random.default_rng(3).uniform(0, 255, (4,) + shape).astype(np.float32)
    model = function(weights=None, input_shape=shape, classes=CLASSES, classifier_activation=None)
    return calibrate(model, images), images[:2]


def bidirectional_lstm():
    ids = np.random.default_rng(3).integers(1, 200, (2, 24)).astype(np.int32)
    model = keras.Sequential([keras.Input((24,), dtype='int32'), layers.Embedding(200, 32, mask_zero=True),
                              layers.Bidirectional(layers.LSTM(24, return_sequences=True)),
                              layers.Bidirectional(layers.GRU(16)), layers.Dense(CLASSES, activation='softmax')])
    ids[1, 15:] = 0
    return model, ids


class Positions(layers.Layer):
    """Adds a learnt vector for each position."""

    def __init__(self, most, size):
        super().__init__()
        self.table = layers.Embedding(most, size)

    def call(self, x):
        return x + self.table(keras.ops.arange(keras.ops.shape(x)[1]))


def transformer_encoder():
    """Two blocks of attention over sequences of any length, with learnt positions."""
    tokens = keras.Input((None,), dtype='int32', name='tokens')
    x = Positions(64, 32)(layers.Embedding(300, 32)(tokens))
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 8)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(64, activation='gelu')(x)))
    output = layers.Dense(CLASSES, activation='softmax')(layers.GlobalAveragePooling1D()(x))
    return keras.Model(tokens, output), np.random.default_rng(3).integers(0, 300, (2, 20)).astype(np.int32)


def text_vectorization():
    vectorise = layers.TextVectorization(max_tokens=40, output_sequence_length=8, ngrams=2)
    vectorise.adapt(SENTENCES.tolist())
    text = keras.Input((), dtype='string', name='text')
    x = layers.GlobalAveragePooling1D()(layers.Embedding(40, 16)(vectorise(text)))
    return keras.Model(text, layers.Dense(3, activation='softmax')(x)), SENTENCES.astype(object)


def string_lookup():
    """Features of several kinds, as from a table: strings, integers, numbers."""
    colour = keras.Input((1,), dtype='string', name='colour')
    code = keras.Input((1,), dtype='int64', name='code')
    age = keras.Input((1,), name='age')
    normalise = layers.Normalization(axis=None, mean=40.0, variance=100.0)
    x = layers.Concatenate()([
        layers.StringLookup(vocabulary=['red', 'green', 'blue'], output_mode='one_hot')(colour),
        layers.IntegerLookup(vocabulary=[3, 5, 8], output_mode='one_hot')(code),
        layers.CategoryEncoding(4, output_mode='one_hot')(layers.Discretization([20.0, 40.0, 60.0])(age)),
        normalise(age)])
    model = keras.Model({'colour': colour, 'code': code, 'age': age}, layers.Dense(2, activation='softmax')(x))
    return model, {'colour': np.array([['red'], ['pink'], ['blue']], object),
                   'code': np.array([[5], [4], [3]], np.int64), 'age': np.array([[18], [44], [71]], np.float32)}


def two_outputs():
    image = keras.Input((32, 32, 3), name='image')
    x = layers.Conv2D(16, 3, strides=2, activation='relu')(image)
    x = layers.BatchNormalization()(x)
    x = layers.DepthwiseConv2D(3, activation='silu')(x)
    label = layers.Dense(CLASSES, activation='softmax', name='label')(layers.GlobalAveragePooling2D()(x))
    box = layers.Dense(4, name='box')(layers.Flatten()(layers.MaxPooling2D(4)(x)))
    images = np.random.default_rng(3).random((4, 32, 32, 3), np.float32)
    return calibrate(keras.Model(image, {'label': label, 'box': box}), images), images[:2]


def dynamic_length():
    """Audio-like sequences of any length."""
    sequence = keras.Input((None, 12), name='sequence')
    x = layers.Conv1D(16, 5, padding='same', activation='relu')(sequence)
    x = layers.LayerNormalization()(layers.GRU(24, return_sequences=True)(x))
    x = layers.Conv1D(8, 3, padding='causal', dilation_rate=2)(x)
    model = keras.Model(sequence, layers.Dense(CLASSES)(layers.GlobalMaxPooling1D()(x)))
    return model, np.random.default_rng(3).standard_normal((2, 37, 12)).astype(np.float32)


def images_of_any_size():
    """Preprocessing inside of the model: resizing, scaling, and layers that act in training alone."""
    image = keras.Input((None, None, 3), name='image')
    x = layers.Rescaling(1 / 127.5, offset=-1)(layers.Resizing(48, 48)(image))
    x = layers.RandomRotation(0.1)(layers.RandomFlip()(x))
    x = layers.Conv2D(8, 3, activation='relu')(x)
    x = layers.Dropout(0.5)(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(image, layers.Dense(CLASSES)(x))
    return model, np.random.default_rng(3).uniform(0, 255, (2, 60, 75, 3)).astype(np.float32)


def pictures_as_files():
    """JPEG and PNG files as inputs, which the model decodes one by one, as in exports for a server."""
    def read(file):
        return tf.image.resize(tf.io.decode_image(file, channels=3, expand_animations=False), [40, 40])

    files = keras.Input((), dtype='string', name='files')
    x = layers.Lambda(lambda x: tf.map_fn(read, x, fn_output_signature=tf.TensorSpec([40, 40, 3], tf.float32)),
                      output_shape=(40, 40, 3))(files)
    x = layers.Conv2D(8, 3, activation='relu')(layers.Rescaling(1 / 127.5, offset=-1)(x))
    model = keras.Model(files, layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(x)))
    y, x, c = np.mgrid[:60, :75, :3]
    picture = ((x * (2 + c) + y * (4 - c)) % 256).astype(np.uint8)
    encoders = (tf.io.encode_jpeg, tf.io.encode_png, lambda image: tf.io.encode_jpeg(image, progressive=True))
    return model, np.array([encode(picture[i:]).numpy() for i, encode in enumerate(encoders)], object)


def u_net():
    image = keras.Input((64, 64, 3), name='image')
    down = layers.Conv2D(8, 3, padding='same', activation='relu')(image)
    x = layers.Conv2D(16, 3, padding='same', activation='relu')(layers.MaxPooling2D()(down))
    x = layers.Concatenate()([layers.Conv2DTranspose(8, 2, strides=2)(x), layers.UpSampling2D(1)(down)])
    x = layers.GroupNormalization(4)(x)
    model = keras.Model(image, layers.Conv2D(1, 1, activation='sigmoid', name='mask')(x))
    return model, np.random.default_rng(3).random((1, 64, 64, 3), np.float32)


# Name, and a function that returns a model and its input, or a dictionary of several.
MODELS = {
    'MobileNetV2': lambda: application(keras.applications.MobileNetV2),
    'MobileNetV3Small': lambda: application(keras.applications.MobileNetV3Small),
    'EfficientNetB0': lambda: application(keras.applications.EfficientNetB0),
    'EfficientNetV2B0': lambda: application(keras.applications.EfficientNetV2B0),
    'ConvNeXtTiny': lambda: application(keras.applications.ConvNeXtTiny, (64, 64, 3)),
    'ResNet50V2': lambda: application(keras.applications.ResNet50V2, (64, 64, 3)),
    'DenseNet121': lambda: application(keras.applications.DenseNet121, (64, 64, 3)),
    'Xception': lambda: application(keras.applications.Xception),
    'bidirectional LSTM': bidirectional_lstm,
    'transformer encoder': transformer_encoder,
    'TextVectorization': text_vectorization,
    'StringLookup': string_lookup,
    'two outputs': two_outputs,
    'dynamic length': dynamic_length,
    'images of any size': images_of_any_size,
    'pictures as files': pictures_as_files,
    'U-Net': u_net,
}


def make(name):
    keras.backend.clear_session()
    keras.utils.set_random_seed(1)
    return MODELS[name]()
