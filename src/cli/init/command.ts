import { join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { actAsOwnerOf } from '../../core/act-as-owner.ts';
import { messageOf } from '../../core/errors.ts';
import { note, print, usageError, type Io } from '../io.ts';
import { commandOf, oneOf, type OptionsOf, readBy, special, textOr } from '../options.ts';
import { programName } from '../program-name.ts';
import { INIT_SINKS, NAMES, readRoutes, readSinks, RUNNERS, type InitPlan } from './plan.ts';
import { composeText, configText, envText, unitText, variablesOf } from './texts.ts';
import { addLines, readIfAny, writeTexts, type NewText } from './write.ts';

const HELP = `
Examples:
  millrace init                                              asks
  millrace init --yes                                        files, everything to them, compose.yaml
  millrace init --sinks files,http --routes labtest.=services,archive --run systemd
  millrace init --sinks event-hubs --run none --force

Writes config/millrace.yaml, compose.yaml or millrace.service, and adds what is missing to .env (with a generated secret, to try it
out) and .gitignore. Files that are there are replaced only with --force; variables of .env never are. Prints the next commands.
Archives are signed, and who has the disk with the key beside them can sign what was changed: --key names a file on another disk.
--routes takes TYPES=SINKS, the first match decides; types that no rule names go to every sink.
Exit codes: 0 done, 1 failed, 2 usage, or a file is there already.`;

const CONFIG = 'config/millrace.yaml';
const IGNORED = ['.env', 'data/'];
/** Only the owner reads secrets. */
const PRIVATE = 0o600;

const OPTIONS = {
  '--folder <dir>': textOr('.', 'where'),
  '--sinks <list>': readBy(readSinks, 'files, event-hubs, pubsub, http; commas between'),
  '--routes <rules...>': special<readonly string[] | undefined>(
    'TYPES=SINKS, such as labtest.,lab_report.=archive',
    (option) => option,
  ),
  '--run <with>': oneOf(RUNNERS, 'what will run it'),
  '--key <file>':
    'file of the key that signs archives, on another disk than they are; made at the first start',
  '--yes': 'ask nothing: what is not given is files, one route for all, compose',
  '--force': 'replace files that are there',
  '--json': 'print one JSON object: files, fill_in, next',
};
type Options = OptionsOf<typeof OPTIONS>;

export function initCommand(io: Io): Command {
  return commandOf('init', OPTIONS, HELP)
    .description('write a config, .env and what runs it, and print the next commands')
    .action(async (options: Options) => {
      const plan = await planOf(options, io);
      const folder = resolve(options.folder);
      actAsOwnerOf(folder);
      await writeTexts(folder, textsOf(plan, folder), options.force === true);
      const variables = variablesOf(plan);
      const env = await readIfAny(join(folder, '.env'));
      const set = new Map(Array.from(env.matchAll(VARIABLE), ([, name = '', value = '']) => [name, value]));
      // An empty line for what is made up here is none; the line that is added wins.
      for (const { name, value = '' } of variables)
        if (set.get(name) === '' && value !== '') set.delete(name);
      await addLines(folder, '.env', envText(variables, new Set(set.keys())), PRIVATE);
      const ignored = new Set((await readIfAny(join(folder, '.gitignore'))).split(/\r?\n/));
      const missing = IGNORED.filter((line) => !ignored.has(line) && !ignored.has(`/${line}`));
      await addLines(folder, '.gitignore', missing.map((line) => `${line}\n`).join(''), 0o666);
      const fillIn = variables.filter(({ name, value }) => (set.get(name) ?? value ?? '') === '');
      const files = [...textsOf(plan, folder).map(({ path }) => path), '.env', '.gitignore'];
      const next = nextCommands(folder, io);
      if (options.json === true)
        return print(io, JSON.stringify({ files, fill_in: fillIn.map(({ name }) => name), next }));
      for (const file of files) note(io, `wrote ${relative('', join(folder, file))}`);
      for (const { name, about } of fillIn) note(io, `fill in ${name} in .env first: ${about}`);
      print(io, ['Next:', '', ...next.map((command) => `  ${command}`), ''].join('\n'));
      note(
        io,
        'serve runs until Ctrl-C: give the last one in a second shell. `tail` shows what happens, live;',
      );
      note(io, '`flush` closes the archive’s open files, so that they can be read at once.');
    });
}

/** A variable that a line sets; a second one of the name would win. */
const VARIABLE = /^\uFEFF?[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(.*)$/gm;

async function planOf({ sinks, routes, run, key, yes }: Options, io: Io): Promise<InitPlan> {
  const given = {
    key: key === undefined ? null : resolve(key),
    ...(sinks === undefined ? {} : { sinks }),
    ...(routes === undefined ? {} : { routes: readRoutes(routes, sinks ?? ['files']) }),
    ...(run === undefined ? {} : { runner: run }),
  };
  if (yes !== true && io.stdin.isTTY === true) return askForPlan(io, given);
  if (yes !== true && sinks === undefined)
    throw usageError('nobody can be asked here: add --yes, or say --sinks');
  const chosen = sinks ?? ['files'];
  return { sinks: chosen, routes: readRoutes([], chosen), runner: 'compose', ...given };
}

/** Asks for what was not given, until each answer can be used. An empty answer is what stands in brackets. */
async function askForPlan(io: Io, given: Partial<InitPlan> & Pick<InitPlan, 'key'>): Promise<InitPlan> {
  const lines = createInterface({ input: io.stdin, output: io.stderr });
  // An input that ends would leave the question open for ever.
  const ended = new AbortController();
  lines.once('close', () => ended.abort());
  const signal = AbortSignal.any([io.signal, ended.signal]);
  const ask = async <T>(question: string, fallback: string, read: (text: string) => T): Promise<T> => {
    for (;;) {
      const answer = (await lines.question(`${question} [${fallback}] `, { signal })).trim();
      try {
        return read(answer === '' ? fallback : answer);
      } catch (error) {
        note(io, messageOf(error));
      }
    }
  };
  try {
    const sinks = given.sinks ?? (await ask(`Which sinks? ${INIT_SINKS.join(', ')}:`, 'files', readSinks));
    const names = sinks.map((sink) => NAMES[sink]).join(',');
    const example = `such as labtest.,lab_report.=${NAMES[sinks[0] ?? 'files']}; the rest goes to every sink`;
    const routes =
      given.routes ??
      (await ask(`Which routes? TYPES=SINKS, a space between two, ${example}:`, `*=${names}`, (text) =>
        readRoutes(text.split(/\s+/), sinks),
      ));
    const runner =
      given.runner ??
      (await ask(`What will run it? ${RUNNERS.join(', ')}:`, 'compose', (text) => {
        const found = RUNNERS.find((known) => known === text);
        if (found === undefined) throw new TypeError(`${text} is none of ${RUNNERS.join(', ')}`);
        return found;
      }));
    return { ...given, sinks, routes, runner };
  } catch (error) {
    if (signal.aborted) throw usageError('not all was answered; nothing was written', { cause: error });
    throw error;
  } finally {
    lines.close();
  }
}

function textsOf(plan: InitPlan, folder: string): readonly NewText[] {
  const config = { path: CONFIG, text: configText(plan) };
  if (plan.runner === 'none') return [config];
  if (plan.runner === 'compose') return [config, { path: 'compose.yaml', text: composeText(plan) }];
  const run = [process.execPath, resolve(process.argv[1] ?? '')];
  return [config, { path: 'millrace.service', text: unitText(plan, folder, run) }];
}

/** As they can be typed: with what has started this command, in the folder it was started for. */
function nextCommands(folder: string, io: Io): readonly string[] {
  const program = programName(folder, io);
  const there = relative('', folder);
  const go = there === '' ? '' : `cd '${there.replaceAll("'", String.raw`'\''`)}' && `;
  return ['check', 'serve', 'send'].map((command) => `${go}${program} ${command}`);
}
