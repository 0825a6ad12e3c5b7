import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ENVIRONMENT } from '../../config/reference/environment.ts';
import { commandPage, commandTree } from '../../config/reference/commands.ts';
import { configKeys } from '../../src/config/keys.ts';
import { ROOT } from '../support/millrace.ts';
import { program, walk } from './run.ts';

/** The text of every source file. */
const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(join(ROOT, 'src', name), 'utf8') }));

test('every command, argument and option has words, and stands in the reference', async () => {
  const root = await program();
  const reference = commandPage(root);
  for (const node of walk(commandTree(root))) {
    const name = ['millrace', ...node.path].join(' ');
    if (node.path.at(-1) === 'help') continue;
    expect(node.description, name).not.toBe('');
    expect(reference).toMatch(new RegExp(`^##+ ${name}$`, 'm'));
    for (const { flags, description } of node.options) {
      expect(description, `${name} ${flags}`).not.toBe('');
      if (!flags.includes('--help')) expect(reference).toContain(`\`${flags}\``);
    }
    for (const { usage, description } of node.arguments) expect(description, `${name} ${usage}`).not.toBe('');
  }
});

test('every variable that the program reads is in one of the two references', () => {
  // The one that stray.ts gives as an example of a slip.
  const slip = 'MILLRACE_SERVER_PROT';
  const known = new Set([slip, ...Object.keys(ENVIRONMENT), ...configKeys().scalars.map(({ env }) => env)]);
  const read = sources.flatMap(({ name, text }) =>
    Array.from(
      text.matchAll(/(?:\benv(?:\.|\[')|\b(?=MILLRACE_))([A-Z]+_[A-Z_]*[A-Z])/g),
      ([, variable = '']) => ({ name, variable }),
    ),
  );
  expect(read.length).toBeGreaterThan(3);
  expect(read.filter(({ variable }) => !known.has(variable))).toEqual([]);
});

test('nothing is ever coloured, so that NO_COLOR is honoured', () => {
  const coloured = sources.filter(
    ({ name, text }) => name.startsWith('cli') && /\\(?:u001b|x1b|033)\[[0-9;]*m/i.test(text),
  );
  expect(coloured.map(({ name }) => name)).toEqual([]);
});

test.each([
  ['--version', []],
  ['-V', []],
  ['status', ['status']],
])('%s loads no other command', async (only, loaded) => {
  const { commands } = await program(only);
  expect(commands.map((command) => command.name())).toEqual(loaded);
});
