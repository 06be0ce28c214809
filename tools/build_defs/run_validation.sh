#!/bin/sh
# Runs validate_model as a test: the first argument is the tool, the others are its own.
exec "$@"
