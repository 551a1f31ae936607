'use strict';
// Runs the program. Receives {module} first, then questions {id, question, groups?}; posts {id, answer}. A group is {name, files:
// [{path, data}]}, the file or folder that the question calls `name`. Files are not copied but read piece by piece. Files that the
// program writes are in `written` of the answer: [{name, data}].
importScripts('foretrace.js');

let program = null, mounted = 0;

const start = async module => {
  program = await Foretrace({
    instantiateWasm: (imports, receive) => {
      WebAssembly.instantiate(module, imports).then(instance => receive(instance));
      return {};
    },
  });
};

// Makes the files of all groups visible to the program, in a new current folder. A comparison has two groups.
const mount = groups => {
  const {FS, WORKERFS} = program, root = '/' + ++mounted;
  FS.mkdir(root);
  for (const {name, files} of groups) {
    const folder = files.length > 1 ? `${root}/${name}` : `${root}/.${name}`;
    FS.mkdir(folder);
    FS.mount(WORKERFS, {blobs: files.map(({path, data}) => ({name: path, data}))}, folder);
    if (files.length === 1) FS.symlink(`${folder}/${files[0].path}`, `${root}/${name}`);
  }
  FS.chdir(root);
};

const take_written = () => {
  const {FS} = program, all = FS.readdir('.').filter(name => FS.isFile(FS.lstat(name).mode));
  return all.map(name => {
    const data = FS.readFile(name);
    FS.unlink(name);
    return {name, data};
  });
};

const ask = question => {
  const text = JSON.stringify(question), size = program.lengthBytesUTF8(text) + 1, at = program._malloc(size);
  program.stringToUTF8(text, at, size);
  try {
    return program.UTF8ToString(program._foretrace_answer(at));
  } finally {
    program._free(at);
  }
};

let last = Promise.resolve(), started = null;
onmessage = ({data}) => {
  if (data.module) return started = start(data.module);
  last = last.then(async () => {
    try {
      await started;
      if (data.groups) mount(data.groups);
      const answer = JSON.parse(ask(data.question)), written = data.groups ? take_written() : [];
      postMessage({id: data.id, answer: written.length ? {...answer, written} : answer});
    } catch (error) {
      postMessage({id: data.id, answer: {error: `the program stopped: ${error.message ?? error}; open the trace again`}, stopped: true});
    }
  });
};
