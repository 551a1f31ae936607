'use strict';
// Functions that the scripts of all pages share, as members of `page`.
const page = (() => {
  const root = document.documentElement;

  // Parses the JSON in a script element, when a script needs it.
  const data = id => JSON.parse(document.getElementById(id).textContent);
  // Decodes the base64 of packed_numbers.h; numbers() then reads the numbers.
  const unpacked = text => {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
    return bytes;
  };
  const numbers = (text, signed = false) => {
    const bytes = unpacked(text), all = new Float64Array(bytes.reduce((sum, byte) => sum + (byte < 128), 0));
    let count = 0, value = 0, scale = 1;
    for (const byte of bytes) {
      value += (byte & 127) * scale;
      if (byte > 127) {
        scale *= 128;
        continue;
      }
      all[count++] = signed ? (value % 2 ? -(value + 1) / 2 : value / 2) : value;
      value = 0, scale = 1;
    }
    return all;
  };

  const element = (tag, properties = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in made) made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  };

  const scaled = (value, units) => {
    let at = 0;
    while (at + 1 < units.length && Math.abs(value) >= 1000) value /= 1000, ++at;
    return (at === 0 ? Math.round(value) : +value.toPrecision(4)) + ' ' + units[at];
  };
  const bytes = value => scaled(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']);
  const time = value => scaled(value, ['ns', 'us', 'ms', 's']);
  // Returns about `count` round numbers in [from, to], at least `least` apart.
  const ticks = (from, to, count, least = 1) => {
    const raw = (to - from) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw));
    const step = Math.max([1, 2, 5, 10].find(n => n * power >= raw) * power, least), all = [];
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) all.push(t);
    return all;
  };

  // Colours come from the style sheet. Pictures are drawn again when the theme changes.
  let colours = new Map();
  const colour = name => {
    if (!colours.has(name)) colours.set(name, getComputedStyle(root).getPropertyValue(name).trim());
    return colours.get(name);
  };
  const themed = [];
  const on_theme = draw => themed.push(draw);
  const is_dark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const button = document.getElementById('theme');
  const new_theme = () => {
    colours = new Map();
    button.textContent = is_dark() ? 'Light theme' : 'Dark theme';
    for (const draw of themed) draw();
  };
  button.addEventListener('click', () => {
    root.dataset.theme = is_dark() ? 'light' : 'dark';
    try {
      localStorage.setItem('foretrace-theme', root.dataset.theme);
    } catch { /* A page that is opened from a file may not be allowed to store anything. */ }
    new_theme();
  });
  button.hidden = false;
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', new_theme);

  // Print in the light theme, with all details open.
  let before = null;
  window.addEventListener('beforeprint', () => {
    before = {theme: root.dataset.theme, closed: [...document.querySelectorAll('details:not([open])')]};
    for (const details of before.closed) details.open = true;
    root.dataset.theme = 'light', new_theme();
  });
  window.addEventListener('afterprint', () => {
    if (!before) return;
    for (const details of before.closed) details.open = false;
    if (before.theme) root.dataset.theme = before.theme;
    else delete root.dataset.theme;
    before = null, new_theme();
  });

  // Returns a function that calls `draw` at most once per frame.
  const later = draw => {
    let waiting = false;
    return () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false, draw(); });
    };
  };

  // Clears the canvas and gives it the resolution of the screen; w and h are in CSS pixels.
  const prepare = canvas => {
    const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    const width = Math.round(box.width * ratio), tall = Math.round(box.height * ratio);
    if (canvas.width !== width || canvas.height !== tall) canvas.width = width, canvas.height = tall;
    const c = canvas.getContext('2d');
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, box.width, box.height);
    c.font = '12px system-ui, sans-serif';
    return {c, w: box.width, h: box.height};
  };

  // Makes the visible range of an axis, which wheel, drag and keys change on every canvas given to attach(). `left` is the space
  // before the axis; `changed` is called after each change.
  const view_of = ({left, changed}) => {
    const view = {from: 0, to: 1, first: 0, last: 1, least: 1};
    view.look = (from, to) => {
      const width = Math.min(Math.max(to - from, view.least), view.last - view.first);
      view.from = Math.min(Math.max(from, view.first), view.last - width), view.to = view.from + width;
      changed();
    };
    view.whole = () => view.look(view.first, view.last);
    view.zoom = (factor, at = (view.from + view.to) / 2) => view.look(at - (at - view.from) * factor, at + (view.to - at) * factor);
    view.move = share => view.look(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
    view.at = (canvas, event) => {
      const box = canvas.getBoundingClientRect();
      return view.from + (event.clientX - box.left - left) / (box.width - left) * (view.to - view.from);
    };
    view.key = event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return false;
      if (event.key === 'ArrowLeft' || event.key === 'a') view.move(-.125);
      else if (event.key === 'ArrowRight' || event.key === 'd') view.move(.125);
      else if (['+', '=', 'w'].includes(event.key)) view.zoom(.7);
      else if (['-', '_', 's'].includes(event.key)) view.zoom(1 / .7);
      else if (event.key === '0' || event.key === 'Home') view.whole();
      else return false;
      event.preventDefault();
      return true;
    };
    // `hover` is called when the pointer moves without dragging, `leave` when it leaves.
    view.attach = (canvas, {hover = () => {}, leave = () => {}, wheel = () => true} = {}) => {
      let drag = null;
      canvas.addEventListener('wheel', event => {
        if (!wheel(event)) return;
        event.preventDefault();
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return view.move(event.deltaX / 1000);
        view.zoom(Math.exp(event.deltaY / 400), view.at(canvas, event));
      }, {passive: false});
      canvas.addEventListener('pointerdown', event => {
        drag = {x: event.clientX, from: view.from, to: view.to};
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener('pointermove', event => {
        if (!drag) return hover(event);
        const box = canvas.getBoundingClientRect();
        const move = (drag.x - event.clientX) / (box.width - left) * (drag.to - drag.from);
        if (move !== 0) view.look(drag.from + move, drag.to + move);
      });
      canvas.addEventListener('pointerup', () => drag = null);
      canvas.addEventListener('pointercancel', () => drag = null);
      canvas.addEventListener('pointerleave', leave);
      canvas.addEventListener('dblclick', view.whole);
      canvas.addEventListener('keydown', view.key);
    };
    return view;
  };

  // Returns the last value at or before `at` of a curve of [place, value]; 0 before the first.
  const level_at = (curve, at) => {
    let low = 0, high = curve.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (curve[mid][0] <= at) low = mid + 1;
      else high = mid;
    }
    return low ? curve[low - 1][1] : 0;
  };

  // Shows lines of text in `box`, the first in bold, next to the pointer but inside the parent of `box`.
  const show = (box, event, lines) => {
    box.replaceChildren(...lines.map((text, i) => element(i ? 'div' : 'strong', {textContent: text})));
    const room = box.parentElement.getBoundingClientRect();
    box.style.display = 'block';
    box.style.left = Math.max(Math.min(event.clientX - room.left + 14, room.width - box.offsetWidth - 4), 0) + 'px';
    box.style.top = event.clientY - room.top + 14 + 'px';
  };

  // Makes the Tab key skip boxes that do not scroll, and marks those that do.
  const settle = () => {
    for (const box of document.querySelectorAll('.table, .sideways')) {
      const scrolls = box.scrollWidth > box.clientWidth;
      box.classList.toggle('scrolls', scrolls);
      if (scrolls) box.tabIndex = 0;
      else box.removeAttribute('tabindex');
    }
  };
  settle();
  window.addEventListener('resize', later(settle));
  document.addEventListener('toggle', later(settle), true);

  // Makes screen readers say `text`, after a short time without changes.
  const said = document.getElementById('said');
  let saying = 0;
  const say = text => {
    clearTimeout(saying);
    saying = setTimeout(() => said.textContent = text, 250);
  };

  new_theme();
  return {data, unpacked, numbers, element, bytes, time, ticks, colour, on_theme, later, prepare, view_of, level_at, show, say, settle};
})();
