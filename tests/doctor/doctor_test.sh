#!/usr/bin/env bash
# Runs doctor_test.py.
exec python3 tests/doctor/doctor_test.py
