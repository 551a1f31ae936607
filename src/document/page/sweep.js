'use strict';
// Draws parallel axes with brushes, two axes against each other with the front, and a table of the points that the brushes keep.
(() => {
  const sweep = page.data('sweep'), axes = sweep.axes, count = sweep.numbers.length;
  const fast = axes.findIndex(axis => axis.key === 'step_time_ns');
  const words = (axis, value) => {
    if (value === null || value === undefined) return '-';
    if (axis.names) return axis.names[value];
    if (axis.unit === 'ns') return page.time(value);
    return axis.unit === 'bytes' ? page.bytes(value) : String(+value.toPrecision(6));
  };
  for (const axis of axes) {
    const known = axis.values.filter(value => value !== null);
    axis.low = known.length ? known.reduce((a, b) => Math.min(a, b)) : 0;
    axis.high = known.length ? known.reduce((a, b) => Math.max(a, b)) : 1;
    if (axis.high === axis.low) axis.low -= .5, axis.high += .5;
    axis.brush = null;
    axis.share = value => (value - axis.low) / (axis.high - axis.low);
  }
  const front = new Set(sweep.front), failing = new Set(sweep.failing);
  const kept = i => axes.every(({brush, values}) => !brush || (values[i] !== null && values[i] >= brush[0] && values[i] <= brush[1]));
  let chosen = [];

  // Parallel axes.
  const lines = document.getElementById('parallel'), top = 62, bottom = 22, side = 66, least = 124;
  // Each axis has room for its labels. On a narrow screen, the picture is wider than the screen and scrolls.
  lines.style.minWidth = 2 * side + (axes.length - 1) * least + 'px', page.settle();
  const gap = w => axes.length < 2 ? w : (w - 2 * side) / (axes.length - 1), room_of = w => Math.min(gap(w), 2 * side) - 4;
  const cut = (c, text, room) => {
    if (c.measureText(text).width <= room) return text;
    let length = text.length;
    while (length > 1 && c.measureText(text.slice(0, length) + '…').width > room) --length;
    return text.slice(0, length) + '…';
  };
  // Splits a text into at most three lines, after dots, underscores and blanks. Lines that do not fit are cut.
  const in_lines = (c, text, w) => {
    const room = room_of(w), all = [''];
    for (const piece of text.match(/[^._ ]*[._ ]?/g)) {
      const longer = all.at(-1) + piece;
      if (all.length < 3 && all.at(-1) && c.measureText(longer.trimEnd()).width > room) all.push(piece);
      else all[all.length - 1] = longer;
    }
    return all.map(line => cut(c, line.trimEnd(), room));
  };
  const place = (w, n) => axes.length < 2 ? w / 2 : side + n * (w - 2 * side) / (axes.length - 1);
  const height = (h, share) => h - bottom - share * (h - top - bottom);
  const draw_point = (c, w, h, i) => {
    c.beginPath();
    let begun = false;
    axes.forEach((axis, n) => {
      if (axis.values[i] === null) return;
      const x = place(w, n), y = height(h, axis.share(axis.values[i]));
      begun ? c.lineTo(x, y) : c.moveTo(x, y);
      begun = true;
    });
    c.stroke();
  };
  const draw_axis = (c, w, h, axis, n) => {
    const x = place(w, n);
    c.strokeStyle = page.colour('--quiet'), c.globalAlpha = 1, c.lineWidth = 1;
    c.beginPath(), c.moveTo(x, top), c.lineTo(x, h - bottom), c.stroke();
    c.fillStyle = page.colour('--text'), c.textAlign = 'center';
    const name = in_lines(c, axis.name, w);
    name.forEach((line, k) => c.fillText(line, x, top - 22 - 14 * (name.length - 1 - k)));
    c.fillStyle = page.colour('--quiet');
    if (axis.names) {
      const step = Math.ceil(axis.names.length / 12);
      axis.names.forEach((name, k) => k % step || c.fillText(cut(c, name, room_of(w)), x, height(h, axis.share(k)) + (k ? -4 : 14)));
    } else {
      c.fillText(words(axis, axis.high), x, top - 6), c.fillText(words(axis, axis.low), x, h - 6);
    }
    if (!axis.brush) return;
    const from = height(h, axis.share(axis.brush[1])), to = height(h, axis.share(axis.brush[0]));
    c.globalAlpha = .25, c.fillStyle = page.colour('--accent'), c.fillRect(x - 9, from - 1, 18, Math.max(to - from + 2, 3));
    c.globalAlpha = 1, c.strokeStyle = page.colour('--accent'), c.strokeRect(x - 9, from - 1, 18, Math.max(to - from + 2, 3));
  };
  const draw_lines = page.later(() => {
    const {c, w, h} = page.prepare(lines);
    const is_kept = new Uint8Array(count);
    for (const i of chosen) is_kept[i] = 1;
    c.lineWidth = 1, c.strokeStyle = page.colour('--line');
    if (chosen.length < count) for (let i = 0; i < count; ++i) if (!is_kept[i]) draw_point(c, w, h, i);
    c.globalAlpha = Math.min(1, Math.max(.04, 60 / chosen.length));
    c.strokeStyle = page.colour('--bad'), c.setLineDash([4, 4]);
    for (const i of chosen) if (failing.has(i)) draw_point(c, w, h, i);
    c.strokeStyle = page.colour('--accent'), c.setLineDash([]);
    for (const i of chosen) if (!failing.has(i)) draw_point(c, w, h, i);
    c.globalAlpha = 1, c.lineWidth = 1.6, c.strokeStyle = page.colour('--good');
    for (const i of chosen) if (front.has(i)) draw_point(c, w, h, i);
    axes.forEach((axis, n) => draw_axis(c, w, h, axis, n));
  });

  // Two axes against each other.
  const pair = document.getElementById('pair'), across = document.getElementById('across'), up = document.getElementById('up');
  const room = {left: 78, right: 20, top: 14, bottom: 34};
  const spot = (w, h, i) => {
    const x = axes[across.value], y = axes[up.value];
    if (x.values[i] === null || y.values[i] === null) return null;
    return [room.left + x.share(x.values[i]) * (w - room.left - room.right), h - room.bottom - y.share(y.values[i]) * (h - room.top - room.bottom)];
  };
  // The values that an axis is labelled with.
  const marks = (axis, most) => {
    if (!axis.names) return page.ticks(axis.low, axis.high, most, axis.unit ? 1 : 0);
    const step = Math.ceil(axis.names.length / most);
    return axis.names.map((_, k) => k).filter(k => k % step === 0);
  };
  const draw_pair = page.later(() => {
    const {c, w, h} = page.prepare(pair), x = axes[across.value], y = axes[up.value];
    c.strokeStyle = page.colour('--quiet'), c.beginPath(), c.moveTo(room.left, room.top), c.lineTo(room.left, h - room.bottom);
    c.lineTo(w - room.right, h - room.bottom), c.stroke();
    c.fillStyle = page.colour('--quiet');
    for (const value of marks(x, (w - room.left) / 110)) {
      c.textAlign = 'center', c.fillText(words(x, value), room.left + x.share(value) * (w - room.left - room.right), h - 18);
    }
    for (const value of marks(y, h / 60)) {
      c.textAlign = 'right', c.fillText(words(y, value), room.left - 6, h - room.bottom - y.share(value) * (h - room.top - room.bottom) + 4);
    }
    c.fillStyle = page.colour('--text'), c.textAlign = 'center', c.fillText(x.name, (room.left + w) / 2, h - 4);
    c.textAlign = 'left', c.fillText(y.name, room.left + 8, room.top + 4);
    const dot = (i, size) => {
      const at = spot(w, h, i);
      if (at) c.beginPath(), c.arc(at[0], at[1], size, 0, 7), c.fill();
    };
    const cross = i => {
      const at = spot(w, h, i);
      if (!at) return;
      c.beginPath(), c.moveTo(at[0] - 3, at[1] - 3), c.lineTo(at[0] + 3, at[1] + 3);
      c.moveTo(at[0] - 3, at[1] + 3), c.lineTo(at[0] + 3, at[1] - 3), c.stroke();
    };
    c.fillStyle = page.colour('--accent'), c.strokeStyle = page.colour('--bad'), c.globalAlpha = Math.min(1, Math.max(.15, 400 / chosen.length));
    for (const i of chosen) failing.has(i) ? cross(i) : dot(i, 2.5);
    c.globalAlpha = 1, c.fillStyle = page.colour('--good');
    for (const i of chosen) if (front.has(i)) dot(i, 4);
  });

  // The table of the points that are kept. The head of a column sorts by it, and turns the order if it is sorted already; what is not known comes last.
  const table = document.getElementById('kept'), told = document.getElementById('told'), most = 200;
  const columns = [{name: 'point', names: null, values: sweep.numbers}, ...axes], body = page.element('tbody');
  const sorted_by = {column: columns[fast + 1], is_falling: false};
  const before = (a, b) => {
    const {column: {values}, is_falling} = sorted_by, x = values[a], y = values[b];
    if (x === null || y === null) return (x === null) - (y === null) || a - b;
    return (is_falling ? y - x : x - y) || a - b;
  };
  const cell = (tag, text, left) => page.element(tag, {textContent: text, className: left ? 'left' : ''});
  const heads = columns.map(column => {
    const head = cell('th', '', column.names), button = page.element('button', {type: 'button', textContent: column.name});
    button.addEventListener('click', () => {
      sorted_by.is_falling = sorted_by.column === column && !sorted_by.is_falling;
      sorted_by.column = column;
      page.say(`sorted by ${column.name}, ${sorted_by.is_falling ? 'falling' : 'rising'}`);
      fill_table();
    });
    head.append(button);
    return head;
  });
  table.append(page.element('thead', {}, page.element('tr', {}, ...heads)), body);
  const fill_table = page.later(() => {
    heads.forEach((head, n) => {
      if (columns[n] !== sorted_by.column) head.removeAttribute('aria-sort');
      else head.setAttribute('aria-sort', sorted_by.is_falling ? 'descending' : 'ascending');
    });
    body.replaceChildren(...[...chosen].sort(before).slice(0, most).map(i => page.element('tr', {},
      cell('td', (front.has(i) ? '* ' : '') + sweep.numbers[i]), ...axes.map(axis => cell('td', words(axis, axis.values[i]), axis.names)))));
    page.settle();
  });
  const changed = () => {
    chosen = [];
    for (let i = 0; i < count; ++i) if (kept(i)) chosen.push(i);
    const text = `${chosen.length} of ${count} points` + (chosen.length > most ? `, the first ${most} in the table` : '');
    told.textContent = text, page.say(text);
    draw_lines(), draw_pair(), fill_table();
  };

  // A drag along an axis makes a brush; a click removes it.
  let drag = null;
  const value_at = (axis, event) => {
    const box = lines.getBoundingClientRect(), y = event.clientY - box.top;
    const share = Math.min(Math.max((box.height - bottom - y) / (box.height - top - bottom), 0), 1);
    return axis.low + share * (axis.high - axis.low);
  };
  lines.addEventListener('pointerdown', event => {
    const box = lines.getBoundingClientRect(), x = event.clientX - box.left;
    const axis = axes.reduce((best, one, n) => Math.abs(place(box.width, n) - x) < Math.abs(place(box.width, axes.indexOf(best)) - x) ? one : best);
    drag = {axis, from: value_at(axis, event), moved: false};
    lines.setPointerCapture(event.pointerId);
  });
  lines.addEventListener('pointermove', event => {
    if (!drag) return;
    const to = value_at(drag.axis, event), slack = drag.axis.names ? .45 : 0;
    drag.moved = drag.moved || Math.abs(drag.axis.share(to) - drag.axis.share(drag.from)) > .01;
    if (!drag.moved) return;
    drag.axis.brush = [Math.min(drag.from, to) - slack, Math.max(drag.from, to) + slack];
    changed();
  });
  const end = () => {
    if (drag && !drag.moved) drag.axis.brush = null, changed();
    drag = null;
  };
  lines.addEventListener('pointerup', end), lines.addEventListener('pointercancel', () => drag = null);
  document.getElementById('all').addEventListener('click', () => {
    for (const axis of axes) axis.brush = null;
    for (const input of document.querySelectorAll('#limits input')) input.value = 1000;
    for (const select of document.querySelectorAll('#limits select')) select.value = '';
    changed();
  });

  // Controls for the keyboard: a maximum for each axis of numbers, one value for each axis of names.
  const limits = document.getElementById('limits');
  for (const axis of axes) {
    if (axis.names) {
      const select = page.element('select', {}, page.element('option', {value: '', textContent: 'any'}),
        ...axis.names.map((name, k) => page.element('option', {value: k, textContent: name})));
      select.setAttribute('aria-label', 'Only, of ' + axis.name);
      select.addEventListener('change', () => {
        axis.brush = select.value === '' ? null : [+select.value - .45, +select.value + .45];
        changed();
      });
      limits.append(page.element('label', {}, axis.name + ' ', select));
      continue;
    }
    const input = page.element('input', {type: 'range', min: 0, max: 1000, value: 1000});
    input.setAttribute('aria-label', 'At most, of ' + axis.name);
    input.addEventListener('input', () => {
      axis.brush = +input.value === 1000 ? null : [axis.low, axis.low + input.value / 1000 * (axis.high - axis.low)];
      changed();
    });
    limits.append(page.element('label', {}, axis.name + ' at most ', input));
  }
  axes.forEach((axis, n) => {
    for (const select of [across, up]) select.append(page.element('option', {value: n, textContent: axis.name}));
  });
  across.value = sweep.across, up.value = fast;
  for (const select of [across, up]) select.addEventListener('change', draw_pair);
  page.on_theme(() => { draw_lines(), draw_pair(); });
  window.addEventListener('resize', () => { draw_lines(), draw_pair(); });
  changed();
})();
