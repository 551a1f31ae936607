'use strict';
// Names of settings and choices as people write them: "compute_factor" is "Compute factor".
page.words = name => name.replaceAll('_', ' ');
page.help = text => (text ?? '').replace(/--([a-z][a-z-]*)/g, (_, name) => `"${page.title(name.replaceAll('-', '_'))}"`);
page.title = name => page.words(name).replace(/^./, letter => letter.toUpperCase());
// The range of a number's slider: from the minimum to a few times the default.
page.range_of = (schema, at, usual) => {
  const whole = [schema.type].flat().includes('integer');
  return {whole, least: schema.minimum ?? Math.min(0, at ?? 0),
    most: Math.min(schema.maximum ?? Infinity, Math.max(4 * (at ?? 0), 4 * (usual ?? 0), whole ? 16 : 2))};
};
// A quantity such as "25GB/s" as [number, unit]; null if it is none, or is 0.
page.quantity = (schema, text) => {
  const parts = schema.pattern && /^ *([0-9.]+) *([^0-9. ].*)$/.exec(text);
  return parts && +parts[1] > 0 ? [+parts[1], parts[2].trim()] : null;
};
// Values that are worth trying, as the program reads them: "1..16", "0..1/10", "1GB,2GB"; null if the setting has none.
page.values_of = (schema, at, usual) => {
  const types = [schema.type].flat(), quantity = page.quantity(schema, at ?? usual);
  if (schema.enum) return schema.enum.join(',');
  if (quantity) return [.25, .5, 1, 2, 4].map(factor => +(quantity[0] * factor).toPrecision(3) + quantity[1]).join(',');
  if (!types.includes('integer') && !types.includes('number')) return null;
  const {whole, least, most} = page.range_of(schema, at ?? usual, usual);
  return whole ? `${least}..${most}` : `${least}..${most}/10`;
};
// Makes the input fields of a transform from the JSON Schema of its settings, in the given `order`. The first few fields and those
// that `value` sets are visible; the others are folded away. `value` contains the settings that differ from the defaults; `changed`
// is called after each change. Settings named in `files` can be chosen as files: take(name, chosen) returns the value.
page.make_fields = (settings, order, defaults, value, changed, prefix, files = [], take = null) => {
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
    for (const input of inputs) input.setAttribute('aria-describedby', help), input.setAttribute('aria-label', `${page.title(name)}, ${input.type}`);
    return element('div', {className: 'field'}, element('label', {htmlFor: id, textContent: page.title(name)}),
      element('div', {className: 'values'}, ...inputs), element('div', {className: 'help', id: help, textContent: page.help(schema.description)}));
  };

  // A number with a slider. Values beyond its ends can be typed.
  const number = (name, schema, given) => {
    const at = given ?? defaults[name], {whole, least, most} = page.range_of(schema, at, defaults[name]);
    const field = element('input', {type: 'number', value: at == null ? '' : whole ? at : +at.toPrecision(4), step: whole ? 1 : 'any', min: schema.minimum ?? '', max: schema.maximum ?? ''});
    const read = text => text === '' ? undefined : whole ? Math.round(+text) : +text;
    field.addEventListener('input', () => { if (slider) slider.value = field.value; set(name, read(field.value)); });
    const slider = at == null ? null : element('input', {type: 'range', min: least, max: most, step: whole ? 1 : (most - least) / 200, value: at});
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
    const parts = page.quantity(schema, field.value);
    if (!parts) return row(name, schema, field);
    const slider = element('input', {type: 'range', min: -4, max: 4, step: .05, value: 0});
    slider.addEventListener('input', () => {
      field.value = +(parts[0] * 2 ** +slider.value).toPrecision(3) + parts[1];
      set(name, field.value);
    });
    return row(name, schema, slider, field);
  };
  const choice = (name, schema, given) => {
    const select = element('select', {}, ...schema.enum.map(one => element('option', {value: one, textContent: page.words(one)})));
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
  // The name of a file, which can be typed if the open job has it, and chosen otherwise.
  const file = (name, schema, given) => {
    const field = element('input', {type: 'text', value: given ?? defaults[name] ?? '', spellcheck: false});
    const chooser = element('input', {type: 'file', multiple: true});
    field.addEventListener('input', () => set(name, field.value));
    chooser.addEventListener('change', () => { if (chooser.files.length) set(name, field.value = take(name, chooser.files)); });
    const made = row(name, schema, chooser, field);
    const button = element('label', {className: 'button', textContent: 'Choose '});
    chooser.before(button), button.append(chooser);
    return made;
  };
  const group = (name, schema, given) => {
    const inner = {...given}, none = defaults[name] ?? {};
    const fields = page.make_fields(schema.properties, Object.keys(schema.properties), none, inner, () => set(name, Object.keys(inner).length ? {...inner} : undefined), `${prefix}-${name}`);
    const box = element('details', {}, element('summary', {textContent: `${page.title(name)}: ${page.help(schema.description)}`}), ...fields);
    box.open = Object.keys(inner).length > 0;
    return box;
  };

  const make = (name, schema, given) => {
    const types = [schema.type].flat();
    if (files.includes(name) && !types.includes('array')) return file(name, schema, given);
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
