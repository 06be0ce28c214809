"""The layers of Keras 3, each with the arguments and inputs that it is traced with.

A row is (label, function that makes the layer, inputs). An input is a shape for floats in [0, 1), or an array. The first
axis of a shape is the batch. A layer that is random or active only in training has a second row, whose label ends with
"training".
"""

import keras
import numpy as np
from keras import layers

WORDS = np.array([['The cat sat; on the mat!'], ['a dog, a CAT (and Caf\u00e9)']])
IDS = np.array([[1, 2, 3, 0], [4, 4, 0, 0]], np.int64)
SEQUENCE, IMAGE, VOLUME = (2, 6, 4), (2, 8, 8, 3), (2, 4, 6, 6, 3)

# Layers without ops of their own, and layers that need more than TensorFlow. Aliases are found by identity.
UNTRACED = {
    'Layer': 'a base class', 'Wrapper': 'a base class', 'InputLayer': 'a placeholder', 'FlaxLayer': 'needs JAX',
    'JaxLayer': 'needs JAX', 'TorchModuleWrapper': 'needs PyTorch', 'TFSMLayer': 'calls a SavedModel',
    'Pipeline': 'a sequence of other layers', 'MaxNumBoundingBoxes': 'takes a dictionary of labels',
    'Lambda': 'runs a function of the user', 'STFTSpectrogram': 'needs SciPy',
}


def _adapted(layer, data):
    layer.adapt(data)
    return layer


def _integer_vectorization(**kwargs):
    return lambda: _adapted(layers.TextVectorization(**kwargs), WORDS[:, 0])


def rows():
    """Yields (name of the layer, label, factory, inputs, is_training)."""
    for name, *arguments in _rows():
        label, factory, inputs = arguments if len(arguments) == 3 else ('', *arguments)
        yield name, label, factory, inputs, label.endswith('training')


