"""Counts the test cases of one `bazel test` run and prints "N passed, N failed" (", N skipped" where any was).

Usage: count_results.py EVENTS STATUS
  EVENTS  the file that --build_event_json_file wrote: only results of that run are counted, never older files
  STATUS  the exit status of that run

Exits with 1 when anything failed, did not build or did not run, or when there was no test.
"""

import collections
import json
import sys
import urllib.parse
import xml.etree.ElementTree


class Counts:

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def total(self):
        return self.passed + self.failed + self.skipped

    def add_cases(self, path):
        """Adds the cases of one test.xml, GoogleTest's or the one that Bazel writes for a plain test."""
        for case in xml.etree.ElementTree.parse(path).getroot().iter('testcase'):
            if case.find('failure') is not None or case.find('error') is not None:
                self.failed += 1
            elif case.find('skipped') is not None or case.get('status') == 'notrun':
                self.skipped += 1
            else:
                self.passed += 1


def read_events(path):
    """Returns the labels of the test targets, and {label: {(run, shard): last attempt's result}}."""
    targets = set()
    results = collections.defaultdict(dict)
    with open(path, encoding='utf-8') as events:
        for line in events:
            event = json.loads(line)
            identity = event['id']
            if 'testSize' in event.get('configured', {}):
                targets.add(identity['targetConfigured']['label'])
            elif 'testResult' in event:
                result = identity['testResult']
                key = (result.get('run', 1), result.get('shard', 1))
                results[result['label']][key] = event['testResult']
    return targets, results


def count_target(results):
    """Counts the cases of one target: its runs and shards together."""
    counts = Counts()
    for result in results.values():
        before = counts.failed
        try:
            for output in result.get('testActionOutput', []):
                if output['name'] == 'test.xml':
                    counts.add_cases(urllib.parse.unquote(urllib.parse.urlparse(output['uri']).path))
        except (OSError, xml.etree.ElementTree.ParseError):
            counts.failed += 1
        # A process that died or ran out of time may not have lived to write down which case did it.
        if result['status'] not in ('PASSED', 'FLAKY') and counts.failed == before:
            counts.failed += 1
    # No result at all, or no case in it: the target did not build, or its process ended before its first case.
    if counts.total() == 0:
        counts.failed = 1
    return counts


def main(events, status):
    try:
        targets, results = read_events(events)
    except (OSError, ValueError, KeyError) as error:
        print(f'count_results: no usable record of the run: {error!r}', file=sys.stderr)
        targets, results = set(), {}

    total = Counts()
    for label in sorted(targets | set(results)):
        counts = count_target(results.get(label, {}))
        total.passed += counts.passed
        total.failed += counts.failed
        total.skipped += counts.skipped
        if counts.failed:
            reason = 'failed' if label in results else 'did not build or run'
            print(f'{label}: {counts.failed} {reason}')

    # A library that did not build, an unknown target, a run without tests.
    if total.failed == 0 and (status != 0 or total.total() == 0):
        total.failed = 1

    line = f'{total.passed} passed, {total.failed} failed'
    print(line + (f', {total.skipped} skipped' if total.skipped else ''))
    return 1 if total.failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
