'use strict';
// Draws memory over time, before and after, in the elements of the memory section. The time range follows the timeline if there is one.
page.make_levels = (m, timeline) => {
  const box = document.getElementById('levels'), devices = document.getElementById('device'), follow = document.getElementById('follow');
  const time = value => m.has_times ? page.time(value) : 'event ' + value;
  let shift = m.runs.map(() => 0), chart = null, looked = null;

  const numbers = [...new Set(m.runs.flatMap(run => run.curves.map(curve => curve.device)))];
  for (const device of numbers) {
    devices.append(page.element('option', {value: device, textContent: device < 0 ? 'host' : 'device ' + device}));
  }
  devices.parentElement.hidden = numbers.length < 2;
  if (!timeline) follow.parentElement.hidden = true;

  const points = run => run.curves.find(curve => curve.device === +devices.value)?.points ?? [];
  // Puts all curves on one time axis, as uPlot requires.
  const columns = () => {
    const curves = m.runs.map((run, i) => points(run).map(([at, level]) => [at + shift[i], level]));
    const places = Float64Array.from(new Set(curves.flatMap(curve => curve.map(([at]) => at)))).sort();
    const values = curves.map(curve => {
      let next = 0, level = null;
      return Array.from(places, place => {
        while (next < curve.length && curve[next][0] <= place) level = curve[next++][1];
        return level;
      });
    });
    return [places, ...values, ...(m.limit ? [Array.from(places, () => m.limit)] : [])];
  };
  const options = () => {
    const axis = {stroke: page.colour('--quiet'), grid: {stroke: page.colour('--line'), width: 1}, ticks: {stroke: page.colour('--line')}};
    const line = (label, stroke, dash) => ({label, stroke: page.colour(stroke), width: 1.5, dash, points: {show: false},
      paths: uPlot.paths.stepped({align: 1}), value: (_, level) => level === null ? '-' : page.bytes(level)});
    return {
      width: box.clientWidth, height: 260, cursor: {points: {size: 6}},
      scales: {x: {time: false}, y: {range: (_, low, high) => [0, Math.max(high, 1) * 1.05]}},
      axes: [{...axis, values: (_, all) => all.map(time)}, {...axis, size: 74, values: (_, all) => all.map(page.bytes)}],
      series: [{label: 'time', value: (_, at) => at === null ? '-' : time(at)},
        line('now', m.runs.length > 1 ? '--quiet' : '--accent', m.runs.length > 1 ? [5, 3] : undefined),
        ...(m.runs.length > 1 ? [line('predicted', '--accent')] : []), ...(m.limit ? [line('limit', '--bad', [2, 3])] : [])],
    };
  };
  const look = () => {
    if (looked && follow.checked) chart.setScale('x', {min: looked[0], max: looked[1]});
  };
  const make = () => {
    if (!box.isConnected) return;
    chart?.destroy();
    chart = new uPlot(options(), columns(), box);
    look();
  };
  const table = () => {
    const end = Math.max(...m.runs.flatMap(run => points(run).map(([at]) => at)), 0), rows = 25;
    const cell = (tag, text) => page.element(tag, {textContent: text});
    const body = page.element('tbody');
    for (let i = 0; i < rows; ++i) {
      const at = Math.round(end * i / (rows - 1));
      body.append(page.element('tr', {}, cell('td', time(at)), ...m.runs.map(run => cell('td', page.bytes(page.level_at(points(run), at))))));
    }
    const head = page.element('thead', {}, page.element('tr', {}, cell('th', 'time'), ...m.runs.map(run => cell('th', run.title))));
    const whole = page.element('table', {}, head, body);
    whole.setAttribute('aria-label', 'Memory allocated over time');
    document.getElementById('levels-table').replaceChildren(page.element('details', {}, cell('summary', 'The curve as a table'), whole));
  };
  const again = () => { make(), table(); };

  devices.addEventListener('change', again);
  follow.addEventListener('change', () => follow.checked ? look() : make());
  page.on_theme(make);
  window.addEventListener('resize', page.later(() => box.isConnected && chart.setSize({width: box.clientWidth, height: 260})));
  timeline?.watch((from, to, shifts) => {
    const moved = shifts.some((by, i) => by !== shift[i]);
    looked = [from, to], shift = [...shifts];
    if (moved) make();
    else page.later(look)();
  });
  again();
};