def _rows():
    yield 'Activation', lambda: layers.Activation('gelu'), [SEQUENCE]
    for activation in ('celu', 'elu', 'exponential', 'gelu', 'glu', 'hard_shrink', 'hard_sigmoid', 'hard_silu', 'hard_tanh',
                       'leaky_relu', 'linear', 'log_sigmoid', 'log_softmax', 'mish', 'relu', 'relu6', 'selu', 'sigmoid',
                       'silu', 'softmax', 'soft_shrink', 'softplus', 'softsign', 'sparse_plus', 'sparse_sigmoid',
                       'sparsemax', 'squareplus', 'tanh', 'tanh_shrink'):
        yield 'Activation', activation, lambda a=activation: layers.Activation(a), [SEQUENCE]
    yield 'ActivityRegularization', lambda: layers.ActivityRegularization(0.1), [SEQUENCE]
    for n, shape in ((1, SEQUENCE), (2, IMAGE), (3, VOLUME)):
        for kind in ('Average', 'Max'):
            adaptive = getattr(layers, f'Adaptive{kind}Pooling{n}D')
            yield f'Adaptive{kind}Pooling{n}D', lambda c=adaptive: c(2), [shape]
            pooling = getattr(layers, f'{kind}Pooling{n}D')
            yield f'{kind}Pooling{n}D', lambda c=pooling: c(2), [shape]
            yield f'{kind}Pooling{n}D', 'same', lambda c=pooling: c(3, 2, padding='same'), [shape]
            whole = getattr(layers, f'Global{kind}Pooling{n}D')
            yield f'Global{kind}Pooling{n}D', whole, [shape]
        convolution, transposed = getattr(layers, f'Conv{n}D'), getattr(layers, f'Conv{n}DTranspose')
        yield f'Conv{n}D', lambda c=convolution: c(4, 3), [shape]
        yield f'Conv{n}D', 'same, strides', lambda c=convolution: c(4, 3, strides=2, padding='same'), [shape]
        yield f'Conv{n}D', 'dilation', lambda c=convolution: c(4, 2, dilation_rate=2), [shape]
        yield f'Conv{n}D', 'groups', lambda c=convolution, g=shape[-1]: c(2 * g, 3, groups=g), [shape]
        yield f'Conv{n}DTranspose', lambda c=transposed: c(4, 3, strides=2), [shape]
        yield f'Conv{n}DTranspose', 'same', lambda c=transposed: c(4, 3, padding='same'), [shape]
        yield f'ConvLSTM{n}D', lambda c=getattr(layers, f'ConvLSTM{n}D'): c(2, 2), [(1, 3, *shape[1:])]
        yield f'Cropping{n}D', getattr(layers, f'Cropping{n}D'), [shape]
        yield f'SpatialDropout{n}D', lambda c=getattr(layers, f'SpatialDropout{n}D'): c(0.5), [shape]
        yield f'SpatialDropout{n}D', 'training', lambda c=getattr(layers, f'SpatialDropout{n}D'): c(0.5, seed=1), [shape]
        yield f'UpSampling{n}D', getattr(layers, f'UpSampling{n}D'), [shape]
        yield f'ZeroPadding{n}D', getattr(layers, f'ZeroPadding{n}D'), [shape]
    yield 'Conv1D', 'causal', lambda: layers.Conv1D(4, 3, padding='causal'), [SEQUENCE]
    for n, shape in ((1, SEQUENCE), (2, IMAGE)):
        yield f'DepthwiseConv{n}D', lambda c=getattr(layers, f'DepthwiseConv{n}D'): c(3), [shape]
        yield f'SeparableConv{n}D', lambda c=getattr(layers, f'SeparableConv{n}D'): c(5, 3), [shape]
    for interpolation in ('bilinear', 'bicubic', 'lanczos3', 'lanczos5'):
        yield 'UpSampling2D', interpolation, lambda i=interpolation: layers.UpSampling2D(2, interpolation=i), [IMAGE]
    for merge in ('Add', 'Average', 'Concatenate', 'Maximum', 'Minimum', 'Multiply', 'Subtract'):
        yield merge, getattr(layers, merge), [SEQUENCE, SEQUENCE]
    yield 'Dot', lambda: layers.Dot(axes=2, normalize=True), [SEQUENCE, SEQUENCE]
    yield 'AdditiveAttention', layers.AdditiveAttention, [SEQUENCE, SEQUENCE]
    yield 'Attention', lambda: layers.Attention(use_scale=True), [SEQUENCE, SEQUENCE]
    yield 'MultiHeadAttention', lambda: layers.MultiHeadAttention(2, 4), [SEQUENCE, SEQUENCE]
    yield 'MultiHeadAttention', 'causal', lambda: CausalAttention(layers.MultiHeadAttention(2, 4)), [SEQUENCE]
    yield 'GroupQueryAttention', lambda: layers.GroupQueryAttention(4, 4, 2), [SEQUENCE, SEQUENCE]
    for name in ('AlphaDropout', 'Dropout', 'GaussianDropout', 'GaussianNoise'):
        yield name, lambda c=getattr(layers, name): c(0.3), [SEQUENCE]
        yield name, 'training', lambda c=getattr(layers, name): c(0.3, seed=1), [SEQUENCE]
    yield 'BatchNormalization', layers.BatchNormalization, [IMAGE]
    yield 'GroupNormalization', lambda: layers.GroupNormalization(3), [IMAGE]
    yield 'LayerNormalization', layers.LayerNormalization, [SEQUENCE]
    yield 'RMSNormalization', layers.RMSNormalization, [SEQUENCE]
    yield 'UnitNormalization', layers.UnitNormalization, [SEQUENCE]
    yield 'SpectralNormalization', lambda: layers.SpectralNormalization(layers.Dense(3)), [SEQUENCE]
    yield 'SpectralNormalization', 'training', lambda: layers.SpectralNormalization(layers.Dense(3)), [SEQUENCE]
    yield 'Normalization', lambda: layers.Normalization(mean=[1, 2, 3], variance=[1, 4, 9]), [IMAGE]
    yield 'Dense', lambda: layers.Dense(3, activation='relu'), [SEQUENCE]
    yield 'EinsumDense', lambda: layers.EinsumDense('abc,cd->abd', (None, 5), bias_axes='d'), [SEQUENCE]
    yield 'Embedding', lambda: layers.Embedding(7, 3, mask_zero=True), [IDS]
    yield 'ReversibleEmbedding', lambda: layers.ReversibleEmbedding(7, 3), [IDS]
    yield 'Masking', layers.Masking, [SEQUENCE]
    for name in ('ELU', 'LeakyReLU', 'PReLU', 'ReLU', 'Softmax', 'Identity', 'Flatten'):
        yield name, getattr(layers, name), [SEQUENCE]
    yield 'ReLU', 'all', lambda: layers.ReLU(6.0, 0.1, 0.2), [SEQUENCE]
    yield 'Permute', lambda: layers.Permute((2, 1)), [SEQUENCE]
    yield 'RepeatVector', lambda: layers.RepeatVector(3), [(2, 4)]
    yield 'Reshape', lambda: layers.Reshape((-1, 2)), [SEQUENCE]
    yield 'TimeDistributed', lambda: layers.TimeDistributed(layers.Conv2D(2, 3)), [(2, 3, 8, 8, 3)]
    for name in ('GRU', 'LSTM', 'SimpleRNN'):
        recurrent = getattr(layers, name)
        yield name, lambda c=recurrent: c(4), [SEQUENCE]
        yield name, 'sequences, backwards', lambda c=recurrent: c(4, return_sequences=True, go_backwards=True), [SEQUENCE]
        yield name, 'masked', lambda c=recurrent: keras.Sequential([layers.Masking(), c(4)]), [SEQUENCE]
        yield name, 'dropout training', lambda c=recurrent: c(4, dropout=0.5, recurrent_dropout=0.5, seed=1), [SEQUENCE]
        cell = getattr(layers, f'{name}Cell')
        yield f'{name}Cell', lambda c=cell: layers.RNN(c(4)), [SEQUENCE]
    yield 'RNN', lambda: layers.RNN([layers.LSTMCell(3), layers.GRUCell(4)]), [SEQUENCE]
    yield 'StackedRNNCells', lambda: layers.RNN(layers.StackedRNNCells([layers.LSTMCell(3), layers.LSTMCell(4)])), [SEQUENCE]
    yield 'Bidirectional', lambda: layers.Bidirectional(layers.LSTM(3, return_sequences=True)), [SEQUENCE]
    yield from _tables()
    yield from _audio()
    yield from _images()


