"""HTML representations of objects for notebooks."""

import html
from typing import Dict


def _table(head, rows):
    cells = ''.join(f'<th>{html.escape(title)}</th>' for title in head)
    body = ''.join('<tr>' + ''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row) + '</tr>' for row in rows)
    return f'<table><tr>{cells}</tr>{body}</table>'


def _endpoint(endpoint):
    shape = 'of any rank' if endpoint.shape is None else str(['?' if dim is None else dim for dim in endpoint.shape])
    return f'{endpoint.name}: {endpoint.dtype} {shape}'


def model_html(model):
    """Shows the size, the interface, the most frequent ops, and the results of passes."""
    if model._native is None:  # pylint: disable=protected-access
        return '<p>a model that is closed</p>'
    counts: Dict[str, int] = {}
    for node in model.nodes:
        counts[node.op] = counts.get(node.op, 0) + 1
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:8]
    rows = [('nodes', f'{len(model):,}'), ('bytes', f'{model.num_bytes:,}')]
    try:
        rows += [('inputs', '; '.join(map(_endpoint, model.inputs))), ('outputs', '; '.join(map(_endpoint, model.outputs)))]
    except ValueError as error:
        rows.append(('inputs and outputs', str(error)))
    rows.append(('ops', ', '.join(f'{count} {op}' for op, count in common)))
    text = _table((model.source or 'model', ''), rows)
    if model.passes:
        text += _table(('pass', 'rewrites', 'nodes', 'seconds'),
                       [(item.name, item.rewrites, f'{item.nodes_before} to {item.nodes_after}', f'{item.seconds:.3f}')
                        for item in model.passes])
    return text


def verification_html(verification):
    """Shows the differences of the outputs."""
    if not verification.was_run:
        return f'<p>not run: {html.escape(verification.why_not)}</p>'
    rows = [(item.name, f'{item.relative:.3g}', '' if item.sqnr_db is None else f'{item.sqnr_db:.1f}',
             '' if item.top1_agreement is None else f'{item.top1_agreement:.3f}') for item in verification.outputs]
    verdict = 'passes' if verification.passes else 'fails'
    return (f'<p>{verdict}, allowed {verification.tolerance:.3g}</p>' +
            _table(('output', 'relative difference', 'SQNR in dB', 'top-1 agreement'), rows))
