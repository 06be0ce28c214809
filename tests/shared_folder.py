"""Finds the folder of large models beside the workspace, as shared_models.h does, for the tests that use it when it is there."""

import os
import pathlib


def shared_folder(data):
    """The path of the folder `shared` that has a folder `models`: $PERMAFROST_SHARED, or the one beside the workspace or a
    folder above it. None if there is none. The real path of `data`, a file that the test lists, leads to the workspace."""
    places = [pathlib.Path(os.environ['PERMAFROST_SHARED'])] if 'PERMAFROST_SHARED' in os.environ else []
    places += [parent / 'shared' for parent in pathlib.Path(data).resolve().parents]
    return next((place for place in places if (place / 'models').is_dir()), None)
