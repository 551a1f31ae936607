'use strict';
// The explorer: an open job, a list of transforms, and the prediction, which follows every change.
(async () => {
  const {element, time, bytes} = page, by_id = id => document.getElementById(id);
  const kTasks = 60000;  // Most tasks that are drawn one by one; for others, only the load of their lane is drawn.
  const status = text => by_id('status').textContent = text;

  // Makes a program that runs in a worker. If several questions wait under the same name, only the last one is asked.
  const make_program = module => {
    const waiting = new Map(), named = new Map();
    let worker = null, count = 0, busy = false;
    const begin = () => {
      worker = new Worker('worker.js');
      worker.onmessage = take;
      worker.postMessage({module});
    };
    const next = () => {
      const first = named.entries().next();
      if (busy || first.done) return;
      const [name, {message, resolve}] = first.value;
      named.delete(name), waiting.set(message.id, resolve), busy = true;
      worker.postMessage(message);
    };
    const take = ({data}) => {
      if (data.stopped) worker.terminate(), begin();  // Its memory may be corrupt.
      busy = false;
      waiting.get(data.id)(data.answer), waiting.delete(data.id);
      next();
    };
    begin();
    return {
      ask: (name, question, groups) => new Promise(resolve => {
        named.get(name)?.resolve(null);
        named.set(name, {message: {id: ++count, question, groups}, resolve});
        next();
      }),
    };
  };

  let module;
  try {
    const response = await fetch('foretrace.wasm');
    if (!response.ok) throw new Error(`foretrace.wasm: ${response.status} ${response.statusText}`);
    module = await WebAssembly.compile(await response.arrayBuffer());
  } catch (error) {
    return status(`The program cannot be loaded: ${error.message}. A folder on a disk must be served, for example by: python3 -m http.server`);
  }
  // Three programs: the first answers at once while a slider moves, the second adds intervals and pictures, and the third looks
  // for advice and compares recordings.
  const live = make_program(module), whole_answers = make_program(module), beside = make_program(module);
  const {transforms, version} = await live.ask('transforms', {ask: 'transforms'});
  const {machines} = await live.ask('machines', {ask: 'machines'});
  const known = new Map(transforms.map(one => [one.name, one]));
  by_id('version').textContent = version;
  for (const {name, summary} of transforms) by_id('known').append(element('option', {value: name, label: summary}));
  for (const name of machines) by_id('machine').append(element('option', {value: name, textContent: name}));

  // The question.
  let steps = [], files = [], job = null, answer = null, drawn = null;
  const scenario = () => ({
    transforms: steps.map(({use, settings}) => ({use, ...settings})),
    ...(by_id('machine').value ? {machine: by_id('machine').value} : {}),
    ...(by_id('limit').value.trim() ? {memory: {limit: by_id('limit').value.trim()}} : {}),
  });
  const to_link = () => {
    const asked = scenario(), is_empty = !asked.transforms.length && !asked.machine && !asked.memory;
    history.replaceState(null, '', is_empty ? location.pathname + location.search : '#' + encodeURIComponent(JSON.stringify(asked)));
  };
  const from_link = () => {
    if (location.hash.length < 2) return;
    try {
      const asked = JSON.parse(decodeURIComponent(location.hash.slice(1)));
      steps = (asked.transforms ?? []).filter(({use}) => known.has(use)).map(({use, ...settings}) => ({use, settings}));
      by_id('machine').value = machines.includes(asked.machine) ? asked.machine : '';
      by_id('limit').value = asked.memory?.limit ?? '';
    } catch {
      by_id('refused').textContent = 'The link does not contain a valid scenario.';
    }
  };

  const show_steps = () => {
    by_id('steps').replaceChildren(...steps.map((step, place) => {
      const {summary, settings, order, defaults} = known.get(step.use);
      const move = by => () => {
        const [one] = steps.splice(place, 1);
        steps.splice(place + by, 0, one);
        show_steps(), changed();
      };
      const act = (text, label, onclick, disabled = false) => element('button', {type: 'button', textContent: text, ariaLabel: label, onclick, disabled});
      const remove = () => { steps.splice(place, 1), show_steps(), changed(); };
      return element('div', {className: 'step', role: 'group', ariaLabel: step.use},
        element('div', {className: 'head'}, element('h3', {textContent: step.use}),
          act('\u2191', `${step.use} earlier`, move(-1), place === 0), act('\u2193', `${step.use} later`, move(1), place + 1 === steps.length),
          act('\u00d7', `Remove ${step.use}`, remove)),
        element('p', {className: 'quiet', textContent: summary}),
        ...page.make_fields(settings, order, defaults, step.settings, changed, `step${place}`));
    }));
  };
  // Adds the steps in `text`, written as for --with: "bf16", "loader:workers=4, amp".
  const add = async text => {
    const {error, transforms: read} = await live.ask('read', {ask: 'read', steps: text}) ?? {error: ''};
    by_id('refused').textContent = error ?? '';
    if (!read) return;
    for (const {use, ...settings} of read) {
      const {defaults} = known.get(use);
      const own = Object.entries(settings).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(defaults[name]));
      steps.push({use, settings: Object.fromEntries(own)});
    }
    by_id('add').value = '';
    show_steps(), changed();
  };

  // The answer.
  const percent = (now, then) => `${then > now ? '+' : ''}${((then / now - 1) * 100).toFixed(1)} %`;
  const figure = (name, main, ...rest) => [element('dt', {textContent: name}), element('dd', {}, element('span', {className: main ? 'main' : '', textContent: rest[0]}), ...rest.slice(1))];
  const show_figures = found => {
    const {measured, baseline, predicted} = found, is_what_if = found.steps.length > 0;
    const now = baseline.step_time_ns, then = predicted.step_time_ns;
    const change = element('span', {className: then <= now ? 'better' : 'worse', textContent: ` ${percent(now, then)}`});
    const peak = run => Math.max(...(run.memory ?? []).filter(one => one.device >= 0).map(one => one.peak_reserved_bytes ?? one.peak_allocated_bytes), -Infinity);
    by_id('figures').replaceChildren(...[
      ...figure('measured', false, time(measured.step_time_ns) + ' a step'),
      ...(is_what_if ? figure('predicted', true, time(then) + ' a step', change) : figure('replayed', true, time(now) + ' a step')),
      ...(is_what_if ? figure('between', false, `${time(predicted.lower_ns)} and ${time(predicted.upper_ns)}`) : []),
      ...(peak(baseline) > 0 ? figure('memory', false, bytes(peak(baseline)) + (is_what_if ? ` \u2192 ${bytes(peak(predicted))}` : '')) : []),
      ...figure('trust', false, found.trust.grade),
    ]);
    page.say(by_id('figures').textContent);
  };
  const controls_of = root => [...root.querySelectorAll('#timeline, #levels, .controls [id]')].map(one => one.id).join();
  // Moves the texts of the new section `fresh` into the section `old`, which keeps the elements of its pictures, so that the visible
  // time range stays. Returns false if their pictures differ.
  const take_over = (old, fresh) => {
    for (const [i, part] of [...old.querySelectorAll('details')].entries()) {
      const other = fresh.querySelectorAll('details')[i];
      if (other) other.open = part.open;
    }
    if (!controls_of(fresh) || controls_of(old) !== controls_of(fresh)) return false;
    const pick = root => [...root.children].filter(one => one.matches('details, p.quiet:not(#keys), .bars, .legend, .table'));
    const [mine, theirs] = [pick(old), pick(fresh)];
    if (mine.length !== theirs.length) return false;
    mine.forEach((one, i) => one.replaceWith(theirs[i]));
    return true;
  };
  const show_parts = ({heading, lead, sections, timelines, memory}) => {
    by_id('heading').textContent = heading || 'As recorded';
    by_id('lead').innerHTML = lead;  // Safe: the program escapes all texts of the trace.
    const old = new Map([...by_id('sections').children].map(one => [one.id, one])), kept = new Set();
    const made = sections.map(({id, heading: title, html}) => {
      const fresh = element('section', {id}, element('h2', {id: id + '-heading', textContent: title}));
      fresh.setAttribute('aria-labelledby', id + '-heading');
      fresh.insertAdjacentHTML('beforeend', html);
      if (!old.has(id) || !take_over(old.get(id), fresh)) return fresh;
      kept.add(id);
      return old.get(id);
    });
    const same = made.length === old.size && made.every((one, i) => by_id('sections').children[i] === one || !kept.has(one.id));
    if (same) made.forEach((one, i) => kept.has(one.id) || by_id('sections').children[i].replaceWith(one));
    else by_id('sections').replaceChildren(...made);
    by_id('nav').replaceChildren(...sections.map(({id, heading: title}) => element('li', {}, element('a', {href: '#' + id, textContent: title, onclick: event => {
      event.preventDefault(), by_id(id).scrollIntoView();
    }}))));
    if (!by_id('timeline')) drawn = null;
    else if (!drawn || !kept.has('timelines') || !same) drawn = page.make_timeline();
    drawn?.load(JSON.parse(timelines));
    if (by_id('levels')) by_id('levels').replaceChildren(), page.make_levels(JSON.parse(memory), drawn);
  };

  let version_asked = 0, is_live = false;
  // Asks the question `name` about the scenario `asked`. Returns null after an error, which it shows, or if a newer question
  // replaced this one.
  const ask = async (program, name, asked, more) => {
    const found = await program.ask(name, {ask: name, scenario: asked, ...more});
    if (found === null) return null;
    by_id('refused').textContent = found.error ?? '';
    return found.error ? null : found;
  };
  const changed = async () => {
    to_link();
    if (!job) return;
    const number = ++version_asked, asked = scenario(), began = performance.now();
    document.body.classList.add('waiting');
    const quick = is_live ? await ask(live, 'quick', asked) : null;
    if (quick) show_figures(quick.json), document.body.dataset.answered = Math.round(performance.now() - began);
    if (number !== version_asked) return;
    const whole = await ask(whole_answers, 'predict', asked, {tasks: kTasks});
    if (number !== version_asked) return;
    document.body.classList.remove('waiting');
    if (!whole) return;
    answer = whole, window.foretrace_answer = whole;  // Scripts and tests read it there.
    show_figures(JSON.parse(whole.json)), show_parts(whole.parts);
    document.body.dataset.drawn = number;
  };

  const show_advice = ({error, json}) => {
    const box = by_id('advice');
    if (error) return box.replaceChildren(element('h2', {textContent: 'What would help'}), element('p', {textContent: error}));
    const advice = JSON.parse(json), now = advice.now.step_time_ns;
    const good = advice.suggestions.filter(one => one.recommended).slice(0, 8);
    const try_it = use => element('button', {type: 'button', textContent: 'Try', ariaLabel: `Try ${use}`, onclick: () => add(use)});
    const ceilings = advice.ladder.filter(one => one.there).map(one => element('li', {textContent: `no ${one.title}: ${time(one.step_time_ns)} (${percent(now, one.step_time_ns)})`}));
    box.replaceChildren(element('h2', {textContent: 'What would help'}),
      element('p', {}, element('strong', {textContent: 'Bound by '}), advice.verdict.bound_by),
      ...advice.first.map(text => element('p', {textContent: text})),
      ...good.map(one => element('div', {className: 'suggestion'}, element('span', {}, element('strong', {textContent: one.use}),
        one.goal === 'time' ? ` ${time(one.step_time_ns)} a step (${percent(now, one.step_time_ns)}), confidence ${one.confidence.word}` : ` ${one.summary}`), try_it(one.use))),
      ...(advice.joint?.members.length > 1 ? [element('div', {className: 'suggestion'}, element('span', {}, element('strong', {textContent: 'together '}),
        `${advice.joint.members.map(one => one.use).join(', ')}: ${time(advice.joint.step_time_ns)} (${percent(now, advice.joint.step_time_ns)})`),
        try_it(advice.joint.members.map(one => one.use).join(',')))] : []),
      element('p', {}, element('strong', {textContent: 'At best '}), advice.verdict.at_best),
      element('h3', {textContent: 'Ceilings: if it took no time'}), element('ul', {}, ...ceilings));
    document.body.dataset.advised = 'yes';
  };

  // Lists the chosen files. Files of a chosen folder get their paths relative to it.
  const listed = chosen => [...chosen].map(file => ({path: file.webkitRelativePath?.replace(/^[^/]*\//, '') || file.name, data: file}));
  const group_of = (name, all) => ({name: all.length > 1 ? name : all[0].path.replaceAll('/', '_'), files: all});
  const open = async chosen => {
    if (!chosen.length) return;
    files = chosen;
    const group = group_of('job', files);
    const began = performance.now(), what = files.length > 1 ? `${files.length} files` : group.name;
    status(`Reading ${what} ...`);
    by_id('difference').replaceChildren(), by_id('advice').replaceChildren(element('h2', {textContent: 'What would help'}), element('p', {className: 'quiet', textContent: 'Looking for changes that would help ...'}));
    delete document.body.dataset.advised;
    const opened = files, groups = [group];
    is_live = false;
    const read = await whole_answers.ask('open', {ask: 'open', path: group.name}, groups);
    if (!read || files !== opened) return;
    if (read.error) return status(read.error);
    job = group.name;
    document.body.classList.add('has-job'), by_id('work').hidden = false;
    show_form();
    await changed();
    status('');
    document.body.dataset.opened = Math.round(performance.now() - began);
    const of_job = async (program, question) => {
      const found = await program.ask(question.ask, question, groups);
      return files === opened ? found : null;
    };
    is_live = !(await of_job(live, {ask: 'open', path: job}))?.error;
    const advised = await of_job(beside, {ask: 'question', name: 'advise', settings: {trace: job}});
    if (advised) show_advice(advised);
  };
  const compare = async chosen => {
    if (!chosen.length || !job) return;
    by_id('difference').textContent = 'Comparing ...';
    const [before, after] = [group_of('before', files), group_of('after', chosen)];
    if (before.name === after.name) before.name = 'before-' + before.name, after.name = 'after-' + after.name;
    const found = await beside.ask('diff', {ask: 'question', name: 'diff', settings: {before: before.name, after: after.name}}, [before, after]);
    if (!found) return;
    if (found.error) return by_id('difference').textContent = found.error;
    const difference = JSON.parse(found.json);
    by_id('difference').replaceChildren(...difference.ranks.flatMap(rank => [
      element('p', {}, element('strong', {textContent: difference.ranks.length > 1 ? `rank ${rank.rank}: ` : ''}), rank.verdict),
      element('ul', {}, ...rank.causes.filter(one => one.effect_ns !== 0).slice(0, 12).map(one =>
        element('li', {textContent: `${one.effect_ns > 0 ? '+' : '\u2212'}${time(Math.abs(one.effect_ns))}: ${one.text}`}))),
    ]));
  };

  // Any other question, in a form made of its settings. It is about the open job where it takes a trace.
  const {questions} = await beside.ask('questions', {ask: 'questions'});
  let other = null;
  for (const {name, summary} of questions) by_id('any').append(element('option', {value: name, textContent: `${name.replaceAll('_', ' ')}: ${summary}`}));
  const show_form = () => {
    const {name, settings, order, defaults, required} = questions.find(one => one.name === by_id('any').value);
    const given = job && 'trace' in settings ? {trace: settings.trace.type === 'array' ? [job] : job} : {};
    other = {name, given};
    by_id('any-fields').replaceChildren(...page.make_fields(settings, [...required, ...order.filter(one => !required.includes(one))], defaults, given, () => {}, 'any'));
  };
  const ask_other = async () => {
    if (!other) return;
    by_id('any-answer').textContent = 'Asking ...';
    const groups = job ? [group_of('job', files)] : undefined;
    const found = await beside.ask('question', {ask: 'question', name: other.name, settings: other.given}, groups);
    if (!found) return;
    window.foretrace_other = found;  // Scripts and tests read it there.
    by_id('any-answer').textContent = found.error ?? [found.text, ...found.remarks].join('\n');
    document.body.dataset.asked = other.name;
  };

  const copy = async (button, text) => {
    const was = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Not allowed here';
    }
    setTimeout(() => button.textContent = was, 1500);
  };
  const written = () => JSON.stringify({$schema: 'scenario.schema.json', version: 1, trace: job, ...scenario()}, null, 2) + '\n';
  const on = (id, event, act) => by_id(id).addEventListener(event, act);
  on('question', 'submit', event => { event.preventDefault(), by_id('add').value.trim() && add(by_id('add').value.trim()); });
  on('add', 'input', () => { if (known.has(by_id('add').value)) add(by_id('add').value); });
  on('machine', 'change', changed), on('limit', 'change', changed);
  on('any', 'change', show_form), on('ask', 'click', ask_other);
  on('reset', 'click', () => { steps = [], by_id('machine').value = by_id('limit').value = '', show_steps(), changed(); });
  on('copy-command', 'click', event => answer && copy(event.target, answer.command));
  on('copy-json', 'click', event => copy(event.target, written()));
  on('copy-link', 'click', event => copy(event.target, location.href));
  on('save-answer', 'click', () => {
    if (!answer) return;
    const link = element('a', {href: URL.createObjectURL(new Blob([answer.json], {type: 'application/json'})), download: 'prediction.json'});
    link.click(), URL.revokeObjectURL(link.href);
  });
  on('files', 'change', event => open(listed(event.target.files))), on('folder', 'change', event => open(listed(event.target.files)));
  on('other', 'change', event => compare(listed(event.target.files)));
  on('sample', 'click', async () => {
    const name = 'resnet18-v100-loader0.pt.trace.json.gz', response = await fetch(name);
    open([{path: name, data: await response.blob()}]);
  });
  const entries_of = async (entry, folder = '') => {
    if (entry.isFile) return [{path: folder + entry.name, data: await new Promise((resolve, reject) => entry.file(resolve, reject))}];
    const reader = entry.createReader(), all = [];
    for (let some; (some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length;) all.push(...some);
    return (await Promise.all(all.map(one => entries_of(one, one.isDirectory ? `${folder}${one.name}/` : folder)))).flat();
  };
  addEventListener('dragover', event => { event.preventDefault(), by_id('drop').classList.add('over'); });
  addEventListener('dragleave', () => by_id('drop').classList.remove('over'));
  addEventListener('drop', async event => {
    event.preventDefault(), by_id('drop').classList.remove('over');
    const entries = [...event.dataTransfer.items].map(one => one.webkitGetAsEntry?.()).filter(one => one);
    open(entries.length ? (await Promise.all(entries.map(one => entries_of(one)))).flat() : listed(event.dataTransfer.files));
  });
  addEventListener('hashchange', () => { from_link(), show_steps(), changed(); });
  from_link(), show_steps();
  status('');
  document.body.dataset.ready = 'yes';
})();