class CausalAttention(layers.Layer):

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def build(self, shape):
        self.attention.build(shape, shape)

    def call(self, x):
        return self.attention(x, x, use_causal_mask=True)


def _tables():
    for mode in ('one_hot', 'multi_hot', 'count'):
        yield 'CategoryEncoding', mode, lambda m=mode: layers.CategoryEncoding(5, output_mode=m), [
            IDS[:, :1] if mode == 'one_hot' else IDS]
        yield 'IntegerLookup', mode, lambda m=mode: layers.IntegerLookup(vocabulary=[4, 2, 9], output_mode=m), [IDS[:, :1]]
        yield 'StringLookup', mode, lambda m=mode: layers.StringLookup(vocabulary=['b', 'a'], output_mode=m), [
            np.array([['a'], ['z']])]
    yield 'Discretization', lambda: layers.Discretization([0.25, 0.5, 0.75]), [SEQUENCE]
    yield 'Discretization', 'one_hot', lambda: layers.Discretization([0.2, 0.5], output_mode='one_hot'), [(3, 1)]
    yield 'HashedCrossing', lambda: layers.HashedCrossing(5), [np.array([['a'], ['b']]), np.array([[3], [4]])]
    yield 'Hashing', lambda: layers.Hashing(7), [WORDS]
    yield 'Hashing', 'salt', lambda: layers.Hashing(7, salt=[1, 2]), [WORDS]
    yield 'Hashing', 'integers', lambda: layers.Hashing(7, mask_value=0), [IDS]
    yield 'IntegerLookup', lambda: layers.IntegerLookup(vocabulary=[4, 2, 9], num_oov_indices=2), [IDS]
    yield 'IntegerLookup', 'invert', lambda: layers.IntegerLookup(vocabulary=[4, 2, 9], invert=True), [IDS % 4]
    yield 'StringLookup', lambda: layers.StringLookup(vocabulary=['b', 'a']), [np.array([['a', 'b', 'z']])]
    yield 'StringLookup', 'two for others', lambda: layers.StringLookup(vocabulary=['b'], num_oov_indices=2), [
        np.array([['a', 'b', 'z']])]
    yield 'StringLookup', 'invert', lambda: layers.StringLookup(vocabulary=['b', 'a'], invert=True), [IDS % 3]
    yield 'StringLookup', 'tf_idf', lambda: layers.StringLookup(
        vocabulary=['b', 'a'], idf_weights=[0.5, 0.25], output_mode='tf_idf'), [np.array([['a', 'b', 'z']])]
    yield 'TextVectorization', _integer_vectorization(output_sequence_length=8), [WORDS]
    yield 'TextVectorization', 'any length', _integer_vectorization(), [WORDS]
    yield 'TextVectorization', 'ngrams', _integer_vectorization(ngrams=2, output_sequence_length=9), [WORDS]
    yield 'TextVectorization', 'character', _integer_vectorization(split='character'), [WORDS]
    yield 'TextVectorization', 'unsplit', _integer_vectorization(split=None, standardize='lower'), [WORDS]
    for mode in ('multi_hot', 'count', 'tf_idf'):
        yield 'TextVectorization', mode, _integer_vectorization(output_mode=mode, ngrams=(1, 2)), [WORDS]


