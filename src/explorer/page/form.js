'use strict';
// Makes the input fields of a transform from the JSON Schema of its settings, in the given `order`. The first few fields and those
// that `value` sets are visible; the others are folded away. `value` contains the settings that differ from the defaults; `changed`
// is called after each change.
page.make_fields = (settings, order, defaults, value, changed, prefix) => {
  const kOpen = 4;
  const {element} = page;
  let count = 0;
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const set = (name, given) => {
    if (given === undefined || same(given, defaults[name])) delete value[name];
    else value[name] = given;
    changed();
  };
  const row = (name, schema, ...inputs) => {
    const id = `${prefix}-${name}-${count++}`, help = id + '-help';
    inputs.at(-1).id = id;
    for (const input of inputs) input.setAttribute('aria-describedby', help), input.setAttribute('aria-label', `${name}, ${input.type}`);
    return element('div', {className: 'field'}, element('label', {htmlFor: id, textContent: name}),
      element('div', {className: 'values'}, ...inputs), element('div', {className: 'help', id: help, textContent: schema.description ?? ''}));
  };

  // A number with a slider from the minimum to a few times the default. Larger values can be typed.
  const number = (name, schema, given) => {
    const whole = [schema.type].flat().includes('integer'), at = given ?? defaults[name];
    const least = schema.minimum ?? Math.min(0, at ?? 0);
    const most = Math.min(schema.maximum ?? Infinity, Math.max(4 * (at ?? 0), 4 * (defaults[name] ?? 0), whole ? 16 : 2));
    const field = element('input', {type: 'number', value: at ?? '', step: whole ? 1 : 'any', min: schema.minimum ?? '', max: schema.maximum ?? ''});
    const read = text => text === '' ? undefined : whole ? Math.round(+text) : +text;
    field.addEventListener('input', () => { if (slider) slider.value = field.value; set(name, read(field.value)); });
    const slider = at === null ? null : element('input', {type: 'range', min: least, max: most, step: whole ? 1 : (most - least) / 200, value: at});
    slider?.addEventListener('input', () => {
      field.value = whole ? slider.value : +(+slider.value).toPrecision(3);
      set(name, read(field.value));
    });
    return row(name, schema, ...(slider ? [slider] : []), field);
  };
  // A quantity such as "25GB/s", with a slider that scales the number before the unit, by 1/16 to 16.
  const text = (name, schema, given) => {
    const field = element('input', {type: 'text', value: given ?? defaults[name] ?? '', spellcheck: false});
    field.addEventListener('input', () => set(name, field.value));
    const parts = schema.pattern && /^ *([0-9.]+) *([^0-9. ].*)$/.exec(field.value);
    if (!parts || !(+parts[1] > 0)) return row(name, schema, field);
    const slider = element('input', {type: 'range', min: -4, max: 4, step: .05, value: 0});
    slider.addEventListener('input', () => {
      field.value = +(+parts[1] * 2 ** +slider.value).toPrecision(3) + parts[2].trim();
      set(name, field.value);
    });
    return row(name, schema, slider, field);
  };
  const choice = (name, schema, given) => {
    const select = element('select', {}, ...schema.enum.map(one => element('option', {value: one, textContent: one})));
    select.value = given ?? defaults[name];
    select.addEventListener('change', () => set(name, select.value));
    return row(name, schema, select);
  };
  const toggle = (name, schema, given) => {
    const box = element('input', {type: 'checkbox', checked: given ?? defaults[name]});
    box.addEventListener('change', () => set(name, box.checked));
    return row(name, schema, box);
  };
  const list = (name, schema, given) => {
    const field = element('input', {type: 'text', value: (given ?? defaults[name] ?? []).join(', '), spellcheck: false});
    field.addEventListener('input', () => set(name, field.value.split(',').map(one => one.trim()).filter(one => one)));
    return row(name, schema, field);
  };
  const group = (name, schema, given) => {
    const inner = {...given}, none = defaults[name] ?? {};
    const fields = page.make_fields(schema.properties, Object.keys(schema.properties), none, inner, () => set(name, Object.keys(inner).length ? {...inner} : undefined), `${prefix}-${name}`);
    const box = element('details', {}, element('summary', {textContent: `${name}: ${schema.description ?? ''}`}), ...fields);
    box.open = Object.keys(inner).length > 0;
    return box;
  };

  const make = (name, schema, given) => {
    const types = [schema.type].flat();
    if (schema.enum) return choice(name, schema, given);
    if (types.includes('integer') || types.includes('number')) return number(name, schema, given);
    if (types.includes('boolean')) return toggle(name, schema, given);
    if (types.includes('array')) return list(name, schema, given);
    if (types.includes('object')) return group(name, schema, given);
    return text(name, schema, given);
  };
  const open = [], folded = [];
  for (const name of order) {
    const is_open = name in value || (open.length < kOpen && ![settings[name].type].flat().includes('object')) || prefix.includes('-');
    (is_open ? open : folded).push(make(name, settings[name], value[name]));
  }
  return folded.length ? [...open, element('details', {}, element('summary', {textContent: `${folded.length} more`}), ...folded)] : open;
};
