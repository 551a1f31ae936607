'use strict';
// Draws the timelines on one axis: rows of lanes, zooming, the critical path, search, and what a task waits for. Zoomed out, a lane
// shows how busy it is; zoomed in, its tasks. Uses the elements that the timelines' section has at the time of the call.
page.make_timeline = () => {
  const {colour, element, time} = page;
  const by_id = id => document.getElementById(id);
  const canvas = by_id('timeline'), hover = by_id('hover'), inspect = by_id('inspect');
  const kRow = 20, kTop = 34, kGroup = 22;
  const left = innerWidth < 700 ? 92 : 190;
  const watchers = [];
  let t = null, rows = [], shift = [], chosen = null, lane_row = 0, matching = null, matches = [];

  // Makes the rows from top to bottom: headings of groups, and lanes of a run.
  const lay_out = () => {
    const in_turn = by_id('arrange')?.value === 'lanes';
    const all = t.runs.flatMap(run => run.lanes.map(lane => ({run, lane, name: t.lanes[lane.lane][0], group: t.lanes[lane.lane][1]})));
    if (in_turn) {
      const order = new Map();
      for (const row of all) if (!order.has(row.lane.lane)) order.set(row.lane.lane, order.size);
      const groups = [...new Set(all.map(row => row.group))];
      all.sort((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group) || order.get(a.lane.lane) - order.get(b.lane.lane) ||
        a.run.number - b.run.number);
    }
    rows = [];
    let at = kTop, heading = null;
    for (const row of all) {
      const wanted = in_turn ? row.group : t.runs.length > 1 ? row.run.title + ': ' + row.group : row.group;
      if (wanted !== heading) rows.push({heading: heading = wanted, top: at, height: kGroup}), at += kGroup;
      rows.push({...row, top: at, height: kRow, label: in_turn && t.runs.length > 1 ? row.run.title + ', ' + row.name : row.name});
      at += kRow;
    }
    canvas.style.height = at + 4 + 'px';
    if (!rows[lane_row]?.run) lane_row = rows.findIndex(row => row.run);
  };

  const align = () => {
    const by_step = by_id('align')?.value === 'step';
    const begin = run => by_step && run.step !== null ? run.steps[run.step][1] : 0;
    shift = t.runs.map(run => begin(t.runs[0]) - begin(run));
    view.first = Math.min(...shift), view.last = Math.max(...t.runs.map((run, i) => run.length + shift[i]), view.first + 1);
  };
  const show_step = () => {
    if (t.runs.some(run => run.step === null)) return view.whole();
    const ends = t.runs.map((one, i) => one.steps[one.step][2] + shift[i]);
    const from = Math.min(...t.runs.map((one, i) => one.steps[one.step][1] + shift[i])), to = Math.max(...ends);
    view.look(from - .02 * (to - from), to + .02 * (to - from));
  };

  // Drawing. `p` has the canvas, x(), which maps a time to a position, and the visible range of time.
  const fitted = (c, text, room, end = 0) => {
    if (c.measureText(text).width <= room) return text;
    for (let fits = Math.floor(text.length * room / c.measureText(text).width); fits >= 2 + end; --fits) {
      const cut = text.slice(0, fits - end) + '\u2026' + (end ? text.slice(-end) : '');
      if (c.measureText(cut).width <= room) return cut;
    }
    return '';
  };
  const draw_busy = (p, row, faint) => {
    const {c} = p, offset = row.lane.place * t.bins, by = shift[row.run.number];
    const column = (p.to - p.from) / (p.w - left), inner = row.height - 3;
    c.globalAlpha = faint ? .4 : 1;
    let open = null;
    const close = () => {
      if (!open) return;
      const tall = Math.max(open.level / 31 * inner, 2);
      c.fillStyle = p.classes[open.kind], c.fillRect(open.x, row.top + 1 + inner - tall, open.width, tall);
      open = null;
    };
    for (let x = left; x < p.w; ++x) {
      const at = p.from + (x - left) * column - by;
      const first = Math.max(Math.floor(at / t.bin_ns), 0), last = Math.min(Math.max(Math.floor((at + column) / t.bin_ns), first), t.bins - 1);
      let sum = 0, most = 0, kind = 0;
      for (let i = first; i <= last; ++i) {
        const byte = row.run.bins[offset + i], level = byte & 31;
        sum += level;
        if (level > most) most = level, kind = byte >> 5;
      }
      const level = at + column < 0 || first >= t.bins ? 0 : sum && Math.max(Math.round(sum / (last - first + 1)), 1);
      if (open && open.kind === kind && open.level === level) {
        ++open.width;
        continue;
      }
      close();
      if (level) open = {x, width: 1, level, kind};
    }
    close();
    c.globalAlpha = 1;
  };
  const draw_task = (p, row, i, dim) => {
    const {c} = p, by = shift[row.run.number], x = Math.max(p.x(row.run.start[i] + by), left);
    const w = Math.min(p.x(row.run.end[i] + by), p.w) - x;
    c.globalAlpha = dim ? .25 : 1;
    c.fillStyle = p.classes[t.class_of(row.run.kind[i])], c.fillRect(x, row.top + 1, Math.max(w, .7), row.height - 3);
    if (w > 3) c.strokeStyle = p.edge, c.lineWidth = .5, c.strokeRect(x + .25, row.top + 1.25, w - .5, row.height - 3.5);
    if (w > 34) {
      c.fillStyle = p.on;
      c.fillText(fitted(c, t.names[row.run.name[i]], w - 6), x + 3, row.top + row.height / 2 - .5);
    }
    c.globalAlpha = 1;
  };
  const draw_lane = (p, row) => {
    const by = shift[row.run.number], first = t.first_at(row.run, row.lane, p.from - by);
    let last = first;
    while (last < row.lane.last && row.run.start[last] + by <= p.to) ++last;
    const narrow = (p.to - p.from) / (p.w - left);
    const crowded = last - first > 1500 && (last - first) / (p.w - left) > 1.5;
    const is_whole = row.lane.shown === row.lane.tasks;
    if (crowded || !is_whole) draw_busy(p, row, matching !== null || !crowded);
    for (let i = first; i < last; ++i) {
      const matched = matching?.has(row.run.name[i]);
      if (crowded && !(matched || row.run.end[i] - row.run.start[i] > 3 * narrow)) continue;
      draw_task(p, row, i, matching && !matched);
      if (!matched) continue;
      const x = Math.max(p.x(row.run.start[i] + by), left);
      p.c.strokeStyle = p.match, p.c.lineWidth = 1.5;
      p.c.strokeRect(x, row.top + .75, Math.max(Math.min(p.x(row.run.end[i] + by), p.w) - x, 1), row.height - 2.5);
    }
  };
  const draw_path = p => {
    const {c} = p;
    c.strokeStyle = c.fillStyle = colour('--path'), c.lineWidth = 1;
    for (const row of rows) {
      const stretches = row.run?.path.by_lane.get(row.lane.lane);
      if (!stretches) continue;
      const by = shift[row.run.number];
      for (let i = 0; i < stretches.from.length; ++i) {
        const from = stretches.from[i] + by, to = stretches.to[i] + by;
        if (to < p.from || from > p.to) continue;
        const x = Math.max(p.x(from), left);
        c.fillRect(x, row.top + row.height - 3, Math.max(Math.min(p.x(to), p.w) - x, 1), 3);
      }
    }
    for (const run of t.runs) draw_hops(p, run);
  };
  // Draws where the path changes lanes, unless there are too many changes to follow.
  const draw_hops = (p, run) => {
    const {lane, from, to} = run.path, by = shift[run.number], seen = [];
    const place = new Map(rows.filter(row => row.run === run).map(row => [row.lane.lane, row]));
    for (let i = 1; i < lane.length && seen.length <= 250; ++i) {
      if (from[i] + by < p.from || to[i - 1] + by > p.to || lane[i] === lane[i - 1]) continue;
      if (place.has(lane[i]) && place.has(lane[i - 1])) seen.push(i);
    }
    if (seen.length > 250) return;
    p.c.beginPath();
    for (const i of seen) {
      const a = place.get(lane[i - 1]), b = place.get(lane[i]);
      p.c.moveTo(p.x(to[i - 1] + by), a.top + a.height - 2), p.c.lineTo(p.x(from[i] + by), b.top + b.height - 2);
    }
    p.c.stroke();
  };
  const draw_axis = p => {
    const {c} = p;
    c.fillStyle = colour('--quiet'), c.strokeStyle = colour('--line'), c.lineWidth = 1;
    c.textBaseline = 'middle', c.textAlign = 'center';
    for (const tick of page.ticks(p.from, p.to, Math.max(Math.floor((p.w - left) / 110), 2))) {
      const x = p.x(tick);
      c.beginPath(), c.moveTo(x, 14), c.lineTo(x, p.h), c.stroke();
      const half = c.measureText(time(tick)).width / 2 + 2;
      c.fillText(time(tick), Math.min(Math.max(x, left + half), p.w - half), 8);
    }
    c.textAlign = 'left';
    let last = -1e9;
    for (const [name, from] of t.runs[0].steps) {
      const x = p.x(from + shift[0]);
      if (x < left || x > p.w || x < last + 120) continue;
      c.fillText('| ' + name, x, 24), last = x;
    }
  };
  const draw_steps = (p, row) => {
    p.c.strokeStyle = p.quiet, p.c.lineWidth = 1, p.c.setLineDash([2, 2]);
    p.c.beginPath();
    for (const [, from] of row.run.steps) {
      const x = Math.round(p.x(from + shift[row.run.number])) + .5;
      if (x >= left && x <= p.w) p.c.moveTo(x, row.top), p.c.lineTo(x, row.top + row.height);
    }
    p.c.stroke(), p.c.setLineDash([]);
  };
  const draw_labels = p => {
    const {c} = p;
    c.textBaseline = 'middle', c.textAlign = 'left';
    for (const [i, row] of rows.entries()) {
      if (row.heading) {
        c.font = '600 12px system-ui, sans-serif';
        const text = fitted(c, row.heading, p.w - 8);
        c.fillStyle = p.edge, c.fillRect(0, row.top + 1, c.measureText(text).width + 10, row.height - 2);
        c.fillStyle = p.ink, c.fillText(text, 4, row.top + row.height / 2 + 2);
        continue;
      }
      c.font = '12px system-ui, sans-serif';
      if (i === lane_row && document.activeElement === canvas) {
        c.fillStyle = colour('--raised'), c.fillRect(0, row.top, left - 4, row.height);
        c.fillStyle = colour('--accent'), c.fillRect(0, row.top, 3, row.height);
      }
      c.fillStyle = p.quiet, c.fillText(fitted(c, row.label, left - 14, 5), 8, row.top + row.height / 2);
    }
  };
  const draw = () => {
    if (!canvas.isConnected) return;
    const p = page.prepare(canvas);
    p.from = view.from, p.to = view.to;
    p.x = at => left + (at - p.from) / (p.to - p.from) * (p.w - left);
    p.classes = Array.from({length: 7}, (_, i) => colour('--class-' + i));
    p.ink = colour('--text'), p.on = colour('--on'), p.quiet = colour('--quiet'), p.edge = colour('--page'), p.match = colour('--match');
    draw_axis(p);
    p.c.textBaseline = 'middle', p.c.textAlign = 'left', p.c.font = '11px system-ui, sans-serif';
    p.c.save(), p.c.beginPath(), p.c.rect(left, kTop, p.w - left, p.h), p.c.clip();
    for (const row of rows) if (row.run) draw_steps(p, row), draw_lane(p, row);
    if (by_id('path').checked) draw_path(p);
    draw_chosen(p);
    p.c.restore();
    draw_labels(p);
    canvas.dataset.from = Math.round(view.from), canvas.dataset.to = Math.round(view.to);
  };
  const draw_chosen = p => {
    const row = chosen && rows.find(one => one.run === chosen.run && one.lane === chosen.lane);
    if (!row) return;
    const by = shift[row.run.number], x = p.x(row.run.start[chosen.task] + by), to = p.x(row.run.end[chosen.task] + by);
    p.c.strokeStyle = p.ink, p.c.lineWidth = 2, p.c.strokeRect(x - 1, row.top, Math.max(to - x, 1) + 2, row.height - 1);
  };

  // Descriptions of tasks and lanes.
  const why = (run, task) => {
    const reason = run.reasons[run.reason()[task]];
    if (!reason) return 'nothing: it could start at once';
    const [name, lane, rule, provenance] = reason;
    const because = [t.names[rule] || (provenance ? '' : 'in line'), provenance].filter(word => word).join(', ');
    return `${t.names[name] || 'a task'} on ${t.lanes[lane][0]} (${because})`;
  };
  const facts = (run, lane, task) => {
    const step = run.steps[run.step_of()[task]], module = t.names[run.module()[task]];
    const phase = t.phase_name(run.kind[task]), share = run.waited()[task];
    return [
      ['run', run.title],
      ['lane', t.lanes[lane.lane].join(', ')],
      ['kind', t.kind_name(run.kind[task]) + (phase !== 'none' ? ', ' + phase : '')],
      ['takes', time(run.end[task] - run.start[task])],
      ['starts', time(run.start[task]) + (step ? `, ${time(run.start[task] - step[1])} into ${step[0]}` : '')],
      ...(module ? [['module', module]] : []),
      ['waits for', why(run, task) + (share > 0 ? `; its lane stood still for ${time(share)}` : '')],
    ];
  };
  const choose = (run, task, look) => {
    const lane = run.lane_of(task);
    chosen = {run, lane, task};
    lane_row = rows.findIndex(row => row.run === run && row.lane === lane);
    const before = run.before()[task];
    const list = element('dl');
    for (const [name, text] of facts(run, lane, task)) list.append(element('dt', {textContent: name}), element('dd', {textContent: text}));
    inspect.replaceChildren(element('h3', {textContent: t.names[run.name[task]] || '(no name)'}), list);
    if (before) {
      inspect.append(element('button', {type: 'button', textContent: 'Go to what it waits for', onclick: () => choose(run, task - before, true)}));
    }
    page.say(`${t.names[run.name[task]]}, ${facts(run, lane, task).map(fact => fact.join(' ')).join(', ')}`);
    const by = shift[run.number], from = run.start[task] + by, to = run.end[task] + by;
    if (look && (from < view.from || to > view.to)) {
      const width = Math.max(view.to - view.from, (to - from) * 1.5);
      return view.look((from + to - width) / 2, (from + to + width) / 2);
    }
    redraw();
  };
  const describe = () => {
    const row = rows[lane_row], busy = row?.run ? `; ${row.run.title}, ${row.name}` : '';
    page.say(`Showing ${time(view.from)} to ${time(view.to)}${busy}`);
  };

  const row_at = event => {
    const y = event.clientY - canvas.getBoundingClientRect().top;
    return rows.find(row => row.run && y >= row.top && y < row.top + row.height);
  };
  const task_at = (row, event) => {
    const near = 3 * (view.to - view.from) / (canvas.clientWidth - left), at = view.at(canvas, event) - shift[row.run.number];
    let found = -1, distance = near;
    for (let i = t.first_at(row.run, row.lane, at - near); i < row.lane.last && row.run.start[i] <= at + near; ++i) {
      const off = Math.max(row.run.start[i] - at, at - row.run.end[i], 0);
      if (off < distance || (off === 0 && row.lane.overlaps)) found = i, distance = off;
      if (off === 0 && !row.lane.overlaps) break;
    }
    return found;
  };
  const hide = () => hover.style.display = 'none';
  const tell = event => {
    const row = row_at(event), at = view.at(canvas, event);
    if (!row || at < view.from) return hide();
    const {run} = row, task = task_at(row, event);
    if (task >= 0) {
      const told = facts(run, row.lane, task).filter(([name]) => name !== 'lane' && name !== 'run').map(([name, text]) => `${name}: ${text}`);
      return page.show(hover, event, [t.names[run.name[task]] || '(no name)', ...told]);
    }
    const byte = run.bins[row.lane.place * t.bins + Math.floor((at - shift[run.number]) / t.bin_ns)] || 0;
    const lines = [`${run.title}, ${row.name}`, time(at - shift[run.number])];
    if (byte & 31 && row.lane.shown < row.lane.tasks)
      lines.push(`about ${Math.round((byte & 31) / 31 * 100)} % busy, most with ${t.class_name(byte >> 5)}; its tasks are not on this page`);
    page.show(hover, event, lines);
  };

  // Search.
  const search = () => {
    const text = by_id('search').value.trim().toLowerCase();
    matching = text ? new Set(t.names.flatMap((name, i) => i && name.toLowerCase().includes(text) ? [i] : [])) : null;
    matches = [];
    for (const run of matching ? t.runs : []) {
      for (let i = 0; i < run.name.length; ++i) if (matching.has(run.name[i])) matches.push({run, task: i});
    }
    matches.sort((a, b) => a.run.number - b.run.number || a.run.start[a.task] - b.run.start[b.task]);
    by_id('matches').textContent = !matching ? '' : t.runs.map(run => {
      const own = matches.filter(match => match.run === run);
      return `${run.title}: ${own.length} tasks, ${time(own.reduce((sum, {task}) => sum + run.end[task] - run.start[task], 0))}`;
    }).join('; ');
    redraw();
  };
  const next_match = by => {
    if (!matches.length) return;
    const at = matches.findIndex(match => chosen && match.run === chosen.run && match.task === chosen.task);
    const {run, task} = matches[(at < 0 ? (by > 0 ? 0 : -1) : at + by + matches.length) % matches.length] ?? matches.at(-1);
    choose(run, task, true);
  };

  const redraw = page.later(draw);
  const view = page.view_of({left, changed: () => {
    hide(), redraw();
    if (canvas.dataset.ready) describe();
    for (const watch of watchers) watch(view.from, view.to, shift);
  }});
  view.least = 100;

  const choose_lane = by => {
    for (let i = lane_row + by; i >= 0 && i < rows.length; i += by) {
      if (!rows[i].run) continue;
      lane_row = i;
      const {run, lane, label} = rows[i];
      page.say(`${run.title}, ${label}: ${lane.tasks} tasks, busy for ${time(lane.busy)} of ${time(run.length)}`);
      return redraw();
    }
  };
  const choose_beside = by => {
    const row = rows[lane_row];
    if (!row?.run) return;
    const on_lane = chosen && chosen.run === row.run && chosen.lane === row.lane;
    const middle = (view.from + view.to) / 2 - shift[row.run.number];
    const task = on_lane ? chosen.task + by : t.first_at(row.run, row.lane, middle);
    if (task >= row.lane.first && task < row.lane.last) choose(row.run, task, true);
  };
  const keys = {ArrowUp: () => choose_lane(-1), ArrowDown: () => choose_lane(1), '[': () => choose_beside(-1), ']': () => choose_beside(1)};

  const listen = () => {
    let pressed = null;
    view.attach(canvas, {hover: tell, leave: hide, wheel: event => view.at(canvas, event) >= view.from});
    canvas.addEventListener('pointerdown', event => pressed = event.clientX);
    canvas.addEventListener('click', event => {
      const row = row_at(event), task = row && Math.abs(event.clientX - pressed) < 4 ? task_at(row, event) : -1;
      if (task >= 0) choose(row.run, task, false);
    });
    canvas.addEventListener('keydown', event => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault(), keys[event.key]();
    });
    for (const name of ['focus', 'blur']) canvas.addEventListener(name, redraw);
    const on = (id, event, act) => by_id(id)?.addEventListener(event, act);
    on('zoom-in', 'click', () => view.zoom(.5)), on('zoom-out', 'click', () => view.zoom(2));
    on('whole', 'click', view.whole), on('one-step', 'click', show_step);
    on('arrange', 'change', () => { lay_out(), redraw(); });
    on('align', 'change', () => { align(), show_step(); });
    on('path', 'change', redraw), on('search', 'input', page.later(search));
    on('match-before', 'click', () => next_match(-1)), on('match-behind', 'click', () => next_match(1));
    on('search', 'keydown', event => event.key === 'Enter' && next_match(event.shiftKey ? -1 : 1));
    window.addEventListener('resize', redraw);
    page.on_theme(draw);
  };

  // Draws new runs (see timeline_json.h), and keeps the visible range as far as they cover it.
  const load = data => {
    const is_first = t === null, looked = [view.from, view.to];
    t = page.read_timelines(data), chosen = null;
    inspect.replaceChildren(...(is_first ? inspect.childNodes : []));
    lay_out(), align();
    if (is_first) listen(), show_step();
    else view.look(...looked), search();
    draw();
    canvas.dataset.ready = 'yes';
  };
  // `watch` registers a function watch(from, to, shift of each run) that is called whenever the visible range changes.
  return {load, watch: watch => watchers.push(watch)};
};
