"""AudioSpectrogram and Mfcc."""

import numpy as np
from make_vectors import Case

F = np.float32


def cases():
    random = np.random.RandomState(5)
    sound = random.uniform(-1, 1, (100, 2)).astype(F)
    for size, stride in ((16, 16), (16, 5), (17, 9), (2, 40), (100, 1), (101, 1), (3, 30), (48, 48)):
        for squared in (False, True):
            yield Case("AudioSpectrogram", [sound], {"window_size": size, "stride": stride,
                                                     "magnitude_squared": squared})
    yield Case("AudioSpectrogram", [np.zeros((0, 1), F)], {"window_size": 4, "stride": 2})
    spectrogram = random.uniform(0, 4, (2, 2, 65)).astype(F)
    for attrs in ({}, {"dct_coefficient_count": 40}, {"lower_frequency_limit": 0., "filterbank_channel_count": 13},
                  {"lower_frequency_limit": 1000., "upper_frequency_limit": 2000., "filterbank_channel_count": 20},
                  {"upper_frequency_limit": 8000.}, {"filterbank_channel_count": 1, "dct_coefficient_count": 1}):
        yield Case("Mfcc", [spectrogram, np.int32(16000)], attrs)
    yield Case("Mfcc", [np.zeros((1, 1, 9), F), np.int32(8000)], {"upper_frequency_limit": 3999.})
    yield Case("Mfcc", [spectrogram[:, :0], np.int32(16000)])
    yield Case("Mfcc", [spectrogram[:, :, :33], np.int32(44100)])