def _audio():
    yield 'MelSpectrogram', lambda: layers.MelSpectrogram(fft_length=256, sequence_stride=64, num_mel_bins=20), [(2, 1000)]


def _images():
    picture = np.random.default_rng(5).uniform(0, 255, (2, 12, 10, 3)).astype(np.float32)
    yield 'CenterCrop', lambda: layers.CenterCrop(5, 6), [IMAGE]
    yield 'CenterCrop', 'larger', lambda: layers.CenterCrop(12, 12), [IMAGE]
    yield 'Rescaling', lambda: layers.Rescaling(1 / 127.5, -1), [IMAGE]
    for interpolation in ('bilinear', 'nearest', 'bicubic', 'lanczos3', 'lanczos5'):
        yield 'Resizing', interpolation, lambda i=interpolation: layers.Resizing(5, 11, i), [IMAGE]
        if interpolation != 'nearest':
            yield 'Resizing', interpolation + ', antialiased', lambda i=interpolation: layers.Resizing(
                5, 11, i, antialias=True), [IMAGE]
    yield 'Resizing', 'crop', lambda: layers.Resizing(5, 11, crop_to_aspect_ratio=True), [IMAGE]
    yield 'Resizing', 'pad', lambda: layers.Resizing(5, 11, pad_to_aspect_ratio=True), [IMAGE]
    yield 'AutoContrast', layers.AutoContrast, [picture]
    yield 'ContrastLimitedAdaptiveHistogramEqualization', lambda: layers.ContrastLimitedAdaptiveHistogramEqualization(
        tile_grid_size=(2, 2)), [picture]
    yield 'Equalization', layers.Equalization, [picture]
    makers = {
        'AugMix': lambda: layers.AugMix(seed=1), 'CutMix': None, 'MixUp': None, 'RandAugment': lambda: layers.RandAugment(seed=1),
        'RandomBrightness': lambda: layers.RandomBrightness(0.2, seed=1),
        'RandomColorDegeneration': lambda: layers.RandomColorDegeneration(0.5, seed=1),
        'RandomColorJitter': lambda: layers.RandomColorJitter((0, 255), 0.2, 0.2, (0.1, 0.5), 0.2, seed=1),
        'RandomContrast': lambda: layers.RandomContrast(0.2, seed=1),
        'RandomCrop': lambda: layers.RandomCrop(5, 5, seed=1),
        'RandomElasticTransform': lambda: layers.RandomElasticTransform(seed=1),
        'RandomErasing': lambda: layers.RandomErasing(seed=1), 'RandomFlip': lambda: layers.RandomFlip(seed=1),
        'RandomGaussianBlur': lambda: layers.RandomGaussianBlur(seed=1),
        'RandomGrayscale': lambda: layers.RandomGrayscale(seed=1), 'RandomHue': lambda: layers.RandomHue(0.2, seed=1),
        'RandomInvert': lambda: layers.RandomInvert(seed=1),
        'RandomPerspective': lambda: layers.RandomPerspective(seed=1),
        'RandomPosterization': lambda: layers.RandomPosterization(4, seed=1),
        'RandomRotation': lambda: layers.RandomRotation(0.2, seed=1),
        'RandomSaturation': lambda: layers.RandomSaturation((0.2, 0.5), seed=1),
        'RandomSharpness': lambda: layers.RandomSharpness(0.5, seed=1),
        'RandomShear': lambda: layers.RandomShear(0.2, 0.2, seed=1),
        'RandomTranslation': lambda: layers.RandomTranslation(0.2, 0.2, seed=1),
        'RandomZoom': lambda: layers.RandomZoom(0.2, seed=1), 'Solarization': lambda: layers.Solarization(0.1, 0.2, seed=1),
    }
    for name, maker in makers.items():
        maker = maker or (lambda c=getattr(layers, name): c(seed=1))
        yield name, maker, [picture]
        yield name, 'training', maker, [picture]
