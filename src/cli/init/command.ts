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

Writes config/millrace.yaml and compose.yaml or millrace.service, adds missing lines to .env (with a generated secret, to try it
out) and .gitignore, and prints the next commands. Existing files are replaced only with --force; variables in .env are never
replaced. --routes takes TYPES=SINKS, the first match decides; other types go to every sink. Someone with the key that signs
archives can sign a changed archive: put the key on another disk with --key.

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
  '--key <file>': 'file of the key that signs archives, on another disk; created at the first start',
  '--yes': 'ask nothing; the defaults are files, one route for all, compose',
  '--force': 'replace existing files',
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
      const texts = textsOf(plan, folder);
      await writeTexts(folder, texts, options.force === true);
      const variables = variablesOf(plan);
      const env = await readIfAny(join(folder, '.env'));
      const set = new Map(Array.from(env.matchAll(VARIABLE), ([, name = '', value = '']) => [name, value]));
      // The added line of a generated value replaces an empty one: the last line wins.
      for (const { name, value = '' } of variables)
        if (set.get(name) === '' && value !== '') set.delete(name);
      await addLines(folder, '.env', envText(variables, new Set(set.keys())), PRIVATE);
      const ignored = new Set((await readIfAny(join(folder, '.gitignore'))).split(/\r?\n/));
      const missing = IGNORED.filter((line) => !ignored.has(line) && !ignored.has(`/${line}`));
      await addLines(folder, '.gitignore', missing.map((line) => `${line}\n`).join(''), 0o666);
      const fillIn = variables.filter(({ name, value }) => (set.get(name) ?? value ?? '') === '');
      const files = [...texts.map(({ path }) => path), '.env', '.gitignore'];
      const next = nextCommands(folder, io);
      if (options.json === true)
        return print(io, JSON.stringify({ files, fill_in: fillIn.map(({ name }) => name), next }));
      for (const file of files) note(io, `wrote ${relative('', join(folder, file))}`);
      for (const { name, about } of fillIn) note(io, `fill in ${name} in .env first: ${about}`);
      print(io, ['Next:', '', ...next.map((command) => `  ${command}`), ''].join('\n'));
      note(io, 'serve runs until Ctrl-C: run the last command in a second shell. `tail` shows events live;');
      note(io, '`flush` closes the open files of the archive, so that you can read them.');
    });
}

/** A line of .env that sets a variable. */
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
    throw usageError('this is no terminal to ask questions: add --yes or --sinks');
  const chosen = sinks ?? ['files'];
  return { sinks: chosen, routes: readRoutes([], chosen), runner: 'compose', ...given };
}

/** Asks for missing options until each answer is valid. An empty answer means the default in brackets. */
async function askForPlan(io: Io, given: Partial<InitPlan> & Pick<InitPlan, 'key'>): Promise<InitPlan> {
  const lines = createInterface({ input: io.stdin, output: io.stderr });
  // A question would wait forever after the end of the input.
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
    const example = `such as labtest.,lab_report.=${NAMES[sinks[0] ?? 'files']}; other types go to every sink`;
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
    if (signal.aborted)
      throw usageError('a question was not answered; nothing was written', { cause: error });
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

/** Commands to type next, in the current folder, with the program that runs now. */
function nextCommands(folder: string, io: Io): readonly string[] {
  const program = programName(folder, io);
  const there = relative('', folder);
  const go = there === '' ? '' : `cd '${there.replaceAll("'", String.raw`'\''`)}' && `;
  return ['check', 'serve', 'send'].map((command) => `${go}${program} ${command}`);
}
