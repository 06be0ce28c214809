'use strict';
// Draws the report of a search from the facts in the page. Names of a model are put in as text, never as markup.
(() => {
  const root = document.documentElement;
  const {facts, page, el, svg, withTip, section} = pageParts;

  // --- Numbers --------------------------------------------------------------------------------------------------------
  const isNumber = (value) => typeof value === 'number' && isFinite(value);
  const scaled = (value, steps) => {
    if (!isNumber(value)) return '–';
    let i = 0;
    while (i + 1 < steps.length && Math.abs(value) >= steps[i + 1][0]) ++i;
    return `${Number((value / steps[i][0]).toPrecision(3))} ${steps[i][1]}`;
  };
  const bytes = (value) => scaled(value, [[1, 'B'], [1e3, 'kB'], [1e6, 'MB'], [1e9, 'GB']]);
  const seconds = (value) => value > 0 ? scaled(value, [[1e-6, 'us'], [1e-3, 'ms'], [1, 's']]) : '–';
  const percent = (value) => isNumber(value) ? `${Number((100 * value).toPrecision(3))} %` : 'not comparable';
  const runText = (trial) => `${trial.delegate} ${trial.precision}, ${trial.threads} ${trial.threads === 1 ? 'thread' : 'threads'}`;
  const short = (text, most = 90) => text.length <= most ? text : `${text.slice(0, most - 1)}…`;

  // --- Tables ---------------------------------------------------------------------------------------------------------
  // `columns`: {title, value, show, isNumber}. A click on a title sorts.
  function table(columns, rows) {
    const body = el('tbody');
    let sorted = -1, down = false;
    const draw = (list) => body.replaceChildren(...list.map((row) => el('tr', {}, columns.map((column) =>
      el('td', column.isNumber ? {class: 'number'} : {}, column.show ? column.show(row) : column.value(row))))));
    const head = el('tr', {}, columns.map((column, i) => el('th', column.isNumber ? {class: 'number'} : {},
      el('button', {onclick: () => {
        down = sorted === i ? !down : false;
        sorted = i;
        const key = (row) => { const value = column.value(row); return value === null || value === undefined ? Infinity : value; };
        const order = [...rows].sort((a, b) => key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0);
        draw(down ? order.reverse() : order);
      }}, column.title))));
    draw(rows);
    return el('div', {class: 'scroll'}, el('table', {}, el('thead', {}, head), body));
  }

  // --- Plots ----------------------------------------------------------------------------------------------------------
  const isShown = (trial) => trial.inputs === 'search' && trial.failure === '' && isNumber(trial.relative_rms);
  const shown = facts.trials.filter(isShown);
  const best = facts.result;
  const isBest = (trial) => best !== null && trial.transforms === best.transforms && trial.delegate === best.delegate &&
    trial.precision === best.precision;
  // An error of 0 is drawn at the left edge of the logarithmic axis.
  const least = Math.max(1e-9, Math.min(...shown.map((trial) => trial.relative_rms).filter((value) => value > 0), 1) / 2);
  const errorOf = (trial) => Math.max(least, trial.relative_rms);

  // Trials that no other one beats in both measures, from small errors to large ones.
  function front(trials, measure) {
    const found = [];
    let smallest = Infinity;
    for (const trial of [...trials].sort((a, b) => errorOf(a) - errorOf(b) || measure(a) - measure(b))) {
      if (measure(trial) >= smallest) continue;
      smallest = measure(trial);
      found.push(trial);
    }
    return found;
  }
  function plot(measure, format, title) {
    const width = 580, height = 340, left = 74, right = 18, top = 24, bottom = 44;
    const trials = shown.filter((trial) => measure(trial) > 0);
    if (trials.length === 0) return el('p', {class: 'note'}, 'Nothing was measured.');
    const logs = trials.map((trial) => Math.log10(errorOf(trial)));
    const x0 = Math.floor(Math.min(...logs)), x1 = Math.max(Math.ceil(Math.max(...logs)), x0 + 1);
    const y1 = Math.max(...trials.map(measure)) * 1.05;
    const x = (trial) => left + (width - left - right) * (Math.log10(errorOf(trial)) - x0) / (x1 - x0);
    const y = (value) => height - bottom - (height - top - bottom) * value / y1;
    const lines = [];
    for (let i = 0; i <= 4; ++i) {
      const value = y1 * i / 4;
      lines.push(svg('line', {class: 'axis', x1: left, x2: width - right, y1: y(value), y2: y(value)}),
        svg('text', {x: left - 6, y: y(value) + 4, 'text-anchor': 'end'}, format(value)));
    }
    for (let power = x0; power <= x1; ++power) {
      const at = left + (width - left - right) * (power - x0) / (x1 - x0);
      lines.push(svg('line', {class: 'axis', x1: at, x2: at, y1: top, y2: height - bottom}),
        svg('text', {x: at, y: height - bottom + 16, 'text-anchor': 'middle'}, percent(10 ** power)));
    }
    const path = front(trials, measure).map((trial, i) => `${i === 0 ? 'M' : 'L'}${x(trial)},${y(measure(trial))}`).join('');
    const dots = trials.map((trial) => withTip(svg('circle', {cx: x(trial), cy: y(measure(trial)),
      r: isBest(trial) ? 6 : 3.5, class: 'trial',
      fill: isBest(trial) ? 'var(--good)' : trial.share_of_budget <= 1 ? 'var(--accent)' : 'var(--bad)',
      'fill-opacity': isBest(trial) ? 1 : 0.6}),
    `${percent(trial.relative_rms)} rms error, ${bytes(trial.bytes)}, ${seconds(trial.run_seconds)}\n${runText(trial)}\n${short(trial.transforms, 600) || 'the original'}`));
    return svg('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': title}, lines,
      svg('path', {d: path, fill: 'none', stroke: 'var(--faint)', 'stroke-dasharray': '4 3'}), dots,
      svg('text', {x: (left + width - right) / 2, y: height - 6, 'text-anchor': 'middle'}, 'rms error of the worst output'),
      svg('text', {x: 4, y: 12}, title));
  }

  // --- The page -------------------------------------------------------------------------------------------------------
  document.getElementById('top').append(el('h1', {}, `Optimisation of ${facts.in_model}`),
    el('p', {}, `${facts.date}, ${facts.machine}; ${facts.trials.length} trials; ${facts.inputs.search} inputs of the search, ${facts.inputs.held_back} held back`));

  const conclusion = best === null ? 'No model is within the budget.'
    : `${bytes(facts.in_bytes)} became ${bytes(best.file_bytes)}` +
      (isNumber(best.ratio) ? `, the latency ${best.ratio.toPrecision(3)} times that of the original` : '') +
      `, with an rms error of ${percent(best.relative_rms)}.`;
  const facts_of_result = best === null ? [] : [
    ['run', `--delegate=${best.delegate} --precision=${best.precision} --threads=${best.threads}` +
      (best.precision_plan ? ` --precision_plan=${best.precision_plan}` : '')],
    ['latency', isNumber(best.seconds) ? `${seconds(best.seconds)} (95 % sure: ${seconds(best.low_seconds)} to ${seconds(best.high_seconds)})` : '–'],
    ['compressed by zstd', bytes(best.compressed_bytes)],
    ...best.checks.map((check) => [`rms error on ${check.inputs} inputs`, percent(check.relative_rms) +
      (check.labelled_rows > 0 ? `, ${check.right} of ${check.labelled_rows} right, original ${check.reference_right}` : '')]),
    ['reproduce', el('code', {class: 'name'}, best.command)]];
  const miss = facts.nearest_miss;
  section('result', 'Result', `Budget: ${facts.budget.accuracy}` +
    (facts.budget.max_bytes ? `; at most ${bytes(facts.budget.max_bytes)}` : '') +
    (facts.budget.max_latency_seconds ? `; at most ${seconds(facts.budget.max_latency_seconds)}` : '') +
    (facts.budget.max_latency_ratio ? `; at most ${facts.budget.max_latency_ratio} times the latency of the original` : '') +
    `. Minimised: ${facts.budget.minimize}.`,
  el('p', {class: best === null ? 'conclusion warning' : 'conclusion'}, conclusion),
  miss === null ? null : el('p', {class: 'warning'}, `The nearest: ${bytes(miss.bytes)}, rms error ${percent(miss.relative_rms)}, ${runText(miss)}`),
  facts_of_result.length === 0 ? null : el('table', {}, el('tbody', {}, facts_of_result.map(([key, value]) => el('tr', {}, el('th', {}, key), el('td', {}, value))))),
  facts.notes.map((note) => el('p', {class: 'note'}, note)));

  section('fronts', 'Fronts', 'Each point is a trial: green the result, blue within the accuracy budget, red beyond it. The dashed lines are the fronts. The time of a trial is that of its way to run, since the storage of weights does not change it.',
    el('div', {class: 'columns'}, plot((trial) => trial.bytes, bytes, 'size'), plot((trial) => trial.run_seconds, seconds, 'latency')));

  section('runs', 'Ways to run', 'Measured in turn on the original and on the folded model.',
    table([
      {title: 'model', value: (time) => time.transforms === '' ? 'original' : 'folded'},
      {title: 'run', value: runText},
      {title: 'median', value: (time) => time.seconds, show: (time) => time.failure || seconds(time.seconds), isNumber: true},
      {title: '95 % interval', value: (time) => time.low_seconds, show: (time) => `${seconds(time.low_seconds)} to ${seconds(time.high_seconds)}`, isNumber: true},
      {title: 'rounds', value: (time) => time.rounds, isNumber: true},
    ], facts.run_times));

  const layers = facts.layers.filter((layer) => layer.error_in_four_bits !== null || layer.stored_in !== null)
    .sort((a, b) => (b.error_in_four_bits || 0) - (a.error_in_four_bits || 0));
  if (layers.length > 0) {
    section('layers', 'Weights by sensitivity', 'The rms error of the worst output if only these weights have fewer bits. Weights that change outputs most for the bytes they save keep more bits.',
      table([
        {title: 'constant', value: (layer) => layer.constants[0], show: (layer) => el('span', {class: 'name'},
          layer.constants.length === 1 ? layer.constants[0] : `${layer.constants[0]} and ${layer.constants.length - 1} more`)},
        {title: 'read by', value: (layer) => layer.reader},
        {title: 'elements', value: (layer) => layer.elements, show: (layer) => layer.elements.toLocaleString('en'), isNumber: true},
        {title: 'error in 4 bits', value: (layer) => layer.error_in_four_bits, show: (layer) => percent(layer.error_in_four_bits), isNumber: true},
        {title: 'in blocks of 4 bits', value: (layer) => layer.error_in_blocks_of_four_bits, show: (layer) => percent(layer.error_in_blocks_of_four_bits), isNumber: true},
        {title: 'error in 8 bits', value: (layer) => layer.error_in_eight_bits, show: (layer) => percent(layer.error_in_eight_bits), isNumber: true},
        {title: 'stored in', value: (layer) => layer.stored_in || ''},
      ], layers));
  }

  section('trials', 'Trials', 'In the order of the search. Those on few inputs measure the sensitivity of weights.',
    table([
      {title: 'inputs', value: (trial) => trial.inputs},
      {title: 'run', value: runText},
      {title: 'size', value: (trial) => trial.bytes, show: (trial) => bytes(trial.bytes), isNumber: true},
      {title: 'compressed', value: (trial) => trial.compressed_bytes, show: (trial) => trial.compressed_bytes > 0 ? bytes(trial.compressed_bytes) : '–', isNumber: true},
      {title: 'rms error', value: (trial) => trial.relative_rms, show: (trial) => trial.failure ? '–' : percent(trial.relative_rms), isNumber: true},
      {title: 'transforms', value: (trial) => trial.transforms, show: (trial) => withTip(el('span', {class: 'name'},
        trial.failure || short(trial.transforms) || 'the original'), short(trial.transforms, 2000))},
    ], facts.trials));
  root.dataset.ready = 'true';
})();
