"""Writes docs/interoperability.md from interoperability.json, which interoperability_oracle.py records. Needs no TensorFlow.

    python3 tests/oracle/interoperability_page.py
"""

import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
RECORD = HERE / 'interoperability.json'
PAGE = HERE.parents[1] / 'docs/interoperability.md'

INTRODUCTION = '''# Interoperability

Which programs read the GraphDefs that Permafrost writes, for each preset and pass. Read it before you hand a result to another engine
or converter. Generated from `tests/oracle/interoperability.json` by `tests/oracle/interoperability_page.py`;
`script/test_oracle interoperability_oracle.py` measures it.

A program reads a result if it loads the file, runs it, and agrees with TensorFlow on the outputs (rms of the difference at most 1 % of
that of the output). It is judged only on graphs that it reads before the pass: `-` means that none of those tried is.

'''


def load():
    return json.loads(RECORD.read_text(encoding='utf-8')) if RECORD.exists() else {}


def save(result):
    RECORD.write_text(json.dumps(result, indent=1) + '\n', encoding='utf-8')


def merged_versions(recorded, found):
    return {**recorded.get('programs', {}), **found}


def _cell(value):
    return {'reads': 'yes', None: '-'}.get(value, '**no**')


def _table(rows, programs):
    lines = ['| | graph | ' + ' | '.join(programs) + ' |', '|---' * (len(programs) + 2) + '|']
    for name, tried in rows.items():
        for row in tried:
            cells = [_cell(row['programs'].get(program)) for program in programs]
            lines.append(f'| `{name}` | {row["graph"]} | ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines) + '\n'


def _reasons(rows, programs):
    """Returns the distinct reasons of each program, with the calls that have them."""
    found = {}
    for name, tried in rows.items():
        for row in tried:
            for program in programs:
                why = row['programs'].get(program)
                if why not in (None, 'reads'):
                    calls = found.setdefault((program, why), [])
                    if name not in calls:
                        calls.append(name)
    order = {program: i for i, program in enumerate(programs)}
    lines = [f'| {program} | {", ".join(f"`{call}`" for call in calls)} | {why} |'
             for (program, why), calls in sorted(found.items(), key=lambda item: (order[item[0][0]], item[0][1]))]
    return '\n'.join(['| program | result of | error |', '|---|---|---|'] + lines) + '\n'


def page():
    record = load()
    programs = list(record['programs'])
    unread = {name for part in ('presets', 'passes') for name, tried in record[part].items() if not tried}
    text = INTRODUCTION
    text += 'Versions: ' + ', '.join(f'{name} {version}' for name, version in record['programs'].items()) + '.\n'
    text += '\n## Presets\n\n' + _table(record['presets'], programs)
    text += '\n## Passes\n\n' + _table(record['passes'], programs)
    if unread:
        text += '\nWithout a graph that they change and TensorFlow runs: ' + ', '.join(f'`{n}`' for n in sorted(unread)) + '.\n'
    text += '\nLeft out: ' + '; '.join(f'`{name}` ({why})' for name, why in record['left_out'].items()) + '.\n'
    text += '\n## Errors\n\n' + _reasons({**record['presets'], **record['passes']}, programs)
    return text


def write():
    PAGE.write_text(page(), encoding='utf-8')


if __name__ == '__main__':
    write()
