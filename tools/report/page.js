'use strict';
// Draws the report from the facts in the page. Whatever comes from a model is put in as text, never as markup.
(() => {
  const started = performance.now();
  const root = document.documentElement;
  const {facts, page, el, svg, showTip, hideTip, withTip, section} = pageParts;
  const models = facts.models;

  // --- Small things ---------------------------------------------------------------------------------------------------
  const colours = ['#2f7ed8', '#e07b39', '#3a9d5d', '#b04fc4', '#c9403f', '#7a6ff0', '#1f9aa3', '#a8842c', '#d6568c',
    '#5c6b7a', '#7aa52a', '#8c5a3c'];
  const colourOf = (i) => colours[i % colours.length];
  const swatch = (i) => el('span', {class: 'swatch', style: `background:${colourOf(i)}`});
  const name = (text) => el('span', {class: 'name'}, text);
  // "float [1,224,?,3]" of {type, shape}. An unknown rank is null, an unknown dimension -1; a tensor without a type is ''.
  function typeText(tensor) {
    if (!tensor.type || tensor.shape === undefined) return tensor.type || '';
    const shape = tensor.shape === null ? '<unknown>' : `[${tensor.shape.map((size) => size < 0 ? '?' : size).join(',')}]`;
    return `${tensor.type} ${shape}`;
  }
  const endpointText = (endpoint) => [endpoint.name, typeText(endpoint)].filter(Boolean).join(': ');
  const isNumber = (value) => typeof value === 'number' && isFinite(value);

  // The end of a long name tells more than its beginning.
  function short(text, most = 44) {
    const all = Array.from(text);
    return all.length <= most ? text : '…' + all.slice(all.length - most + 1).join('');
  }
  // Of an op the beginning does.
  function brief(text, most) {
    const all = Array.from(text);
    return all.length <= most ? text : all.slice(0, most - 1).join('') + '…';
  }
  function digits(value) {
    const size = Math.abs(value);
    return value.toFixed(size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2);
  }
  function unit(value, steps) {
    if (!isNumber(value)) return '–';
    let i = 0;
    while (i + 1 < steps.length && Math.abs(value) >= steps[i + 1][0]) ++i;
    return `${digits(value / steps[i][0])} ${steps[i][1]}`;
  }
  const bytes = (value) => isNumber(value) && value < 1e3 ? `${Math.round(value)} B` : unit(value, [[1, 'B'], [1e3, 'kB'], [1e6, 'MB'], [1e9, 'GB'], [1e12, 'TB']]);
  const seconds = (value) => unit(value, [[1e-6, 'us'], [1e-3, 'ms'], [1, 's']]);
  const flops = (value) => unit(value, [[1e3, 'kFLOP'], [1e6, 'MFLOP'], [1e9, 'GFLOP'], [1e12, 'TFLOP']]);
  // A number with its noun: "1 node", "2 nodes".
  const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
  const count = (value) => isNumber(value) ? value.toLocaleString('en') : '–';
  const percent = (value) => isNumber(value) ? `${(100 * value).toFixed(2)} %` : '–';
  function decibels(value) {
    if (typeof value === 'string') return value;
    return isNumber(value) ? `${value.toFixed(1)} dB` : '–';
  }
  const plain = (value) => isNumber(value) ? String(Number(value.toPrecision(3))) : '–';

  // The folders that all names with folders share, "MobilenetV2/". They tell nothing, and are left out of tables and
  // charts.
  function commonPrefix(names) {
    const paths = names.filter((each) => each.includes('/')).map((each) => each.split('/'));
    if (paths.length < 2) return '';
    const first = paths[0];
    let depth = 0;
    while (depth < first.length - 1 && paths.every((path) => depth < path.length - 1 && path[depth] === first[depth])) ++depth;
    return depth === 0 ? '' : `${first.slice(0, depth).join('/')}/`;
  }
  const prefix = commonPrefix(models.flatMap((model) => model.graph.nodes.map((node) => node.name)
    .concat(model.constants.map((constant) => constant.name))));
  const bare = (text) => prefix !== '' && text.startsWith(prefix) ? text.slice(prefix.length) : text;

  function legend(which = models.map((_, i) => i)) {
    if (models.length < 2) return null;
    return el('div', {class: 'legend'}, which.map((i) => el('span', {}, swatch(i), name(models[i].name))));
  }
  function modelSelect(chosen, change, label) {
    const select = el('select', {onchange: () => change(Number(select.value))},
      models.map((model, i) => el('option', {value: i, selected: i === chosen}, short(model.name, 60))));
    return el('label', {}, label, select);
  }

  // --- Bars -----------------------------------------------------------------------------------------------------------
  // `rows`: {label, values}, a value for each model, or nothing where it has none.
  function bars(rows, format, most = models.length > 1 ? 12 : 15) {
    const largest = Math.max(...rows.map((row) => Math.max(...row.values.map((value) => value || 0))), 0);
    const box = el('div', {class: 'bars'});
    const add = (row) => {
      box.append(withTip(el('div', {class: 'name'}, short(bare(row.label), 46)), row.label), el('div', {}, row.values.map((value, i) =>
        value === undefined ? null : el('div', {class: 'bar'},
          el('i', {style: `width:${largest > 0 ? 75 * (value || 0) / largest : 0}%;background:${colourOf(i)}`}),
          el('span', {}, format(value))))));
    };
    rows.slice(0, most).forEach(add);
    const whole = el('div', {}, box);
    if (rows.length > most) {
      const more = el('button', {class: 'plain screen', onclick: () => { rows.slice(most).forEach(add); more.remove(); }},
        `all ${rows.length}`);
      whole.append(more);
    }
    return whole;
  }
  // Rows for what several models have under one label; the largest first.
  function join(lists) {
    const rows = new Map();
    lists.forEach((list, i) => list.forEach(([label, value]) => {
      if (!rows.has(label)) rows.set(label, {label, values: models.map(() => undefined)});
      rows.get(label).values[i] = (rows.get(label).values[i] || 0) + value;
    }));
    const size = (row) => Math.max(...row.values.map((value) => value || 0));
    return [...rows.values()].sort((a, b) => size(b) - size(a));
  }
  function barSection(id, title, says, lists, format) {
    const rows = join(lists).filter((row) => row.values.some((value) => value > 0));
    if (rows.length > 0) return {id, title, says, body: [legend(), bars(rows, format)]};
    return null;
  }

  // --- Plots ----------------------------------------------------------------------------------------------------------
  function ticks(low, high, wanted = 5) {
    const span = high - low || Math.abs(high) || 1;
    const raw = span / wanted;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw) || raw;
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9 && found.length < 20; at += step) found.push(at || 0);
    return found;
  }
  // Axes for a range of x and y; gives the drawing and the two scales.
  function axes(x, y, formatX, formatY, titleX, titleY, width = 560, height = 300) {
    const left = 74, right = 18, top = 22, bottom = 42;
    const at = (range, from, to) => (value) => from + (to - from) * (value - range[0]) / (range[1] - range[0] || 1);
    const scaleX = at(x, left, width - right), scaleY = at(y, height - bottom, top);
    const drawing = svg('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img'},
      ticks(y[0], y[1]).map((value) => [
        svg('line', {class: 'axis', x1: left, x2: width - right, y1: scaleY(value), y2: scaleY(value)}),
        svg('text', {x: left - 6, y: scaleY(value) + 4, 'text-anchor': 'end'}, formatY(value))]).flat(),
      ticks(x[0], x[1]).map((value) => [
        svg('line', {class: 'axis', x1: scaleX(value), x2: scaleX(value), y1: height - bottom, y2: height - bottom + 4}),
        svg('text', {x: scaleX(value), y: height - bottom + 16, 'text-anchor': 'middle'}, formatX(value))]).flat(),
      svg('text', {x: (left + width - right) / 2, y: height - 6, 'text-anchor': 'middle'}, titleX),
      svg('text', {x: 4, y: 10}, titleY));
    return {drawing, scaleX, scaleY};
  }
  function padded(values, share = 0.12) {
    const low = Math.min(...values), high = Math.max(...values);
    const pad = (high - low) * share || Math.abs(high) * share || 1;
    return [low - pad, high + pad];
  }

  // --- What the page says -----------------------------------------------------------------------------------------------
  function summary() {
    const first = models[0];
    const times = (model) => model.run && model.run.median_seconds;
    const ratio = (value, base) => isNumber(value) && isNumber(base) && base > 0 && value !== base
      ? el('small', {}, `× ${(value / base).toPrecision(3)}`) : null;
    const columns = [
      ['file', (m) => m.file_bytes, bytes], ['weights', (m) => m.weight_bytes, bytes], ['nodes', (m) => m.nodes, count],
      ['parameters', (m) => m.parameters, count], ['arithmetic', (m) => m.flops, flops], ['median', times, seconds],
      ['p90', (m) => m.run && m.run.p90_seconds, seconds], ['arena', (m) => m.run && m.run.arena_bytes, bytes],
      ['accuracy', (m) => m.quality && m.quality.accuracy, percent],
      ['same class', (m) => m.quality && m.quality.agreement, percent],
      ['SQNR', (m) => m.quality && m.quality.sqnr_db, decibels],
    ].filter(([, get]) => models.some((model) => get(model) !== undefined && get(model) !== null));
    const noRatio = new Set(['accuracy', 'same class', 'SQNR']);
    const rows = models.map((model, i) => el('tr', {}, el('td', {}, swatch(i), name(model.name)),
      columns.map(([title, get, format]) => el('td', {class: 'number'}, format(get(model)),
        i > 0 && !noRatio.has(title) ? ratio(get(model), get(first)) : null))));
    const head = el('tr', {}, el('th', {}, 'model'), columns.map(([title]) => el('th', {class: 'number'}, title)));
    const about = models.map((model, i) => {
      const warnings = [...((model.run || {}).warnings || []), ...((model.quality || {}).warnings || [])];
      const notes = [...model.notes, ...((model.run || {}).notes || []), ...((model.quality || {}).notes || [])];
      return el('div', {}, models.length > 1 ? el('h3', {}, swatch(i), name(model.name)) : null,
        model.inputs.map((input) => el('div', {}, 'input ', name(endpointText(input)))),
        model.outputs.map((output) => el('div', {}, 'output ', name(endpointText(output)))),
        warnings.map((text) => el('div', {class: 'warning'}, 'warning: ', name(text))),
        notes.map((text) => el('div', {class: 'note'}, 'note: ', name(text))));
    });
    section('summary', 'Summary', models.length > 1
      ? 'Ratios, same class and SQNR are against the first model.' : '',
    el('div', {class: 'scroll'}, el('table', {}, el('thead', {}, head), el('tbody', {}, rows))),
    el('div', {class: 'columns'}, about));
  }

  function scatter() {
    const measures = [['accuracy', 'accuracy', percent], ['agreement', 'same class as the first', percent],
      ['sqnr_db', 'SQNR', decibels]];
    const value = (model, key) => model.quality && isNumber(model.quality[key]) ? model.quality[key] : undefined;
    const spread = (key) => new Set(models.map((model) => value(model, key)).filter((each) => each !== undefined)).size;
    // Accuracy wherever there are labels. Otherwise the first that differs; without the first model, which is like itself.
    const found = measures.find(([key]) => key === 'accuracy' ? spread(key) > 0 : spread(key) > 1);
    if (!found) return;
    const [key, title, format] = found;
    // Shares often differ in the third digit alone.
    const formatY = (each) => key === 'sqnr_db' ? `${plain(each)} dB` : `${Number((100 * each).toFixed(3))} %`;
    const plot = (get, formatX, titleX) => {
      const points = models.map((model, i) => ({i, x: get(model), y: value(model, key), model}))
        .filter((point) => isNumber(point.x) && point.y !== undefined);
      if (points.length < 2) return null;
      const {drawing, scaleX, scaleY} = axes(padded(points.map((p) => p.x)), padded(points.map((p) => p.y)), formatX, formatY,
        titleX, title);
      let lastY = -Infinity;
      for (const point of points.sort((a, b) => scaleY(a.y) - scaleY(b.y))) {
        drawing.append(withTip(svg('circle', {cx: scaleX(point.x), cy: scaleY(point.y), r: 6, fill: colourOf(point.i), 'fill-opacity': 0.8}),
          `${point.model.name}\n${titleX} ${formatX(point.x)}\n${title} ${format(point.y)}`));
        const atRight = scaleX(point.x) > 380;
        // Names of points that are near one another go below each other.
        lastY = Math.max(scaleY(point.y) - 7, lastY + 12);
        drawing.append(svg('text', {x: scaleX(point.x) + (atRight ? -9 : 9), y: lastY,
          'text-anchor': atRight ? 'end' : 'start'}, short(point.model.name, 30)));
      }
      return el('div', {}, drawing);
    };
    const plots = [plot((m) => m.file_bytes, bytes, 'size of the file'),
      plot((m) => m.run && m.run.median_seconds, seconds, 'median time')].filter(Boolean);
    const shares = key === 'accuracy'
      ? bars(models.map((model, i) => ({label: model.name, values: models.map((_, j) => i === j ? value(model, key) : undefined)}))
        .filter((row) => row.values.some((each) => each !== undefined)), percent) : null;
    if (plots.length > 0 || shares) {
      section('quality', 'Accuracy', [shares ? 'Share of the rows whose class is that of the label.' : '',
        plots.length > 0 ? 'In the plots, up is better, left is smaller or faster.' : ''].filter(Boolean).join(' '),
      shares, plots.length > 0 ? el('div', {class: 'columns'}, plots) : null);
    }
  }

  function charts() {
    const nodes = (key) => models.map((model) => model.graph.nodes.filter((node) => node[key] > 0)
      .map((node) => [node.name, node[key]]));
    const all = [
      barSection('time_by_type', 'Time by type', 'Of a profiled run, with what is fused to a node counted as the node.',
        models.map((m) => ((m.run || {}).types || []).map((each) => [each.type, each.seconds])), seconds),
      barSection('time_by_node', 'Time by node', 'The slowest nodes; a node that is fused to another is part of that one.',
        nodes('seconds'), seconds),
      barSection('size_by_layer', 'Size by layer', 'Bytes of the constants that a node reads.', nodes('weight_bytes'), bytes),
      barSection('size_by_type', 'Size by type', 'Bytes of all constants.',
        models.map((m) => m.weights_by_type.map((each) => [each.type, each.bytes])), bytes),
      barSection('ops', 'Ops', 'How often each op occurs.', models.map((m) => m.ops.map((each) => [each.type, each.count])), count),
    ].filter(Boolean);
    for (const each of all) section(each.id, each.title, each.says, ...each.body);
  }

  function memory() {
    const lines = models.map((model, i) => ({i, points: ((model.run || {}).memory || [])})).filter((line) => line.points.length > 1);
    if (lines.length === 0) return;
    const ends = lines.map((line) => line.points[line.points.length - 1][0]);
    const peaks = lines.map((line) => Math.max(...line.points.map((point) => point[1])));
    const {drawing, scaleX, scaleY} = axes([0, Math.max(...ends, 1e-9)], [0, Math.max(...peaks, 1)], seconds, bytes,
      'time in the run', 'tensors', 1180, 320);
    for (const line of lines) {
      let path = `M${scaleX(0)} ${scaleY(0)}`;
      for (const [time, size] of line.points) path += `H${scaleX(time).toFixed(1)}V${scaleY(size).toFixed(1)}`;
      drawing.append(svg('path', {d: path, fill: 'none', stroke: colourOf(line.i), 'stroke-width': 1.5}));
      const peak = line.points.find((point) => point[1] === Math.max(...line.points.map((each) => each[1])));
      drawing.append(withTip(svg('circle', {cx: scaleX(peak[0]), cy: scaleY(peak[1]), r: 4, fill: colourOf(line.i)}),
        `${models[line.i].name}\nmost: ${bytes(peak[1])} after ${seconds(peak[0])}`));
    }
    section('memory', 'Memory over time', 'Bytes of tensors that are still needed, without weights, in one profiled run.',
      legend(lines.map((line) => line.i)), drawing);
  }

  function layerErrors() {
    const ceiling = 160;
    // All along the order of the first model, so that lines can be compared.
    const place = new Map(models[0].graph.nodes.map((node, i) => [node.name, i]));
    const lines = models.map((model, i) => ({i, points: model.graph.nodes
      .map((node) => ({node, at: place.get(node.name), value: node.sqnr_db === 'identical' ? ceiling : node.sqnr_db === 'not finite' ? -20
        : node.sqnr_db})).filter((point) => isNumber(point.value) && point.at !== undefined).sort((a, b) => a.at - b.at)}))
      .filter((line) => line.i > 0 && line.points.length > 0);
    if (lines.length === 0) return;
    const lasts = lines.map((line) => line.points[line.points.length - 1].at);
    const values = lines.flatMap((line) => line.points.map((point) => Math.min(point.value, ceiling)));
    const low = values.reduce((a, b) => Math.min(a, b), 0), high = values.reduce((a, b) => Math.max(a, b), 10);
    const {drawing, scaleX, scaleY} = axes([0, Math.max(...lasts, 1)], [low, high + 5], count, (value) => `${value} dB`,
      'node of the first model, in the order in which they run', 'SQNR', 1180, 320);
    for (const line of lines) {
      drawing.append(svg('polyline', {fill: 'none', stroke: colourOf(line.i), 'stroke-opacity': 0.35,
        points: line.points.map((p) => `${scaleX(p.at).toFixed(1)},${scaleY(Math.min(p.value, ceiling)).toFixed(1)}`).join(' ')}));
      for (const point of line.points) {
        drawing.append(withTip(svg('circle', {cx: scaleX(point.at).toFixed(1),
          cy: scaleY(Math.min(point.value, ceiling)).toFixed(1), r: 2.5, fill: colourOf(line.i)}),
        `${point.node.name}\n${point.node.op}\n${decibels(point.node.sqnr_db)}`));
      }
    }
    const worst = lines.map((line) => {
      // Where the error jumps, and not only where it is large: a layer hands on what it got.
      let before = ceiling;
      const falls = line.points.map((point) => {
        const fall = {point, by: before - Math.min(point.value, ceiling)};
        before = Math.min(point.value, ceiling);
        return fall;
      }).filter((fall) => fall.by > 0.05).sort((a, b) => b.by - a.by).slice(0, 10);
      if (falls.length === 0) return el('div', {}, el('h3', {}, swatch(line.i), name(models[line.i].name)), 'No error grows.');
      return el('div', {class: 'scroll'}, el('h3', {}, swatch(line.i), name(models[line.i].name)), el('table', {},
        el('thead', {}, el('tr', {}, el('th', {}, 'where the error grows'), el('th', {}, 'op'),
          el('th', {class: 'number'}, 'SQNR'), el('th', {class: 'number'}, 'lost'))),
        el('tbody', {}, falls.map((fall) => el('tr', {}, el('td', {}, withTip(name(bare(fall.point.node.name)), fall.point.node.name)),
          el('td', {class: 'line'}, name(fall.point.node.op)), el('td', {class: 'number'}, decibels(fall.point.node.sqnr_db)),
          el('td', {class: 'number'}, fall.by >= ceiling ? '–' : `${fall.by.toFixed(1)} dB`))))));
    });
    section('errors', 'Error by layer',
      'Signal to noise of the tensors inside, against those of the same name in the first model. Higher is better; '
      + '6 dB are a bit.', legend(lines.map((line) => line.i)), drawing, el('div', {class: 'columns'}, worst));
  }

  function histograms() {
    if (!models.some((model) => model.constants.some((constant) => constant.histogram))) return;
    const box = el('div', {class: 'many'});
    const more = el('button', {class: 'plain screen'});
    let chosen = models.length > 1 ? 1 : 0, shown = 24;
    const firsts = new Map(models[0].constants.map((constant) => [constant.name, constant]));
    const outline = (histogram, low, high, width, height) => {
      const most = Math.max(...histogram.counts, 1);
      const step = (histogram.high - histogram.low) / histogram.counts.length;
      const x = (value) => high > low ? width * (value - low) / (high - low) : width / 2;
      let path = `M${x(histogram.low).toFixed(1)} ${height}`;
      // The root, so that rare values show beside the many near zero.
      histogram.counts.forEach((each, i) => {
        path += `V${(height - height * Math.sqrt(each / most)).toFixed(1)}H${x(histogram.low + step * (i + 1)).toFixed(1)}`;
      });
      return `${path}V${height}`;
    };
    const draw = () => {
      const constants = models[chosen].constants.filter((constant) => constant.histogram);
      box.replaceChildren(...constants.slice(0, shown).map((constant) => {
        const own = constant.histogram;
        const before = chosen > 0 && firsts.get(constant.name) && firsts.get(constant.name).histogram;
        const low = before ? Math.min(own.low, before.low) : own.low, high = before ? Math.max(own.high, before.high) : own.high;
        const odd = [own.nan ? `${count(own.nan)} NaN` : '', own.infinite ? `${count(own.infinite)} infinite` : '']
          .filter(Boolean).join(', ');
        return withTip(el('figure', {},
          svg('svg', {viewBox: '0 0 170 60', width: 170, height: 60},
            before ? svg('path', {d: outline(before, low, high, 170, 58), fill: colourOf(0), 'fill-opacity': 0.3}) : null,
            svg('path', {d: outline(own, low, high, 170, 58), fill: colourOf(chosen), 'fill-opacity': 0.75}),
            svg('line', {class: 'axis', x1: 0, x2: 170, y1: 58.5, y2: 58.5})),
          el('figcaption', {}, name(short(bare(constant.name), 30)), el('small', {}, `${typeText(constant)}, ${bytes(constant.bytes)}`),
            el('small', {}, `${plain(own.low)} to ${plain(own.high)}, deviation ${plain(own.deviation)}`),
            odd ? el('small', {class: 'warning'}, odd) : null)),
        `${constant.name}\nmean ${plain(own.mean)}, ${percent(own.zeros / own.elements)} zeros`);
      }));
      more.textContent = `all ${constants.length}`;
      more.hidden = constants.length <= shown;
    };
    more.addEventListener('click', () => { shown = Infinity; draw(); });
    draw();
    section('weights', 'Weights', 'How the values of the largest constants are spread; heights are square roots of counts.'
      + (models.length > 1 ? ' Behind them, paler, the same constant of the first model.' : ''),
    models.length > 1 ? el('div', {class: 'controls'}, modelSelect(chosen, (i) => { chosen = i; shown = 24; draw(); }, 'of')) : null,
    box, more);
  }

  // --- The graph --------------------------------------------------------------------------------------------------------
  const kinds = [
    [/Conv|FusedPadConv|FusedResizeAndPad/, '#2f7ed8', 'convolution'],
    [/MatMul|Einsum|LSTM|GRU/, '#7a6ff0', 'matrix product'],
    [/Relu|Sigmoid|Tanh|Softmax|Elu|Selu|Swish|Softplus|Exp|Log/, '#3a9d5d', 'activation'],
    [/^(Add|AddV2|AddN|Sub|Mul|Div|RealDiv|BiasAdd|Maximum|Minimum|Neg|Square.*|Sqrt|Rsqrt|Pow|.*BatchNorm.*)$/, '#1f9aa3', 'arithmetic'],
    [/Pool|Mean|Sum|Max|Min|Resize|ArgMax|TopK/, '#e07b39', 'pool and resize'],
    [/Quantize|Requant|FakeQuant|Cast/, '#c9403f', 'quantisation'],
    [/Placeholder|^_Arg|^_Retval/, '#a8842c', 'input'],
    [/Switch|Merge|Enter|Exit|NextIteration|LoopCond|^If$|^While$|Call/, '#d6568c', 'control'],
  ];
  const restColour = '#7d8793';
  const kindOf = (op) => kinds.find(([pattern]) => pattern.test(op));
  // From cool to hot.
  function heat(share) {
    const hue = 215 - 215 * Math.max(0, Math.min(1, share));
    return `hsl(${hue.toFixed(0)} 65% 48%)`;
  }
  const dark = matchMedia('(prefers-color-scheme: dark)');
  let isPrinting = false;

  class GraphView {
    constructor(index, board) {
      this.board = board;
      this.canvas = el('canvas', {tabindex: 0, 'aria-label': 'the graph: drag to move, wheel to zoom'});
      this.title = el('span', {class: 'title'});
      const zoom = (label, says, act) => el('button', {class: 'plain', title: says, onclick: act}, label);
      this.pane = el('div', {class: 'pane'}, this.canvas, this.title, el('div', {class: 'zoom'},
        zoom('+', 'nearer', () => this.zoomBy(1.5)), zoom('−', 'further', () => this.zoomBy(1 / 1.5)),
        zoom('all', 'the whole graph', () => this.fit()), zoom('start', 'the first nodes', () => this.begin())));
      this.pointers = new Map();
      this.listen();
      this.load(index);
    }

    load(index) {
      this.index = index;
      this.model = models[index];
      this.graph = this.model.graph;
      this.has = this.graph.width !== undefined;
      this.byName = new Map(this.graph.nodes.map((node, i) => [node.name, i]));
      this.readers = this.graph.nodes.map(() => []);
      this.inputs = this.graph.nodes.map(() => []);
      for (const [from, to] of this.graph.edges) {
        this.readers[from].push(to);
        this.inputs[to].push(from);
      }
      this.selected = -1;
      this.title.textContent = models.length > 1 ? short(this.model.name, 40) : '';
      if (!this.has) this.title.textContent = 'This graph is too large to be drawn.';
      this.needsView = true;
    }

    listen() {
      const canvas = this.canvas;
      canvas.addEventListener('wheel', (event) => {
        event.preventDefault();
        this.zoomBy(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)), event.offsetX, event.offsetY);
      }, {passive: false});
      canvas.addEventListener('pointerdown', (event) => {
        canvas.setPointerCapture(event.pointerId);
        this.pointers.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
        this.moved = false;
      });
      canvas.addEventListener('pointermove', (event) => this.move(event));
      for (const end of ['pointerup', 'pointercancel']) {
        canvas.addEventListener(end, (event) => {
          this.pointers.delete(event.pointerId);
          if (end === 'pointerup' && !this.moved) this.board.select(this, this.at(event.offsetX, event.offsetY));
        });
      }
      canvas.addEventListener('pointerleave', hideTip);
      canvas.addEventListener('keydown', (event) => {
        const act = {'+': () => this.zoomBy(1.3), '=': () => this.zoomBy(1.3), '-': () => this.zoomBy(1 / 1.3),
          0: () => this.fit(), ArrowLeft: () => this.pan(60, 0), ArrowRight: () => this.pan(-60, 0),
          ArrowUp: () => this.pan(0, 60), ArrowDown: () => this.pan(0, -60)}[event.key];
        if (!act) return;
        event.preventDefault();
        act();
      });
    }

    move(event) {
      const pointer = this.pointers.get(event.pointerId);
      if (!pointer) {
        const i = this.at(event.offsetX, event.offsetY);
        if (i < 0) return hideTip();
        const node = this.graph.nodes[i];
        return showTip(event, [node.name, node.op, typeText(node), isNumber(node.seconds) ? seconds(node.seconds) : ''].filter(Boolean)
          .join('\n'));
      }
      hideTip();
      const now = {x: event.offsetX, y: event.offsetY};
      if (Math.hypot(now.x - pointer.x, now.y - pointer.y) > 3) this.moved = true;
      if (this.pointers.size === 2) {
        const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
        const before = Math.hypot(pointer.x - other.x, pointer.y - other.y);
        const after = Math.hypot(now.x - other.x, now.y - other.y);
        if (before > 0) this.zoomBy(after / before, other.x, other.y);
      } else if (this.moved) {
        this.pan(now.x - pointer.x, now.y - pointer.y);
      }
      if (this.moved) this.pointers.set(event.pointerId, now);
    }

    // The node under a place of the canvas, or -1.
    at(px, py) {
      if (!this.has) return -1;
      const x = (px - this.x) / this.scale, y = (py - this.y) / this.scale;
      const halfX = this.graph.node_width / 2, halfY = this.graph.node_height / 2;
      return this.graph.nodes.findIndex((node) => Math.abs(node.at[0] - x) <= halfX && Math.abs(node.at[1] - y) <= halfY);
    }
    pan(dx, dy) {
      this.x += dx;
      this.y += dy;
      this.draw();
    }
    zoomBy(factor, px = this.canvas.clientWidth / 2, py = this.canvas.clientHeight / 2) {
      const scale = Math.max(0.005, Math.min(4, this.scale * factor));
      this.x = px - (px - this.x) * scale / this.scale;
      this.y = py - (py - this.y) * scale / this.scale;
      this.scale = scale;
      this.draw();
    }
    fit() {
      if (!this.has) return;
      const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
      this.scale = Math.min(1, (width - 30) / this.graph.width, (height - 60) / this.graph.height);
      this.x = (width - this.graph.width * this.scale) / 2;
      this.y = (height - this.graph.height * this.scale) / 2 + 12;
      this.draw();
    }
    begin() {
      if (!this.has || this.graph.nodes.length === 0) return;
      const first = this.graph.nodes.reduce((a, b) => b.at[1] < a.at[1] ? b : a);
      this.scale = 0.8;
      this.x = this.canvas.clientWidth / 2 - first.at[0] * this.scale;
      this.y = 60 - first.at[1] * this.scale;
      this.draw();
    }
    show(i) {
      if (!this.has) return;
      this.scale = Math.max(this.scale, 0.7);
      this.x = this.canvas.clientWidth / 2 - this.graph.nodes[i].at[0] * this.scale;
      this.y = this.canvas.clientHeight / 2 - this.graph.nodes[i].at[1] * this.scale;
      this.draw();
    }

    colour(node) {
      const by = this.board.colourBy;
      if (by === 'kind') {
        const kind = kindOf(node.op);
        return kind ? kind[1] : restColour;
      }
      if (by === 'sqnr_db') {
        if (node.sqnr_db === undefined) return restColour;
        return heat(typeof node.sqnr_db === 'string' ? (node.sqnr_db === 'identical' ? 0 : 1) : 1 - node.sqnr_db / 60);
      }
      return isNumber(node[by]) ? heat(Math.sqrt(node[by] / this.board.most[by])) : restColour;
    }

    draw() {
      if (this.pending) return;
      this.pending = requestAnimationFrame(() => {
        this.pending = 0;
        this.paint();
      });
    }

    paint() {
      const canvas = this.canvas, ratio = window.devicePixelRatio || 1;
      const width = canvas.clientWidth, height = canvas.clientHeight;
      if (width === 0) return;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
      }
      if (this.needsView && this.has) {
        this.needsView = false;
        this.fit();
        // A thread of nodes a pixel wide shows nothing.
        if (this.scale < 0.12) this.begin();
        cancelAnimationFrame(this.pending);
        this.pending = 0;
      }
      const isDark = dark.matches && !isPrinting;
      const pen = canvas.getContext('2d');
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.fillStyle = isDark ? '#1f2228' : '#f5f6f8';
      pen.fillRect(0, 0, width, height);
      if (!this.has) return;
      pen.setTransform(ratio * this.scale, 0, 0, ratio * this.scale, ratio * this.x, ratio * this.y);
      const left = -this.x / this.scale, top = -this.y / this.scale;
      const right = left + width / this.scale, bottom = top + height / this.scale;
      this.paintEdges(pen, isDark, left, top, right, bottom);
      this.paintNodes(pen, isDark, left, top, right, bottom);
    }

    paintEdges(pen, isDark, left, top, right, bottom) {
      const nodes = this.graph.nodes, half = this.graph.node_height / 2;
      const path = (edge) => {
        const from = nodes[edge[0]].at, to = nodes[edge[1]].at;
        let x = from[0], y = from[1] + half;
        pen.moveTo(x, y);
        const curve = this.scale > 0.2;
        const go = (nextX, nextY) => {
          if (curve) pen.bezierCurveTo(x, (y + nextY) / 2, nextX, (y + nextY) / 2, nextX, nextY);
          else pen.lineTo(nextX, nextY);
          x = nextX;
          y = nextY;
        };
        for (let k = 2; k < edge.length; k += 2) go(edge[k], edge[k + 1]);
        go(to[0], to[1] - half);
      };
      const isSeen = (edge) => {
        const from = nodes[edge[0]].at, to = nodes[edge[1]].at;
        let low = Math.min(from[0], to[0]), high = Math.max(from[0], to[0]);
        for (let k = 2; k < edge.length; k += 2) {
          low = Math.min(low, edge[k]);
          high = Math.max(high, edge[k]);
        }
        return low <= right && high >= left && Math.min(from[1], to[1]) <= bottom && Math.max(from[1], to[1]) >= top;
      };
      pen.lineWidth = Math.max(1, 0.6 / this.scale);
      pen.strokeStyle = isDark ? '#5a616c' : '#a9b0ba';
      pen.beginPath();
      for (const edge of this.graph.edges) if (isSeen(edge)) path(edge);
      pen.stroke();
      if (this.selected < 0) return;
      pen.lineWidth = Math.max(2, 1.4 / this.scale);
      pen.strokeStyle = isDark ? '#6cb0ff' : '#0b62c4';
      pen.beginPath();
      for (const edge of this.graph.edges) if (edge[0] === this.selected || edge[1] === this.selected) path(edge);
      pen.stroke();
    }

    paintNodes(pen, isDark, left, top, right, bottom) {
      const halfX = this.graph.node_width / 2, halfY = this.graph.node_height / 2;
      const withText = this.scale > 0.3, withName = this.scale > 0.55;
      const matches = this.board.matches;
      pen.textAlign = 'center';
      pen.textBaseline = 'middle';
      this.graph.nodes.forEach((node, i) => {
        const [x, y] = node.at;
        if (x + halfX < left || x - halfX > right || y + halfY < top || y - halfY > bottom) return;
        const isMatch = matches !== null && matches.test(node);
        pen.globalAlpha = matches !== null && !isMatch ? 0.22 : 1;
        pen.fillStyle = this.colour(node);
        pen.fillRect(x - halfX, y - halfY, 2 * halfX, 2 * halfY);
        const other = this.board.other(this);
        if (other && !other.byName.has(node.name)) {
          pen.lineWidth = Math.max(3, 1.5 / this.scale);
          pen.strokeStyle = isDark ? '#ffd166' : '#222222';
          pen.setLineDash([8, 5]);
          pen.strokeRect(x - halfX, y - halfY, 2 * halfX, 2 * halfY);
          pen.setLineDash([]);
        }
        if (i === this.selected || isMatch) {
          pen.lineWidth = Math.max(3, 2 / this.scale);
          pen.strokeStyle = i === this.selected ? (isDark ? '#ffffff' : '#000000') : '#f2b705';
          pen.strokeRect(x - halfX - 2, y - halfY - 2, 2 * halfX + 4, 2 * halfY + 4);
        }
        if (withText) {
          pen.fillStyle = '#ffffff';
          pen.font = '600 12px system-ui, "DejaVu Sans", sans-serif';
          pen.fillText(brief(node.op, 22), x, withName ? y - 8 : y, 2 * halfX - 8);
          if (withName) {
            pen.font = '10px system-ui, "DejaVu Sans", sans-serif';
            pen.fillText(short(bare(node.name), 26), x, y + 8, 2 * halfX - 8);
          }
        }
        pen.globalAlpha = 1;
      });
    }
  }

  // What the views of the graph share.
  class Board {
    constructor() {
      this.colourBy = 'kind';
      this.matches = null;
      this.most = {};
      for (const key of ['seconds', 'weight_bytes', 'output_bytes', 'flops']) {
        this.most[key] = models.reduce((a, model) => model.graph.nodes.reduce((b, node) => Math.max(b, node[key] || 0), a), 1e-12);
      }
      this.views = [new GraphView(0, this)];
      if (models.length > 1) this.views.push(new GraphView(1, this));
      this.details = el('div', {id: 'details'}, 'No node is chosen.');
      this.found = [];
      this.build();
    }

    other(view) {
      if (this.views.length < 2 || this.views[0].index === this.views[1].index) return null;
      return this.views[view === this.views[0] ? 1 : 0];
    }

    build() {
      const search = el('input', {type: 'search', placeholder: 'name or op', 'aria-label': 'search'});
      const hits = el('span', {class: 'screen'});
      search.addEventListener('input', () => {
        this.search(search.value);
        hits.textContent = this.matches === null ? '' : `${count(this.found.length)} found`;
      });
      search.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter' || this.found.length === 0) return;
        const [view, i] = this.found[this.next++ % this.found.length];
        this.select(view, i);
        view.show(i);
      });
      const has = (key) => models.some((model) => model.graph.nodes.some((node) => node[key] !== undefined));
      const choices = [['kind', 'kind of op'], ['seconds', 'time'], ['weight_bytes', 'size of weights'], ['flops', 'arithmetic'],
        ['output_bytes', 'size of output'], ['sqnr_db', 'error']].filter(([key]) => key === 'kind' || has(key));
      const key = el('div', {class: 'legend'});
      const colour = el('select', {onchange: () => {
        this.colourBy = colour.value;
        this.showKey(key);
        this.draw();
      }}, choices.map(([value, label]) => el('option', {value}, label)));
      this.showKey(key);
      const says = el('span', {}, el('span', {class: 'screen'},
        'Drag to move, turn the wheel or pinch to zoom, click a node for what is known of it. '),
      el('span', {class: 'paper'}, 'The part that was in view.'),
      'Constants are part of the nodes that read them.'
        + (models.length > 1 ? ' Dashed: a node that the other graph does not have.' : ''));
      section('graph', 'Graph', says, el('div', {class: 'controls'}, el('label', {}, 'find', search), hits,
        el('label', {}, 'colour by', colour),
        models.length > 1 ? this.views.map((view, side) => modelSelect(view.index, (i) => {
          view.load(i);
          this.search(search.value);
          this.draw();
        }, side === 0 ? 'left' : 'right')) : null),
      key, el('div', {class: models.length > 1 ? 'panes two' : 'panes'}, this.views.map((view) => view.pane)), this.details);
      new ResizeObserver(() => this.draw()).observe(this.views[0].pane);
      dark.addEventListener('change', () => this.draw());
      addEventListener('beforeprint', () => this.printing(true));
      addEventListener('afterprint', () => this.printing(false));
    }

    showKey(key) {
      const item = (colour, text) => el('span', {}, el('span', {class: 'swatch', style: `background:${colour}`}), text);
      key.replaceChildren(...(this.colourBy === 'kind'
        ? [...kinds.map(([, colour, text]) => item(colour, text)), item(restColour, 'other')]
        : [item(heat(0), this.colourBy === 'sqnr_db' ? 'identical, or 60 dB' : 'least'), item(heat(0.5), ''),
          item(heat(1), this.colourBy === 'sqnr_db' ? '0 dB' : 'most'), item(restColour, 'not known')]));
    }
    printing(is) {
      isPrinting = is;
      for (const view of this.views) view.paint();
    }
    draw() {
      for (const view of this.views) view.draw();
    }

    search(text) {
      const wanted = text.trim().toLowerCase();
      const test = (node) => node.name.toLowerCase().includes(wanted) || node.op.toLowerCase().includes(wanted);
      this.matches = wanted === '' ? null : {test};
      this.next = 0;
      this.found = wanted === '' ? [] : this.views.flatMap((view) =>
        view.graph.nodes.flatMap((node, i) => test(node) ? [[view, i]] : []));
      this.draw();
    }

    select(view, i) {
      view.selected = i;
      const other = this.other(view);
      if (other && i >= 0) {
        const same = other.byName.get(view.graph.nodes[i].name);
        other.selected = same === undefined ? -1 : same;
        if (same !== undefined) other.show(same);
      }
      this.tell(view, i);
      this.draw();
    }

    tell(view, i) {
      this.details.replaceChildren();
      if (i < 0) {
        this.details.append('No node is chosen.');
        return;
      }
      const node = view.graph.nodes[i];
      const row = (title, value) => value === undefined || value === '' ? [] : [el('dt', {}, title), el('dd', {}, value)];
      const go = (numbers) => numbers.length === 0 ? '' : el('span', {}, numbers.slice(0, 40).map((each) =>
        el('button', {onclick: () => { this.select(view, each); view.show(each); }}, name(view.graph.nodes[each].name))));
      this.details.append(el('strong', {class: 'name'}, node.name), el('dl', {},
        row('op', node.op), row('output', typeText(node)), row('time', isNumber(node.seconds) ? seconds(node.seconds) : undefined),
        row('weights', node.weight_bytes ? bytes(node.weight_bytes) : undefined),
        row('arithmetic', node.flops ? flops(node.flops) : undefined),
        row('makes', node.output_bytes ? bytes(node.output_bytes) : undefined),
        row('SQNR', node.sqnr_db === undefined ? undefined : decibels(node.sqnr_db)),
        row('reads', go(view.inputs[i])), row('read by', go(view.readers[i]))));
    }
  }

  // --- The table of nodes -----------------------------------------------------------------------------------------------
  function nodeTable() {
    let chosen = 0, sort = 'order', down = false, wanted = '', shown = 100;
    const columns = [['order', '#', count], ['name', 'node', null], ['op', 'op', null], ['output', 'output', null],
      ['seconds', 'time', seconds], ['flops', 'arithmetic', flops], ['weight_bytes', 'weights', bytes],
      ['output_bytes', 'makes', bytes], ['sqnr_db', 'SQNR', decibels]]
      .filter(([key]) => key === 'order' || models.some((model) => model.graph.nodes.some((node) => node[key] !== undefined)));
    const body = el('tbody', {}), more = el('button', {class: 'plain screen'}), hits = el('span', {});
    const rest = el('div', {class: 'paper'});
    const rank = (value) => value === undefined ? -Infinity : value === 'identical' ? 1e9 : value === 'not finite' ? -1e9 : value;
    const draw = () => {
      const rows = models[chosen].graph.nodes.map((node, order) => ({order: order + 1, ...node})).filter((node) =>
        wanted === '' || node.name.toLowerCase().includes(wanted) || node.op.toLowerCase().includes(wanted));
      rows.sort((a, b) => {
        const [x, y] = [a[sort], b[sort]];
        const order = ['name', 'op', 'output'].includes(sort)
          ? String(x || '').localeCompare(String(y || '')) : rank(x) === rank(y) ? 0 : rank(x) - rank(y);
        return (down ? -order : order) || a.order - b.order;
      });
      body.replaceChildren(...rows.slice(0, shown).map((node) => el('tr', {}, columns.map(([key, , format]) => format
        ? el('td', {class: 'number'}, node[key] === undefined ? '' : format(node[key]))
        : el('td', {class: key === 'name' ? '' : 'line'}, node[key] === undefined ? '' : key === 'name' ? withTip(name(bare(node[key])), node[key]) : name(node[key]))))));
      more.hidden = rows.length <= shown;
      more.textContent = `all ${rows.length}`;
      rest.textContent = more.hidden ? '' : `${count(shown)} of ${counted(rows.length, 'node')}`;
      hits.textContent = counted(rows.length, 'node');
    };
    more.addEventListener('click', () => { shown = Infinity; draw(); });
    const search = el('input', {type: 'search', placeholder: 'name or op', 'aria-label': 'search',
      oninput: () => { wanted = search.value.trim().toLowerCase(); draw(); }});
    const head = el('tr', {}, columns.map(([key, title, format]) => el('th', {class: format ? 'number' : ''},
      el('button', {onclick: () => { down = sort === key ? !down : Boolean(format) && key !== 'order'; sort = key; draw(); }}, title))));
    draw();
    section('nodes', 'Nodes', el('span', {}, el('span', {class: 'screen'}, 'Click a title to sort. '),
      prefix === '' ? null : el('span', {}, 'Names are shown without ', name(prefix), '.')), el('div', {class: 'controls'}, el('label', {}, 'find', search), hits,
      models.length > 1 ? modelSelect(0, (i) => { chosen = i; draw(); }, 'of') : null),
    el('div', {class: 'scroll'}, el('table', {}, el('thead', {}, head), body)), more, rest);
  }

  page.replaceChildren();
  document.getElementById('top').append(el('h1', {}, facts.title), el('p', {class: 'conclusion'}, facts.conclusion),
    el('p', {}, [facts.date, facts.machine, facts.conditions, facts.tool].filter(Boolean).join(' · ')));
  summary();
  scatter();
  charts();
  memory();
  layerErrors();
  histograms();
  const board = new Board();
  nodeTable();
  for (const view of board.views) view.paint();
  root.dataset.rendered = String(Math.round(performance.now() - started));
})();
